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
from ghostlab.ui.page import Outputs, Page, Tab
from ghostlab.ui.service import requests
from ghostlab.ui.tabs import panels

FIRST = ["arc_easy", "piqa", "hellaswag"]
LIMIT = 50
_RETAINED = FIGURES["retained"]
_INTRO = (
    "Every model of the shown run answers questions from lm-evaluation-harness, zero-shot. Contexts are read "
    "once for all choices and models. Fifty questions can resolve differences of about ten points or more; "
    "the paired test says which ones are significant."
)
_LEGEND = f"### Accuracy by task\n{figures.LEGEND}"


def build(page: Page) -> Tab:
    """Tasks, number of questions and their source, Ask and Stop; what is retained; tasks by variants."""
    panels.prose(_INTRO)
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
            min_width=170, elem_id="tasks-hub", visible=page.service.settings.limits.hub_models,
        )  # fmt: skip
        start = gr.Button("Ask", variant="primary", elem_id="tasks-start", min_width=90, visible=ready)
        stop = panels.stop_button("tasks")
    page.job_buttons("tasks", [start], stop, phone=True)
    places = panels.slot(_RETAINED, "tasks")
    legend = panels.prose(elem_id="tasks-legend")
    table = panels.table("Accuracy by task", "tasks-table", visible=False)
    about = gr.Markdown(elem_id="tasks-about")
    page.on_start(start.click, partial(requests.tasks, page.service), [page.shown, names, limit, hub])
    return Tab(words=Outputs([*places, legend, table, about], render))


def render(result: RunResult) -> list[Any]:
    """The sentence, the bars, the legend, the table, and what was asked."""
    found = result.zero_shot
    if found is None:
        return ["", gr.Plot(value=None, visible=False), "", gr.Dataframe(visible=False), ""]
    head, *cells = figures.table(found)
    widths = ["130px", *["180px"] * len(found.tasks), "110px"]
    (bars,) = _RETAINED.figures(rows(result))
    return [
        panels.words(_RETAINED, rows(result)),
        gr.Plot(value=bars, visible=True),
        _LEGEND,
        gr.Dataframe(value=pd.DataFrame(cells, columns=head), column_widths=widths, visible=True),
        "Asked: " + "; ".join(map(figures.about, found.tasks)) + ".",
    ]
