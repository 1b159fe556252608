"""Tabs made of figures, each with its title, its one sentence and its explanation; at most two choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
import plotly.graph_objects as go
from gradio.components import Component

from ghostlab.plots import explained, style
from ghostlab.plots.formats import unbroken
from ghostlab.results.run import RunResult
from ghostlab.ui import explain
from ghostlab.ui.tabs.view import Outputs, Page, Tab

ALL_BLOCKS = "all together"


@dataclass(frozen=True)
class Choice:
    """Which part of a result is shown: one recovery, and one dropped block or all (``None``)."""

    run: int = 0
    block: int | None = None


Drawing = tuple[str, list[go.Figure]]


@dataclass(frozen=True)
class Panel:
    """One figure of :data:`ghostlab.plots.explained.FIGURES`, or ``count`` plots of it side by side.

    ``draw`` gives the sentence and the plots.
    """

    figure: str
    draw: Callable[[RunResult, Choice], Drawing]
    count: int = 1


def build(
    page: Page,
    name: str,
    panels: Sequence[Panel],
    *,
    by_run: bool = False,
    by_block: bool = False,
    whole: bool = False,
    first: Callable[[RunResult], int] = lambda _: 0,
) -> Tab:
    """Lay out ``panels`` below one another, with choosers for recovery and block where asked for.

    Args:
        name: Prefix of the elements' ids.
        by_run: Offer a choice of recovery.
        by_block: Offer a choice of dropped block, shown when there are several.
        whole: Offer all blocks together too, and first.
        first: Which recovery is shown until another is chosen.
    """
    with gr.Row():
        run = gr.Radio(
            [], label="Recovery", visible=by_run, interactive=True, elem_id=f"{name}-recovery", min_width=260
        )
        block = gr.Radio(
            [],
            label="Dropped blocks",
            visible=False,
            interactive=True,
            elem_id=f"{name}-block",
            min_width=260,
        )
    places: list[Component] = []
    for panel in panels:
        places += _slot(f"{name}-{panel.figure}", panel)

    def draw(result: RunResult, choice: Choice) -> list[Any]:
        return [value for panel in panels for value in _drawn(panel, result, choice)]

    def render(result: RunResult) -> list[Any]:
        names, blocks = _names(result), _blocks(result, whole)
        name = names[first(result)] if names else None
        chosen = gr.Radio(choices=names, value=name, visible=by_run and len(names) > 1)
        parts = gr.Radio(choices=blocks, value=blocks[0], visible=by_block and len(result.cut.blocks) > 1)
        return [chosen, parts, *draw(result, _choice(result, name, blocks[0]))]

    def choose(shown: str, label: str | None, part: str | None) -> list[Any]:
        result = page.result(shown)
        return draw(result, _choice(result, label, part))

    if by_run or by_block:
        gr.on(
            [run.input, block.input],
            choose,
            [page.shown, run, block],
            places,
            show_progress="hidden",
            api_visibility="private",
            concurrency_limit=None,
            trigger_mode="always_last",
        )
    return Tab(Outputs([run, block, *places], render))


def _slot(elem_id: str, panel: Panel) -> list[Component]:
    words = gr.Markdown(elem_classes="gl-figure-title", elem_id=f"{elem_id}-words")
    explain.what_is_this(panel.figure)
    label = explained.title(panel.figure)
    with gr.Row():
        plots = [
            gr.Plot(show_label=False, label=label, container=False, min_width=280, elem_id=f"{elem_id}-{i}")
            for i in range(panel.count)
        ]
    return [words, *plots]


def _drawn(panel: Panel, result: RunResult, choice: Choice) -> list[Any]:
    sentence, figures = panel.draw(result, choice)
    return [f"### {explained.title(panel.figure)}\n{unbroken(sentence)}", *figures]


def _names(result: RunResult) -> list[str]:
    return [role.name for role in style.roles(result.runs)]


def _blocks(result: RunResult, whole: bool) -> list[str]:
    return [ALL_BLOCKS] * whole + [f"{start}:{stop}" for start, stop in result.cut.blocks]


def _choice(result: RunResult, label: str | None, part: str | None) -> Choice:
    """The choice that the two choosers say; the first recovery when theirs is not in this result."""
    names, blocks = _names(result), _blocks(result, whole=False)
    run = names.index(label) if label in names else 0
    return Choice(run, blocks.index(part) if part in blocks and len(blocks) > 1 else None)
