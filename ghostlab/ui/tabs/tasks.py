"""Tasks: zero-shot questions answered by the original, the pruned and every recovered model."""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import Any

import gradio as gr
import pandas as pd

from ghostlab.evaluation.tasks import INSTALL
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.figures import tasks as figures
from ghostlab.plots.rows import rows
from ghostlab.results.run import RunResult
from ghostlab.ui import explain
from ghostlab.ui.page import JobButtons, Outputs, Page, Tab, job_progress
from ghostlab.ui.service import requests
from ghostlab.ui.tabs import panels

FIRST = ["arc_easy", "piqa", "hellaswag"]
LIMIT = 50
_INTRO = (
    "Every model of the shown run answers questions from lm-evaluation-harness, zero-shot. Contexts are read "
    "once for all choices and models. Fifty questions can resolve differences of about ten points or more; "
    "the paired test says which ones are significant."
)
_LEGEND = f"### Accuracy by task\n{figures.LEGEND}"


def build(page: Page) -> Tab:
    """Tasks, number of questions and their source, Ask and Stop; what is retained; tasks by variants."""
    gr.Markdown(_INTRO, elem_classes="gl-figure-title")
    ready = importlib.util.find_spec("lm_eval") is not None
    if not ready:
        gr.Markdown(f"lm-evaluation-harness is not installed on this host: `{INSTALL}`.")
    with gr.Row(equal_height=True, elem_classes="gl-form"):
        names = gr.Dropdown(
            requests.TASKS, value=FIRST, multiselect=True, label="Tasks", scale=3,
            info="The papers' suites, or single tasks.", min_width=260, elem_id="tasks-names",
        )  # fmt: skip
        limit = gr.Number(
            LIMIT, label="Questions of each", info="The first ones.", precision=0, minimum=1, min_width=130,
            elem_id="tasks-limit",
        )  # fmt: skip
        hub = gr.Checkbox(
            False, label="The papers' splits from the hub", info="Test parts, instead of what is installed.",
            min_width=170, elem_id="tasks-hub", visible=page.hub,
        )  # fmt: skip
        start = gr.Button("Ask", variant="primary", elem_id="tasks-start", min_width=90, visible=ready)
        stop = gr.Button("Stop", variant="stop", interactive=False, elem_id="tasks-stop", min_width=80)
    going = job_progress("tasks", phone=True)
    words = gr.Markdown(elem_id="tasks-words", elem_classes="gl-figure-title")
    explain.what_is_this("retained")
    bars = gr.Plot(show_label=False, label="Retained performance", container=False, elem_id="tasks-retained")
    legend = gr.Markdown(elem_id="tasks-legend", elem_classes="gl-figure-title")
    table = gr.Dataframe(
        interactive=False, show_label=False, label="Accuracy by task", elem_id="tasks-table", visible=False
    )
    about = gr.Markdown(elem_id="tasks-about")
    page.buttons.append(JobButtons([start], stop, going))
    page.on_start(start.click, partial(requests.tasks, page.service), [page.shown, names, limit, hub])
    return Tab(words=Outputs([words, bars, legend, table, about], render))


def render(result: RunResult) -> list[Any]:
    """The sentence, the bars, the legend, the table, and what was asked."""
    found = result.zero_shot
    if found is None:
        return ["", gr.Plot(value=None, visible=False), "", gr.Dataframe(visible=False), ""]
    head, *cells = figures.table(found)
    widths = ["130px", *["180px"] * len(found.tasks), "110px"]
    frame = gr.Dataframe(value=pd.DataFrame(cells, columns=head), column_widths=widths, visible=True)
    figure, given = FIGURES["retained"], rows(result)
    return [
        panels.words(figure, figure.sentence(given)),
        gr.Plot(value=figure.figures(given)[0], visible=True),
        _LEGEND,
        frame,
        "Asked: " + "; ".join(map(figures.about, found.tasks)) + ".",
    ]
