"""Generate: the same prompt continued by every variant, side by side, as it is written."""

from __future__ import annotations

import html as markup
from functools import partial
from typing import Any, get_args

import gradio as gr

from ghostlab.config import PromptFormat, RunConfig
from ghostlab.jobs.record import JobView
from ghostlab.plots import style, tokens
from ghostlab.results.run import RunResult
from ghostlab.ui import explain, html
from ghostlab.ui.page import Outputs, Page, Tab
from ghostlab.ui.service import requests
from ghostlab.ui.tabs import panels

_HOW = (
    "Every variant continues the prompt with the same weights; they differ only where layers were dropped. "
    "The original then reads what each one wrote: point at a token, tap it, or reach it with Tab and the "
    "arrow keys to see its log-probability under both models."
)


def build(page: Page) -> Tab:
    """Prompt and settings of its own, Generate and Stop, and one column per variant."""
    with gr.Row(equal_height=False):
        prompt = gr.Textbox(
            RunConfig.prompt, label="Prompt", lines=5, max_lines=8, scale=3, min_width=280,
            elem_id="generate-prompt",
        )  # fmt: skip
        with gr.Column(scale=2, min_width=280):
            with gr.Row():
                form = gr.Dropdown(
                    list(get_args(PromptFormat)), value=RunConfig.prompt_format, label="Prompt format",
                    elem_id="generate-format", min_width=120,
                )  # fmt: skip
                new_tokens = gr.Number(RunConfig.new_tokens, label="New tokens", precision=0, min_width=120)
            with gr.Row():
                temperature = gr.Number(RunConfig.temperature, label="Temperature", step=0.1, min_width=120)
                top_p = gr.Number(RunConfig.top_p, label="Top p", step=0.05, min_width=120)
            with gr.Row():
                start = gr.Button("Generate", variant="primary", elem_id="generate", min_width=120)
                stop = panels.stop_button("generate")
    page.job_buttons("generate", [start], stop, phone=True)
    panels.prose(_HOW)
    explain.what_is_this("generated")
    lead = gr.Markdown(elem_classes="gl-lead", elem_id="generate-lead")
    columns = gr.HTML(elem_id="columns")

    def words(result: RunResult) -> list[Any]:
        c = result.config
        return [c.prompt, c.prompt_format, max(c.new_tokens, 1), c.temperature, c.top_p]

    settings = [prompt, form, new_tokens, temperature, top_p]
    page.on_start(start.click, partial(requests.generate, page.service), [page.shown, *settings])
    live = Outputs([lead, columns], lambda result, view: [lead_of(result), columns_of(result, view)])
    return Tab(words=Outputs(settings, words), live=live)


def lead_of(result: RunResult) -> str:
    """How the prompt was put, and what the continuations show: one paragraph, empty before the first one."""
    made = result.generations
    if not made:
        return ""
    chat = made[0].prompt_format == "chat"
    put = "sent as a chat message, in the model's template" if chat else "continued as it stands"
    return f"The prompt was {put}. {markup.escape(tokens.sentence(made))}"


def columns_of(result: RunResult, view: JobView[object] | None) -> str:
    """The columns of a result; while its job still writes, what is written so far."""
    made = {one.variant: one for one in result.generations}
    names = ["original", "pruned", *(run.label for run in result.runs)]
    ours = view if view is not None and view.result is result else None
    texts = {} if ours is None else ours.texts
    busy = ours is not None and not ours.finished and len(made) < len(names)
    columns = [
        html.Column(name, colour, result.config.prompt, made.get(name), texts.get(name))
        for name, colour in zip(names, style.colours(len(names)), strict=False)
    ]
    return html.columns(columns, live=True, busy=busy)
