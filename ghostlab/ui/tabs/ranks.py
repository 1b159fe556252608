"""Ranks of the Spectrum tab: what a rank costs and explains at once, and what it does once it is measured."""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.plots import explained, sentences, style
from ghostlab.plots.figures import probes as figures
from ghostlab.plots.formats import unbroken
from ghostlab.results.probe import FACTORS, Factor
from ghostlab.results.records import RecoveryRun
from ghostlab.results.run import RunResult
from ghostlab.ui import explain
from ghostlab.ui.page import job_progress
from ghostlab.ui.tabs.operator.switches import best
from ghostlab.ui.tabs.view import Outputs, Page, Tab

_INTRO = (
    f"### {explained.title('ranks')}\n"
    "The slider says what a rank would explain and cost, and what is to be expected of it between ranks that "
    "were measured. *Measure* takes the factors from the fitted map, puts them into the model and measures "
    "that on the run's held-out text; letting the slider go does the same on a run of your own."
)
LOW = 8
"""The slider begins at this part of the width where no rank is suggested."""
_NONE = "No recovery of this run has a map to take a rank of."


def build(page: Page) -> Tab:
    """Recovery, factorisation and rank; buttons; and the measured curves."""
    gr.Markdown(_INTRO, elem_classes="gl-figure-title")
    explain.what_is_this("ranks")
    with gr.Row():
        recovery = gr.Radio([], label="Recovery", interactive=True, elem_id="rank-recovery", min_width=200)
        factor = gr.Radio(
            [(name, key) for key, name in FACTORS.items()], value="reduced_rank", label="Factorisation",
            elem_id="rank-factor", min_width=260,
        )  # fmt: skip
        rank = gr.Slider(1, 2, 2, step=1, label="Rank kept", elem_id="rank-kept", min_width=260)
    told = gr.Markdown(elem_id="rank-words")
    with gr.Row():
        start = gr.Button("Measure this rank", variant="primary", elem_id="rank-measure", min_width=140)
        many = gr.Button("Measure several ranks", elem_id="rank-sweep", min_width=140)
        stop = gr.Button("Stop", variant="stop", interactive=False, elem_id="rank-stop", min_width=90)
        use = gr.Button("Use in next run", elem_id="rank-use", min_width=140)
    going = job_progress("rank")
    words = gr.Markdown(elem_classes="gl-figure-title", elem_id="ranks-words")
    with gr.Row():
        plots = [
            gr.Plot(show_label=False, label=title, container=False, min_width=280, elem_id=f"ranks-{index}")
            for index, title in enumerate(("Perplexity by rank", "KL by rank"))
        ]

    def tell(shown: str, label: str | None, how: Factor, asked: float) -> str:
        return _told(page.result(shown), label, how, int(asked))

    def follow(shown: str, label: str | None, how: Factor, asked: float) -> list[Any]:
        return _followed(page.result(shown), label, how, int(asked))

    def redraw(shown: str, label: str | None) -> list[Any]:
        return _measured(page.result(shown), label)

    quiet: dict[str, Any] = {
        "show_progress": "hidden",
        "api_visibility": "private",
        "concurrency_limit": None,
    }
    at: list[Component] = [page.shown, recovery, factor, rank]
    changes = [recovery.input, factor.input, rank.change]
    gr.on(changes, tell, at, told, trigger_mode="always_last", **quiet)
    page.shown.change(follow, at, [rank, told], **quiet)
    recovery.input(redraw, [page.shown, recovery], [words, *plots], **quiet)
    controls = {"start": start, "start_sweep": many, "stop": stop, "progress": going, "use": use}
    return Tab(
        Outputs([recovery, factor, rank, told], _fresh),
        Outputs([words, *plots], lambda result: _measured(result, None)),
        controls={**controls, "recovery": recovery, "factor": factor, "rank": rank},
    )


def _names(result: RunResult) -> list[str]:
    """Recoveries that have a map."""
    return [run.label for run in result.runs if run.operators]


def _chosen(result: RunResult, label: str | None) -> RecoveryRun | None:
    """The recovery of that label; else the one probed last, else the best."""
    labels = [label or "", *(probe.label for probe in reversed(result.probes))]
    known = {run.label: run for run in result.runs if run.operators}
    found = next((known[name] for name in labels if name in known), None)
    return found or (result.runs[best(result)] if known else None)


def _fresh(result: RunResult) -> list[Any]:
    names, run = _names(result), _chosen(result, None)
    chosen = gr.Radio(choices=names, value=run.label if run else None, visible=len(names) > 1)
    rank = _suggested(result, run, "reduced_rank") or max(result.model.hidden_size // LOW, 1)
    slider = gr.Slider(maximum=result.model.hidden_size, value=rank)
    return [chosen, "reduced_rank", slider, _told(result, None, "reduced_rank", rank)]


def _suggested(result: RunResult, run: RecoveryRun | None, factor: Factor) -> int | None:
    best = result.rank_sweep(run, factor).suggested if run else None
    return best.alteration.rank if best else None


def _followed(result: RunResult, label: str | None, factor: Factor, rank: int) -> list[Any]:
    """Slider and words once there is news: after several ranks were measured, the suggested one is taken."""
    last = result.probes[-1] if result.probes else None
    swept = last is not None and last.alteration.rank is not None and last.generation is None
    found = _suggested(result, _chosen(result, label), factor) if swept else None
    return [found or gr.skip(), _told(result, label, factor, found or rank)]


def _told(result: RunResult, label: str | None, factor: Factor, rank: int) -> str:
    run = _chosen(result, label)
    if run is None:
        return _NONE
    words = sentences.rank_at(run.operators[0], rank, factor)
    start, stop = run.operators[0].block
    words = words if len(run.operators) == 1 else f"Block {start}:{stop}: {words}"
    return unbroken(f"{words} {sentences.rank_expected(result, run, rank, factor)}".strip())


def _measured(result: RunResult, label: str | None) -> list[Any]:
    run = _chosen(result, label)
    if run is None:
        return [_NONE, style.empty(_NONE), style.empty(_NONE)]
    return [
        unbroken(sentences.ranks(result, run)),
        figures.ranks(result, run),
        figures.ranks(result, run, "kl"),
    ]
