"""Buttons that put an altered map into the model: each queues a job, as Run and Generate do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.results.probe import FACTORS, PARTS, Alteration, Factor, Part
from ghostlab.ui.complaints import told_to_user
from ghostlab.ui.service.probe_jobs import queue_probe
from ghostlab.ui.service.service import Service
from ghostlab.ui.tabs.view import Tab

SWEPT: dict[Part, tuple[float, ...]] = {
    "whole": (0.25, 0.5, 0.75, 1.25),
    "symmetric": (0.5, 1.0),
    "antisymmetric": (0.5, 1.0),
}
"""Strengths that are tried of each part."""
LOWEST = 8
UPPER = (5, 6, 7)
"""Eighths of the width that are swept above its half."""


def swept_parts() -> list[Alteration]:
    """The whole map at several strengths, and each part of it."""
    return [Alteration(part=part, alpha=alpha) for part in PARTS for alpha in SWEPT[part]]


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
    result, going = service.find(shown), service.jobs.view(job)
    return result is not None and bool(result.operators) and (going is None or going.finished)


def bind(
    service: Service,
    shown: Component,
    tabs: Mapping[str, Tab],
    started: Callable[[str], dict[Any, Any]],
    outputs: list[Component],
    *,
    job: Component,
    next_rank: Component,
    **quiet: Any,
) -> list[Any]:
    """Wire the buttons of the Operator and the Spectrum tab; returns the events that queue a job.

    Args:
        service: Queues the jobs.
        shown: Holds the id of the shown result.
        tabs: All tabs.
        started: What a page is sent once a job is queued.
        outputs: Components of that.
        job: Holds the id of the watched job.
        next_rank: The sidebar's rank.
        quiet: Settings of an event that shows no progress.
    """
    switches: Mapping[str, Any] = tabs["Operator"].controls
    ranks: Mapping[str, Any] = tabs["Spectrum & rank"].controls

    def submit(
        request: gr.Request, shown_id: str, label: str | None, asked: list[Alteration]
    ) -> dict[Any, Any]:
        with told_to_user():
            return started(queue_probe(service, shown_id, label, asked, owner=request.session_hash or ""))

    def one(request: gr.Request, shown_id: str, label: str | None, *how: Any) -> dict[Any, Any]:
        part, alpha, rank = how
        return submit(request, shown_id, label, [Alteration(part, float(alpha), int(rank))])

    def parts(request: gr.Request, shown_id: str, label: str | None) -> dict[Any, Any]:
        return submit(request, shown_id, label, swept_parts())

    def rank_one(
        request: gr.Request, shown_id: str, label: str | None, factor: Factor, rank: float
    ) -> dict[Any, Any]:
        return submit(request, shown_id, label, [Alteration(rank=int(rank), factor=factor)])

    def rank_many(request: gr.Request, shown_id: str, label: str | None) -> dict[Any, Any]:
        with told_to_user():
            width = service.result(shown_id).model.hidden_size
        return submit(request, shown_id, label, swept_ranks(width))

    def let_go(request: gr.Request, shown_id: str, job_id: str, *asked: Any) -> dict[Any, Any]:
        if not at_once(service, shown_id, job_id):
            return {job: gr.skip()}
        return rank_one(request, shown_id, *asked)

    def use(shown_id: str, rank: float) -> int | None:
        with told_to_user():
            width = service.result(shown_id).model.hidden_size
        chosen = None if rank >= width else int(rank)
        gr.Info(f"Rank of every operator: {chosen or 'full'}. Press Run.", title="Chosen", duration=5)
        return chosen

    ranks["use"].click(use, [shown, ranks["rank"]], next_rank, **quiet)
    slid = [shown, job, *(ranks[name] for name in ("recovery", "factor", "rank"))]

    def click(button: str, owner: Mapping[str, Component], work: Callable[..., Any], *names: str) -> Any:
        inputs = [shown, *(owner[name] for name in ("recovery", *names))]
        return owner[button].click(work, inputs, outputs, **quiet)

    return [
        click("start", switches, one, "part", "alpha", "rank"),
        click("start_sweep", switches, parts),
        click("start", ranks, rank_one, "factor", "rank"),
        click("start_sweep", ranks, rank_many),
        ranks["rank"].release(let_go, slid, outputs, **quiet),
    ]
