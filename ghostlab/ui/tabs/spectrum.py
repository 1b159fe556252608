"""Spectrum & rank: how many directions the fitted map needs, and what a rank costs, explains and does."""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.plots import style
from ghostlab.plots.catalog import FIGURES, SPECTRUM
from ghostlab.plots.figures.probes import rank_expected
from ghostlab.plots.figures.spectrum import rank_at
from ghostlab.plots.formats import unbroken
from ghostlab.plots.rows import Row
from ghostlab.results.probe import FACTORS, Alteration, Factor
from ghostlab.results.run import RunResult
from ghostlab.ui.page import Outputs, Page, Tab, on
from ghostlab.ui.service import requests
from ghostlab.ui.service.service import Service
from ghostlab.ui.tabs import panels

_RANKS = FIGURES["ranks"]
_INTRO = (
    f"### {_RANKS.title}\n"
    "The slider says what a rank would explain and cost, and what to expect of it between measured ranks. "
    "*Measure* takes the factors from the fitted map, puts them into the model and evaluates that on the "
    "run's held-out text; releasing the slider does the same for a run computed here."
)
LOW = 8
"""The slider begins at this part of the width where no rank is suggested."""
LOWEST = 8
UPPER = (5, 6, 7)
"""Eighths of the width that are swept above its half."""
_NONE = "No recovery of this run has a map to take a rank of."


def build(page: Page) -> Tab:
    """Figures on the singular values and on truncation; ranks to be put into the model."""
    drawn = panels.build(page, "spectrum", SPECTRUM, by_block=True).figures
    panels.prose(_INTRO)
    with gr.Row():
        recovery = gr.Radio([], label="Recovery", interactive=True, elem_id="rank-recovery", min_width=200)
        factor = gr.Radio(
            [(name, key) for key, name in FACTORS.items()], value="reduced_rank", label="Factorisation",
            elem_id="rank-factor", min_width=260,
        )  # fmt: skip
        rank = gr.Slider(1, 2, 2, step=1, label="Rank kept", elem_id="rank-kept", min_width=260)
    words = gr.Markdown(elem_id="rank-words")
    with gr.Row():
        start = gr.Button("Measure this rank", variant="primary", elem_id="rank-measure", min_width=140)
        many = gr.Button("Measure several ranks", elem_id="rank-sweep", min_width=140)
        stop = panels.stop_button("rank")
        use = gr.Button("Use in next run", elem_id="rank-use", min_width=140)
    page.job_buttons("rank", [start, many], stop)
    places = panels.slot(_RANKS, "ranks")

    def say(shown: str, label: str | None, how: Factor, kept: float) -> str:
        return _rank_words(panels.recovery_with_map(page.service.result(shown), label), how, int(kept))

    def follow(shown: str, label: str | None, how: Factor, kept: float) -> list[Any]:
        return _after_probe(page.service.result(shown), label, how, int(kept))

    def redraw(shown: str, label: str | None) -> list[Any]:
        return _plots(page.service.result(shown), label)

    at: list[Component] = [page.shown, recovery, factor, rank]
    changes = [recovery.input, factor.input, rank.change]
    on(changes, say, at, words, trigger_mode="always_last")
    on(page.shown.change, follow, at, [rank, words])
    on(recovery.input, redraw, [page.shown, recovery], places)

    def queue(owner: str, shown: str, label: str | None, how: Factor, kept: float) -> str:
        return requests.probe(page.service, owner, shown, label, [Alteration(rank=int(kept), factor=how)])

    def queue_many(owner: str, shown: str, label: str | None) -> str:
        width = page.service.result(shown).model.hidden_size
        return requests.probe(page.service, owner, shown, label, swept_ranks(width))

    def release(owner: str, shown: str, job: str, *values: Any) -> str:
        return queue(owner, shown, *values) if at_once(page.service, shown, job) else ""

    def use_rank(shown: str, kept: float) -> int | None:
        width = page.service.result(shown).model.hidden_size
        chosen = None if kept >= width else int(kept)
        gr.Info(f"Rank of every operator: {chosen or 'full'}. Press Run.", title="Chosen", duration=5)
        return chosen

    on(use.click, use_rank, [page.shown, rank], page.controls["rank"])
    page.on_start(start.click, queue, at)
    page.on_start(many.click, queue_many, [page.shown, recovery])
    page.on_start(rank.release, release, [page.shown, page.job, recovery, factor, rank])
    return Tab(drawn + Outputs([recovery, factor, rank, words], _initial), Outputs(places, _plots))


def swept_ranks(width: int) -> list[Alteration]:
    """Ranks 8, 16, 32, ... up to half of ``width``, then 5, 6 and 7 eighths of it, in both factorisations.

    Without the upper ones, a map that needs most of its directions would have no rank within its noise.
    """
    doubled = [LOWEST << step for step in range(width.bit_length()) if LOWEST << step <= width // 2]
    upper = [width * eighths // 8 for eighths in UPPER]
    ranks = [rank for rank in dict.fromkeys([*doubled, *upper]) if rank]
    return [Alteration(rank=rank, factor=factor) for factor in FACTORS for rank in ranks]


def at_once(service: Service, shown: str, job: str) -> bool:
    """Whether a rank of a shown result can be measured in seconds, and the page's job is not going on.

    A result without operators (the example) would have to be run again first.
    """
    result, going = service.find(shown, RunResult), service.jobs.view(job)
    return result is not None and bool(result.operators) and (going is None or going.finished)


def _initial(result: RunResult) -> list[Any]:
    names, row = [run.label for run in result.runs if run.operators], panels.recovery_with_map(result)
    chosen = gr.Radio(choices=names, value=row.variant if row else None, visible=len(names) > 1)
    rank = _suggested(row, "reduced_rank") or max(result.model.hidden_size // LOW, 1)
    slider = gr.Slider(maximum=result.model.hidden_size, value=rank)
    return [chosen, "reduced_rank", slider, _rank_words(row, "reduced_rank", rank)]


def _suggested(row: Row | None, factor: Factor) -> int | None:
    probe = row.result.rank_sweep(row.run, factor).suggested if row and row.run else None
    return probe.alteration.rank if probe else None


def _after_probe(result: RunResult, label: str | None, factor: Factor, rank: int) -> list[Any]:
    """Slider and words once there is news: after several ranks were measured, the suggested one is taken."""
    last = result.probes[-1] if result.probes else None
    swept = last is not None and last.alteration.rank is not None and last.generation is None
    row = panels.recovery_with_map(result, label)
    suggested = _suggested(row, factor) if swept else None
    return [suggested or gr.skip(), _rank_words(row, factor, suggested or rank)]


def _rank_words(row: Row | None, factor: Factor, rank: int) -> str:
    if row is None or row.run is None:
        return _NONE
    first, *others = row.run.operators
    block = f"Block {first.block[0]}:{first.block[1]}: " if others else ""
    expected = rank_expected(row.result, row.run, rank, factor)
    return unbroken(f"{block}{rank_at(first, rank, factor)} {expected}".strip())


def _plots(result: RunResult, label: str | None = None) -> list[Any]:
    row = panels.recovery_with_map(result, label)
    if row is None:
        return [_NONE, style.empty(_NONE), style.empty(_NONE)]
    return [unbroken(_RANKS.sentence([row])), *_RANKS.figures([row])]
