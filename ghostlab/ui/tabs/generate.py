"""Generate: the same prompt continued by every variant, side by side, as it is written."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ghostlab.config import RunConfig, help_of
from ghostlab.jobstate import JobView
from ghostlab.results import RunResult
from ghostlab.ui import present
from ghostlab.ui.tabs.view import Outputs, Page, Tab


def build(_: Page) -> Tab:
    """Prompt and settings of its own, Generate and Stop, and one column per variant."""
    with gr.Row(equal_height=False):
        prompt = gr.Textbox(
            RunConfig.prompt,
            label="Prompt",
            lines=3,
            max_lines=8,
            scale=3,
            min_width=280,
            elem_id="generate-prompt",
        )
        with gr.Column(scale=2, min_width=280):
            with gr.Row():
                tokens = gr.Number(RunConfig.new_tokens, label="New tokens", precision=0, min_width=90)
                temperature = gr.Number(RunConfig.temperature, label="Temperature", step=0.1, min_width=90)
                top_p = gr.Number(RunConfig.top_p, label="Top p", step=0.05, min_width=90)
            with gr.Row():
                start = gr.Button("Generate", variant="primary", elem_id="generate", min_width=120)
                stop = gr.Button(
                    "Stop", variant="stop", interactive=False, elem_id="generate-stop", min_width=90
                )
    gr.Markdown(
        f"{help_of('prompt')} All of them share the same weights; only the dropped blocks differ.",
        elem_classes="gl-figure-title",
    )
    columns = gr.HTML(elem_id="columns")

    def words(result: RunResult) -> list[Any]:
        config = result.config
        return [config.prompt, max(config.new_tokens, 1), config.temperature, config.top_p]

    settings = [prompt, tokens, temperature, top_p]
    controls = {"start": start, "stop": stop, "columns": columns}
    named = dict(zip(("prompt", "new_tokens", "temperature", "top_p"), settings, strict=True))
    return Tab(Outputs(), Outputs(settings, words), {**controls, **named})


def columns_of(result: RunResult, view: JobView[object] | None) -> str:
    """The columns of a result; while its job still writes, what is written so far."""
    texts = {made.variant: made.text for made in result.generations}
    notes = {
        made.variant: f"{made.tokens} tokens, {made.tokens / made.seconds:.0f}/s"
        for made in result.generations
        if made.seconds > 0
    }
    writing = view is not None and view.result is result and not result.generations
    busy = view is not None and writing and not view.finished
    if view is not None and writing:
        texts, notes = dict(view.texts), {}
    return present.columns(present.variants(result), result.config.prompt, texts, notes, busy)
