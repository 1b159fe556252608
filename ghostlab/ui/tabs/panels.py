"""Tabs made of figures, each with its title, its one sentence and its explanation; at most two choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.plots import style
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.figure import Figure
from ghostlab.plots.formats import unbroken
from ghostlab.plots.rows import Rows, rows
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
    first: Callable[[RunResult], int] = lambda _: 0,
    more: Mapping[str, Callable[[Rows], str]] | None = None,
) -> Tab:
    """Lay out ``figures`` below one another, with choosers for recovery and block where asked for.

    Args:
        name: Prefix of the elements' ids.
        figures: Names of :data:`ghostlab.plots.catalog.FIGURES`.
        by_run: Offer a choice of recovery.
        by_block: Offer a choice of dropped block, shown when there are several.
        whole: Offer all blocks together too, and first.
        first: Which recovery is shown until another is chosen.
        more: Figure -> Markdown below its sentence.
    """
    known = [FIGURES[each] for each in figures]
    with gr.Row():
        run = _chooser("Recovery", f"{name}-recovery", visible=by_run)
        block = _chooser("Dropped blocks", f"{name}-block", visible=False)
    places = [place for figure in known for place in slot(figure, f"{name}-{figure.name}")]

    def draw(result: RunResult, label: str | None, part: str | None) -> list[Any]:
        blocks = _blocks(result)
        given = rows(result, blocks.index(part) if part in blocks and len(blocks) > 1 else None)
        recoveries = [row for row in given if row.run is not None]
        chosen = [row for row in recoveries if row.name == label] or recoveries[:1]
        values: list[Any] = []
        for figure in known:
            shown = chosen if figure.heading else given
            below = more[figure.name](shown) if more and figure.name in more else ""
            values += [words(figure, figure.sentence(shown)) + below, *figure.figures(shown)]
        return values

    def render(result: RunResult) -> list[Any]:
        names, blocks = (
            [role.name for role in style.roles(result.runs)],
            [ALL_BLOCKS] * whole + _blocks(result),
        )
        label = names[first(result)] if names else None
        runs = gr.Radio(choices=names, value=label, visible=by_run and len(names) > 1)
        parts = gr.Radio(choices=blocks, value=blocks[0], visible=by_block and len(result.cut.blocks) > 1)
        return [runs, parts, *draw(result, label, blocks[0])]

    def choose(shown: str, label: str | None, part: str | None) -> list[Any]:
        return draw(page.result(shown), label, part)

    if by_run or by_block:
        on(
            [run.input, block.input],
            choose,
            [page.shown, run, block],
            places,
            trigger_mode="always_last",
        )
    return Tab(Outputs([run, block, *places], render))


def _chooser(label: str, elem_id: str, *, visible: bool) -> gr.Radio:
    return gr.Radio([], label=label, visible=visible, interactive=True, elem_id=elem_id, min_width=260)


def slot(figure: Figure, elem_id: str) -> list[Component]:
    """Lay out a figure; returns the components of its words and plots."""
    text = gr.Markdown(elem_classes="gl-figure-title", elem_id=f"{elem_id}-words")
    explain.what_is_this(figure.name)
    with gr.Row():
        plots = [
            gr.Plot(
                show_label=False,
                label=figure.title,
                container=False,
                min_width=280,
                elem_id=f"{elem_id}-{index}",
            )
            for index in range(len(figure.plots))
        ]
    return [text, *plots]


def words(figure: Figure, sentence: str) -> str:
    """Title and sentence of a figure, as Markdown."""
    return f"### {figure.title}\n{unbroken(sentence)}"


def _blocks(result: RunResult) -> list[str]:
    return [f"{start}:{stop}" for start, stop in result.cut.blocks]
