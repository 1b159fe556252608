"""Switches of the Operator tab: put S, A, a strength or a rank into the model and measure what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr
import pandas as pd
from gradio.components import Component
from pandas.io.formats.style import Styler

from ghostlab.plots import formats as fmt
from ghostlab.plots import style
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.rows import rows
from ghostlab.results.probe import PARTS, Alteration, Part, Probe
from ghostlab.results.records import RecoveryRun
from ghostlab.results.run import RunResult
from ghostlab.ui import explain, html
from ghostlab.ui.page import JobButtons, Outputs, Page, Tab, job_progress
from ghostlab.ui.service import requests

_PARTS = [("S + A, the whole map", "whole"), ("S only", "symmetric"), ("A only", "antisymmetric")]
SWEPT: dict[Part, tuple[float, ...]] = {
    "whole": (0.25, 0.5, 0.75, 1.25),
    "symmetric": (0.5, 1.0),
    "antisymmetric": (0.5, 1.0),
}
"""Strengths that are tried of each part."""
MOST_TEXTS = 3
_WIDTHS = ["108px", "272px", "102px", "68px", "68px", "66px", "70px", "92px"]
_STRENGTHS = FIGURES["strengths"]
_INTRO = (
    f"### {_STRENGTHS.title}\n"
    "W = I + α M′: choose the part of M, its strength α and its rank. Nothing is fitted again; the altered "
    "map is measured on the run's held-out text and continues its prompt."
)


def best(result: RunResult) -> int:
    """The recovery with the lowest perplexity of those that have an operator."""
    known = [index for index, run in enumerate(result.runs) if run.operators]
    return min(known, key=lambda index: result.runs[index].perplexity.value, default=0)


def build(page: Page, recovery: Component) -> Tab:
    """Part, strength, rank, buttons; below them what was tried so far.

    ``recovery`` chooses whose map is altered.
    """
    gr.Markdown(_INTRO, elem_classes="gl-figure-title")
    explain.what_is_this("strengths")
    with gr.Row():
        part = gr.Radio(_PARTS, value="whole", label="Part of M", elem_id="probe-part", min_width=260)
        alpha = gr.Slider(
            0.0, 1.5, 1.0, step=0.05, label="Strength α (0 drops plainly, 1 as fitted)", min_width=260,
            elem_id="probe-alpha",
        )  # fmt: skip
        rank = gr.Slider(
            1, 2, 2, step=1, label="Rank kept (all the way right: the whole part)", min_width=260,
            elem_id="probe-rank",
        )  # fmt: skip
    with gr.Row():
        start = gr.Button("Put it into the model", variant="primary", elem_id="probe", min_width=140)
        sweep = gr.Button("Try all parts and strengths", elem_id="probe-sweep", min_width=140)
        stop = gr.Button("Stop", variant="stop", interactive=False, elem_id="probe-stop", min_width=90)
    going = job_progress("probe")
    words = gr.Markdown(elem_classes="gl-figure-title", elem_id="probe-words")
    plot = gr.Plot(show_label=False, label="Strength", container=False, elem_id="probe-strengths")
    table = gr.Dataframe(
        interactive=False, show_label=False, label="Tried so far", column_widths=_WIDTHS, max_height=320,
        elem_id="probes-table",
    )  # fmt: skip
    texts = gr.HTML(elem_id="probe-texts")

    def render(result: RunResult) -> list[Any]:
        run = latest(result)
        if run is None:
            return ["No recovery of this run has a map to alter.", None, None, ""]
        row = [row for row in rows(result) if row.run is run]
        shown = gr.Dataframe(value=table_of(result.probes), visible=bool(result.probes))
        return [fmt.unbroken(_STRENGTHS.sentence(row)), *_STRENGTHS.figures(row), shown, texts_of(result)]

    def probe(owner: str, shown: str, label: str | None, *values: Any) -> str:
        how, strength, kept = values
        asked = [Alteration(how, float(strength), int(kept))]
        return requests.probe(page.service, owner, shown, label, asked)

    def probe_parts(owner: str, shown: str, label: str | None) -> str:
        return requests.probe(page.service, owner, shown, label, swept_parts())

    page.buttons.append(JobButtons([start, sweep], stop, going))
    page.on_start(start.click, probe, [page.shown, recovery, part, alpha, rank])
    page.on_start(sweep.click, probe_parts, [page.shown, recovery])
    return Tab(Outputs([rank], _whole_rank), Outputs([words, plot, table, texts], render))


def swept_parts() -> list[Alteration]:
    """The whole map at several strengths, and each part of it."""
    return [Alteration(part=part, alpha=alpha) for part in PARTS for alpha in SWEPT[part]]


def _whole_rank(result: RunResult) -> list[Any]:
    width = result.model.hidden_size
    return [gr.Slider(maximum=width, value=width)]


def latest(result: RunResult) -> RecoveryRun | None:
    """The recovery that was probed last; before the first probe the best one with a map."""
    labels = [probe.label for probe in result.probes]
    known = [run for run in result.runs if labels and run.label == labels[-1]]
    first = result.runs[best(result)] if result.runs else None
    return known[0] if known else first if first and first.operators else None


def table_of(probes: Sequence[Probe]) -> Styler:
    """One row per probe, the latest first; numbers stay numbers."""
    rows = [
        {
            "Recovery": probe.label,
            "Put in": probe.alteration.name,
            "Perplexity": probe.perplexity.value,
            "low": probe.perplexity.low,
            "high": probe.perplexity.high,
            "KL": probe.kl.value,
            "Top-1": probe.top1_agreement.value,
            "Added": probe.parameters_added,
        }
        for probe in reversed(probes)
    ]
    frame = pd.DataFrame(
        rows, columns=["Recovery", "Put in", "Perplexity", "low", "high", "KL", "Top-1", "Added"]
    )
    formats: dict[str, Any] = dict.fromkeys(("Perplexity", "low", "high", "KL"), fmt.number)
    styler: Styler = frame.style.format({**formats, "Top-1": fmt.percent, "Added": fmt.count})
    return styler


def texts_of(result: RunResult) -> str:
    """Continuations of the run's prompt: original, pruned, and the latest probes."""
    prompt = result.config.prompt
    spoken = [p for p in reversed(result.probes) if p.generation and p.prompt == prompt][:MOST_TEXTS]
    if not spoken:
        return ""
    made = {one.variant: one for one in result.generations if one.variant in {"original", "pruned"}}
    names = {f"{p.label}: {p.alteration.name}": p for p in spoken}
    made |= {name: p.generation for name, p in names.items() if p.generation is not None}
    notes = {name: f"perplexity {fmt.number(p.perplexity.value)}" for name, p in names.items()}
    columns = [
        html.Column(name, colour, prompt, one, note=notes.get(name, ""))
        for (name, one), colour in zip(made.items(), style.colours(len(made)), strict=False)
    ]
    return html.columns(columns, live=True)
