"""Operator: what the fitted map is, and what parts, strengths and ranks of it do in the model."""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.plots import formats as fmt
from ghostlab.plots import style
from ghostlab.plots.catalog import FIGURES, OPERATOR
from ghostlab.plots.figures.directions import description
from ghostlab.plots.rows import Rows, operators
from ghostlab.results.generation import Generation
from ghostlab.results.operator import Excitement
from ghostlab.results.probe import PARTS, Alteration, Part
from ghostlab.results.run import RunResult
from ghostlab.ui import html
from ghostlab.ui.page import Outputs, Page, Tab
from ghostlab.ui.service import requests
from ghostlab.ui.tabs import panels, tables

_PARTS = [("S + A, the whole map", "whole"), ("S only", "symmetric"), ("A only", "antisymmetric")]
SWEPT: dict[Part, tuple[float, ...]] = {
    "whole": (0.25, 0.5, 0.75, 1.25),
    "symmetric": (0.5, 1.0),
    "antisymmetric": (0.5, 1.0),
}
"""Strengths that are tried of each part."""
MOST_TEXTS = 3
_STRENGTHS = FIGURES["strengths"]
_INTRO = (
    f"### {_STRENGTHS.title}\n"
    "W = I + α M′: choose the part of M, its strength α and its rank. Nothing is fitted again; the altered "
    "map is measured on the run's held-out text and continues its prompt."
)


def build(page: Page) -> Tab:
    """Figures on one recovery's map, and switches that put a part of it into the model."""
    drawn = panels.build(
        page, "operator", OPERATOR, by_run=True, by_block=True, more={"directions": _directions}
    )
    tried = switches(page, drawn.figures.components[0])
    return Tab(drawn.figures + tried.figures, tried.words)


def _directions(rows: Rows) -> str:
    """Each direction with its channels and tokens."""
    lines = [description(one, _quote) for _, report in operators(rows) for one in report.directions]
    return "\n" + "".join(f"\n{number}. {line}" for number, line in enumerate(lines, start=1))


def _quote(token: Excitement) -> str:
    """The token in its context, as code, so that nothing of it is read as Markdown."""
    before, own = (part.replace("`", "'").replace("\n", "⏎") for part in (token.before, token.token))
    mark = " (massive)" if token.massive else ""
    own = own if own.strip() else "␣"
    return f"`{before}`**`{own}`**{mark}" if before.strip() else f"**`{own}`**{mark}"


def switches(page: Page, recovery: Component) -> Tab:
    """Part, strength, rank, buttons; below them what was tried so far. ``recovery`` chooses whose map."""
    panels.prose(_INTRO)
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
        stop = panels.stop_button("probe")
    page.job_buttons("probe", [start, sweep], stop)
    places = panels.slot(_STRENGTHS, "probe")
    table = panels.table("Tried so far", "probes-table", column_widths=tables.PROBE_WIDTHS, max_height=320)
    texts = gr.HTML(elem_id="probe-texts")

    def render(result: RunResult) -> list[Any]:
        row = panels.recovery_with_map(result)
        if row is None:
            return ["No recovery of this run has a map to alter.", None, None, ""]
        tried = gr.Dataframe(value=tables.probes(result.probes), visible=bool(result.probes))
        return [fmt.unbroken(_STRENGTHS.sentence([row])), *_STRENGTHS.figures([row]), tried, texts_of(result)]

    def probe(owner: str, shown: str, label: str | None, *values: Any) -> str:
        kind, strength, kept = values
        altered = Alteration(kind, float(strength), int(kept))
        return requests.probe(page.service, owner, shown, label, [altered])

    def probe_parts(owner: str, shown: str, label: str | None) -> str:
        return requests.probe(page.service, owner, shown, label, swept_parts())

    page.on_start(start.click, probe, [page.shown, recovery, part, alpha, rank])
    page.on_start(sweep.click, probe_parts, [page.shown, recovery])
    return Tab(Outputs([rank], _whole_rank), Outputs([*places, table, texts], render))


def swept_parts() -> list[Alteration]:
    """The whole map at several strengths, and each part of it."""
    return [Alteration(part=part, alpha=alpha) for part in PARTS for alpha in SWEPT[part]]


def _whole_rank(result: RunResult) -> list[Any]:
    width = result.model.hidden_size
    return [gr.Slider(maximum=width, value=width)]


def texts_of(result: RunResult) -> str:
    """Continuations of the run's prompt: original, pruned, and the latest probes."""
    prompt = result.config.prompt
    probes = [probe for probe in reversed(result.probes) if probe.generation and probe.prompt == prompt]
    if not probes:
        return ""
    ends = [one for one in result.generations if one.variant in {"original", "pruned"}]
    made: list[tuple[str, Generation | None, str]] = [(one.variant, one, "") for one in ends]
    for probe in probes[:MOST_TEXTS]:
        note = f"perplexity {fmt.number(probe.perplexity.value)}"
        made.append((f"{probe.label}: {probe.alteration.name}", probe.generation, note))
    columns = [
        html.Column(name, colour, prompt, one, note=note)
        for (name, one, note), colour in zip(made, style.colours(len(made)), strict=False)
    ]
    return html.columns(columns, live=True)
