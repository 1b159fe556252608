"""Buttons that put an altered map into the model: each queues a job, as Run and Generate do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gradio as gr

from ghostlab.results.probe import FACTORS, PARTS, Alteration, Factor, Part
from ghostlab.results.run import RunResult
from ghostlab.ui.page import Page, Tab, on
from ghostlab.ui.service import requests
from ghostlab.ui.service.service import Service

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
    result, going = service.find(shown, RunResult), service.jobs.view(job)
    return result is not None and bool(result.operators) and (going is None or going.finished)


def bind(page: Page, tabs: Mapping[str, Tab]) -> None:
    """Wire the buttons of the Operator and the Spectrum tab."""
    service = page.service
    switches: Mapping[str, Any] = tabs["Operator"].controls
    ranks: Mapping[str, Any] = tabs["Spectrum & rank"].controls

    def one(owner: str, shown: str, label: str | None, *how: Any) -> str:
        part, alpha, rank = how
        return requests.probe(service, owner, shown, label, [Alteration(part, float(alpha), int(rank))])

    def parts(owner: str, shown: str, label: str | None) -> str:
        return requests.probe(service, owner, shown, label, swept_parts())

    def rank_one(owner: str, shown: str, label: str | None, factor: Factor, rank: float) -> str:
        return requests.probe(service, owner, shown, label, [Alteration(rank=int(rank), factor=factor)])

    def rank_many(owner: str, shown: str, label: str | None) -> str:
        width = service.result(shown).model.hidden_size
        return requests.probe(service, owner, shown, label, swept_ranks(width))

    def let_go(owner: str, shown: str, job: str, *asked: Any) -> str:
        return rank_one(owner, shown, *asked) if at_once(service, shown, job) else ""

    def use(shown: str, rank: float) -> int | None:
        width = service.result(shown).model.hidden_size
        chosen = None if rank >= width else int(rank)
        gr.Info(f"Rank of every operator: {chosen or 'full'}. Press Run.", title="Chosen", duration=5)
        return chosen

    def click(button: str, owner: Mapping[str, Any], queue: Callable[..., str], *names: str) -> None:
        page.on_start(
            owner[button].click, queue, [page.shown, *(owner[name] for name in ("recovery", *names))]
        )

    on(ranks["use"].click, use, [page.shown, ranks["rank"]], page.controls["rank"])
    click("start", switches, one, "part", "alpha", "rank")
    click("start_sweep", switches, parts)
    click("start", ranks, rank_one, "factor", "rank")
    click("start_sweep", ranks, rank_many)
    slid = [page.shown, page.job, *(ranks[name] for name in ("recovery", "factor", "rank"))]
    page.on_start(ranks["rank"].release, let_go, slid)
