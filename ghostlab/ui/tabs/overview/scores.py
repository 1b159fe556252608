"""The scores of a criterion, as a chart and as a list that both let one choose the blocks to drop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.cut import Cut, parse_cut
from ghostlab.errors import CutError
from ghostlab.plots import formats as fmt
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.figures.selection import by_score
from ghostlab.plots.rows import rows
from ghostlab.results.records import SelectionInfo
from ghostlab.results.run import RunResult
from ghostlab.ui import explain, theme


@dataclass(frozen=True)
class Choice:
    """The part of a page on a criterion's scores.

    Attributes:
        components: What :meth:`render` gives values for, in order.
        take: List of candidates, best first.
        clicked: Fires ``select`` with a candidate when its dot is clicked.
    """

    components: list[Component]
    take: gr.Dropdown
    clicked: gr.HTML

    def render(self, result: RunResult) -> list[Any]:
        """Values of ``components``; hidden when the blocks were named by hand."""
        info = result.selection
        if info is None:
            return [gr.Column(visible=False), "", None, gr.Dropdown(choices=[], value=None)]
        figure = FIGURES["scores"]
        words = f"### {figure.title}\n{figure.sentence(rows(result))} {_hint(info)}"
        listed = [(f"{label}: {fmt.number(score)}", label) for label, score in by_score(info)]
        return [
            gr.Column(visible=True),
            words,
            *figure.figures(rows(result)),
            gr.Dropdown(choices=listed, value=None),
        ]


def build() -> Choice:
    """Words, chart and list in a column that is hidden at first."""
    with gr.Column(visible=False, elem_id="choice") as box:
        words = gr.Markdown(elem_classes="gl-figure-title")
        explain.what_is_this("scores")
        plot = gr.Plot(show_label=False, label="Scores of the criterion", container=False, elem_id="scores")
        take = gr.Dropdown(
            [], value=None, label="Drop another candidate", info="As a click on its dot; by score.",
            interactive=True, elem_id="take",
        )  # fmt: skip
        clicked = gr.HTML("", js_on_load=theme.static("scores.js"), elem_id="clicked")
    return Choice([box, words, plot, take], take, clicked)


def _hint(info: SelectionInfo) -> str:
    if _single(info):
        return "Click a layer to take it into the blocks that the next run drops, or out of them."
    return "Click another block to drop that one in the next run."


def _single(info: SelectionInfo) -> bool:
    """Whether candidates are single layers of which several go."""
    return len(parse_cut(info.chosen).dropped) > 1 and all(
        len(parse_cut(label).dropped) == 1 for label in info.labels
    )


def taken(info: SelectionInfo, label: str, asked: str | None) -> str:
    """The blocks to drop after ``label`` was picked.

    A block replaces what was chosen; a single layer is taken into it, or out of it.

    Args:
        info: The scores that were shown.
        label: The candidate.
        asked: Blocks that are named already; ``None`` when the criterion decides.
    """
    if not _single(info):
        return label
    try:
        before = set(parse_cut(asked or info.chosen).dropped)
    except CutError:
        before = set(parse_cut(info.chosen).dropped)
    after = before ^ set(parse_cut(label).dropped)
    return str(Cut.of_layers(after)) if after else label
