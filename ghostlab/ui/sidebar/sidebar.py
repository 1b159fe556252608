"""The sidebar: where a run is put together, and Run and Stop."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from ghostlab.config import RunConfig
from ghostlab.pruning.registry import CRITERIA
from ghostlab.recovery.registry import OPERATORS
from ghostlab.results.atlas import scores_from_atlas
from ghostlab.ui import explain
from ghostlab.ui.page import Page, on
from ghostlab.ui.sidebar import controls, picker, scores
from ghostlab.ui.sidebar.controls import FIRST_CRITERION
from ghostlab.ui.sidebar.picker import BY_CRITERION, BY_HAND

_AMOUNTS = (
    "**How much text:** sequences of so many tokens each to fit on, and held-out ones of the same length to "
    "evaluate on; 0 held-out for all that there are, as the papers do."
)


def build(page: Page) -> None:
    """Lay the sidebar out and put its controls into the page."""
    with gr.Sidebar(width=348, elem_id="sidebar"):
        own, upload = controls.source(page.service.settings)
        page.controls |= own
        with gr.Group(elem_id="cut"):
            _cut(page)
        page.controls |= controls.operators(RunConfig.recover)
        with gr.Accordion("What are these?", open=False, elem_id="operators-explained"):
            _markdown("operators-words", explain.operators(OPERATORS.values()))
        gr.Markdown(_AMOUNTS, elem_classes="gl-hint")
        page.controls |= controls.rows(controls.AMOUNTS)
        with gr.Accordion("Generation", open=False):
            page.controls |= controls.rows(controls.GENERATION)
        with gr.Accordion("More settings", open=False):
            page.controls |= controls.rows(controls.MORE)
        with gr.Row(elem_classes="gl-buttons"):
            page.run.render()
            stop = gr.Button("Stop", variant="stop", interactive=False, elem_id="stop", min_width=80)
    page.stop_buttons.append(stop)

    def take(path: str, request: gr.Request) -> str:
        """A text file that is good becomes the text."""
        source, about = page.service.uploads.take(Path(path), request.session_hash or "")
        gr.Info(f"{about} It is the text of the next run.", title="File taken", duration=6)
        return source

    on(upload.upload, take, upload, page.controls["text"])


def _cut(page: Page) -> None:
    """Blocks by hand, on the picker or in words, or by criterion: one of the two is hidden."""
    example = page.service.example_atlas
    first = replace(RunConfig(), drop=None, select=FIRST_CRITERION)
    chooser = gr.Radio([BY_HAND, BY_CRITERION], value=BY_HAND, label="Drop", elem_id="chooser")
    blocks = picker.build(RunConfig(), scores_from_atlas(example, first) if example else None)
    page.controls |= {"chooser": chooser, **controls.cut()}
    drop, count = page.controls["drop"], page.controls["count"]
    select: Any = page.controls["select"]
    with gr.Column(visible=False, elem_id="criterion") as box:
        with gr.Row(elem_id="score-buttons"):
            start = gr.Button("Score blocks", elem_id="score", min_width=120, scale=2)
            stop = gr.Button("Stop", variant="stop", interactive=False, elem_id="score-stop", min_width=80)
        page.found["scores"] = gr.Textbox("", visible=False, label="Scores")
        page.job_buttons("score", [start], stop)
        words = _markdown("criterion-words", describe(FIRST_CRITERION))
        with gr.Accordion("What are the others?", open=False, elem_id="criteria-explained"):
            _markdown("criteria-words", explain.criteria(CRITERIA.values()))

    def choose(kind: str) -> list[Any]:
        by_hand = kind == BY_HAND
        return [
            gr.HTML(by_hand=by_hand),  # how the picker reads clicks
            gr.Textbox(visible=by_hand),
            *(part(visible=not by_hand) for part in (gr.Dropdown, gr.Column, gr.Number)),
        ]

    on(chooser.change, choose, chooser, [blocks, drop, select, box, count], queue=False)
    on(select.change, describe, select, words)
    page.wires += [partial(picker.bind, page, blocks), partial(scores.bind, page, blocks, start)]


def describe(criterion: str | None) -> str:
    """The words on a criterion, whatever its options are."""
    entry = CRITERIA.get((criterion or "").partition(",")[0].strip())
    return "There is no such criterion." if entry is None else explain.criterion(entry)


def _markdown(elem_id: str, text: str) -> gr.Markdown:
    return gr.Markdown(text, elem_id=elem_id, elem_classes="gl-explained", latex_delimiters=explain.LATEX)
