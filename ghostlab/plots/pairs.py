"""Figures of two recoveries drawn into one: of one run in its colours, of two in the order of the sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ghostlab.comparison import ORIGINAL, Side, same_windows
from ghostlab.plots import boundary, perplexity, spectrum, style, windows
from ghostlab.plots.catalog import Panel
from ghostlab.plots.formats import number
from ghostlab.plots.sentences import sides
from ghostlab.plots.style import Role
from ghostlab.records import Metric


def panels(one: Side, other: Side) -> list[Panel]:
    """Likelihood, restored state and spectrum of both sides, in a fixed order."""
    runs = [replace(side.run, label=side.name) for side in (one, other)]
    made = [
        Panel("perplexity", sides.perplexity(one, other), [bars(one, other)]),
        Panel("paired_windows", _windows(one, other), [by_window(one, other)]),
        Panel("by_position", _positions(one, other), [by_position(one, other)]),
    ]
    drawn = (
        ("explained", boundary.explained, sides.explained),
        ("channel_error", boundary.channel_error, sides.channel_error),
        ("position_error", boundary.position_error, sides.position_error),
        ("singular_values", spectrum.singular_values, sides.singular_values),
        ("rank_curve", spectrum.rank_curve, sides.rank_curve),
    )
    looks = _looks(one, other)
    both = [Panel(name, words(one, other), [figure(runs, looks=looks)]) for name, figure, words in drawn]
    return [*made, *both]


FIGURES = (
    "perplexity",
    "paired_windows",
    "by_position",
    "explained",
    "channel_error",
    "position_error",
    "singular_values",
    "rank_curve",
)
"""Of :func:`panels`, for whoever must lay them out before there is anything to compare."""


def _looks(one: Side, other: Side) -> list[Role]:
    """How both are drawn: as everywhere else where they are of one run, by their order where they are not."""
    if one.result is other.result and one.name != other.name:
        return [_look(one), _look(other)]
    return style.named_roles([one.name, other.name])


def _look(side: Side) -> Role:
    """That of a recovery in the figures of its own run."""
    runs = side.result.runs
    known = zip(style.roles(runs), runs, strict=True)
    base = style.ORIGINAL if side.run.method == ORIGINAL else style.PRUNED
    own = next((role for role, run in known if run is side.run), base)
    return replace(own, name=side.name)


def bars(one: Side, other: Side) -> go.Figure:
    """Perplexity of both, and of the original and the pruned model of each; what they share is drawn once."""
    return perplexity.bars(_rows(one, other))


def _rows(one: Side, other: Side) -> list[tuple[Role, Metric]]:
    """Look and perplexity from top to bottom."""
    roles = _looks(one, other)
    base = [side.result.baseline for side in (one, other)]
    shared = same_windows(one.result, other.result)
    one_cut = shared and base[0].pruned.window_nll == base[1].pruned.window_nll
    rows = [(style.ORIGINAL, base[0].original.perplexity)]
    if not shared:
        rows.append((_named(style.ORIGINAL, other), base[1].original.perplexity))
    if one_cut and "drop" not in (one.run.method, other.run.method):
        rows.append((style.PRUNED, base[0].pruned.perplexity))
    for side, role, baseline in zip((one, other), roles, base, strict=True):
        if not one_cut and side.run.method not in ("drop", ORIGINAL):
            rows.append((_named(style.PRUNED, side), baseline.pruned.perplexity))
        if side.run.method != ORIGINAL:
            rows.append((role, side.run.perplexity))
    return rows


def _named(role: Role, side: Side) -> Role:
    return replace(role, name=f"{role.name} for {side.name}")


def _paired(one: Side, other: Side) -> bool:
    return same_windows(one.result, other.result) and len(one.run.window_nll) == len(other.run.window_nll)


def by_window(one: Side, other: Side) -> go.Figure:
    """What the first needs more than the second in every window, with mean and paired interval."""
    if not _paired(one, other):
        return style.empty("They were not measured on the same windows.")
    shifts = np.subtract(one.run.window_nll, other.run.window_nll)
    role = _looks(one, other)[0]
    title = "difference in nats per token<br>(left of 0: the first is better)"
    return windows.shifts_figure([(role, shifts)], title, other.name)


def _windows(one: Side, other: Side) -> str:
    if not _paired(one, other):
        return "Windows cannot be paired."
    shifts = np.subtract(one.run.window_nll, other.run.window_nll)
    wins = int((shifts < 0).sum())
    return f"{one.name} is better than {other.name} on {wins} of {len(shifts)} windows."


def by_position(one: Side, other: Side) -> go.Figure:
    """What each lost against its own original by position; a running mean over neighbours."""
    roles = _looks(one, other)
    lost = [(role, _lost(side)) for role, side in zip(roles, (one, other), strict=True)]
    known = [(role, nll) for role, nll in lost if nll.size]
    if not known:
        return style.empty("Likelihood by position was not recorded.")
    return perplexity.position_lines(known, "loss")


def _lost(side: Side) -> np.ndarray[Any, Any]:
    original = np.asarray(side.result.baseline.original.position_nll)
    own = np.asarray(side.run.position_nll)
    return own - original if own.size == original.size else np.empty(0)


def _positions(one: Side, other: Side) -> str:
    late = [_lost(side)[-max(len(side.run.position_nll) // 4, 1) :] for side in (one, other)]
    if not all(part.size for part in late):
        return "Likelihood by position was not recorded."
    ours, theirs = (number(float(part.mean())) for part in late)
    return (
        f"In the last quarter of the window {one.name} loses {ours} nats per token against the original "
        f"and {other.name} {theirs}."
    )
