"""What tabs are made of: figures with title, sentence and explanation, tables, buttons."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.figure import Figure
from ghostlab.plots.formats import unbroken
from ghostlab.plots.rows import Row, Rows, rows
from ghostlab.results.run import RunResult
from ghostlab.ui import explain
from ghostlab.ui.page import Outputs, Page, Tab, on

ALL_BLOCKS = "all together"


def build(
    page: Page,
    name: str,
    figures: Sequence[str],
    *,
    by_run: bool = False,
    by_block: bool = False,
    whole: bool = False,
    more: Mapping[str, Callable[[Rows], str]] | None = None,
) -> Tab:
    """Lay out ``figures`` below one another, with choosers for recovery and block where asked for.

    Args:
        name: Prefix of the elements' ids.
        figures: Names of :data:`ghostlab.plots.catalog.FIGURES`.
        by_run: Offer a choice of recovery, the best one with a map first.
        by_block: Offer a choice of dropped block where there are several.
        whole: Offer all blocks together too, and first.
        more: Figure -> Markdown below its sentence.
    """
    known = [FIGURES[each] for each in figures]
    with gr.Row():
        run, block = (
            gr.Radio([], label=label, visible=False, interactive=True, elem_id=elem_id, min_width=260)
            for label, elem_id in (("Recovery", f"{name}-recovery"), ("Dropped blocks", f"{name}-block"))
        )
    places = [place for figure in known for place in slot(figure, f"{name}-{figure.name}")]

    def draw(result: RunResult, label: str | None, part: str | None) -> list[Any]:
        blocks = _blocks(result)
        given = rows(result, blocks.index(part) if part in blocks and len(blocks) > 1 else None)
        recoveries = [row for row in given if row.run is not None]
        chosen = [row for row in recoveries if row.name == label] or recoveries[:1]
        values: list[Any] = []
        for figure in known:
            drawn = chosen if figure.heading else given
            below = more[figure.name](drawn) if more and figure.name in more else ""
            values += [words(figure, drawn) + below, *figure.figures(drawn)]
        return values

    def render(result: RunResult) -> list[Any]:
        names = [row.name for row in rows(result) if row.run is not None]
        blocks = [ALL_BLOCKS] * whole + _blocks(result)
        label = next((row.name for row in recoveries_with_map(result)), names[0] if names else None)
        runs = gr.Radio(choices=names, value=label, visible=by_run and len(names) > 1)
        parts = gr.Radio(choices=blocks, value=blocks[0], visible=by_block and len(result.cut.blocks) > 1)
        return [runs, parts, *draw(result, label, blocks[0])]

    def choose(shown: str, label: str | None, part: str | None) -> list[Any]:
        return draw(page.service.result(shown), label, part)

    if by_run or by_block:
        inputs = [page.shown, run, block]
        on([run.input, block.input], choose, inputs, places, trigger_mode="always_last")
    return Tab(Outputs([run, block, *places], render))


def _blocks(result: RunResult) -> list[str]:
    return [f"{start}:{stop}" for start, stop in result.cut.blocks]


# -- recoveries with a map -------------------------------------------------------------------------------


def recoveries_with_map(result: RunResult) -> list[Row]:
    """The recoveries that have a fitted map, that of the lowest perplexity first, those without one last."""

    def order(row: Row) -> tuple[bool, float]:
        perplexity = row.scores.perplexity.value
        return math.isnan(perplexity), perplexity

    return sorted((row for row in rows(result) if row.operator is not None), key=order)


def recovery_with_map(result: RunResult, label: str | None = None) -> Row | None:
    """The recovery of that label; else the one probed last, else the best; only such as have a map."""
    known = recoveries_with_map(result)
    labels = [label, *(probe.label for probe in reversed(result.probes))]
    asked = [row for name in labels for row in known if row.variant == name]
    return next(iter([*asked, *known]), None)


# -- parts of a tab --------------------------------------------------------------------------------------


def prose(text: str = "", **options: Any) -> gr.Markdown:
    """A heading with a sentence or two below it."""
    return gr.Markdown(text, elem_classes="gl-figure-title", **options)


def plot(label: str, elem_id: str, **options: Any) -> gr.Plot:
    """A place for a figure; ``label`` is what a screen reader calls it."""
    return gr.Plot(label=label, show_label=False, container=False, elem_id=elem_id, **options)


def slot(figure: Figure, elem_id: str) -> list[Component]:
    """Lay out a figure; returns the components of its words and plots."""
    text = prose(elem_id=f"{elem_id}-words")
    explain.what_is_this(figure.name)
    with gr.Row():
        count = range(len(figure.plots))
        plots = [plot(figure.title, f"{elem_id}-{index}", min_width=280) for index in count]
    return [text, *plots]


def words(figure: Figure, given: Any) -> str:
    """Title and sentence of a figure, as Markdown."""
    return heading(figure.title, figure.sentence(given))


def heading(title: str, sentence: str) -> str:
    """A sentence below its title, as Markdown."""
    return f"### {title}\n{unbroken(sentence)}"


def table(label: str, elem_id: str, **options: Any) -> gr.Dataframe:
    """A table to read and to sort."""
    return gr.Dataframe(label=label, show_label=False, interactive=False, elem_id=elem_id, **options)


def stop_button(name: str) -> gr.Button:
    """The button that stops the followed job; ``name`` is the tab's, before its id."""
    return gr.Button("Stop", variant="stop", interactive=False, elem_id=f"{name}-stop", min_width=90)
