"""Singular values of the fitted map M, and what a map of lower rank would explain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.figure import Figure, of_each
from ghostlab.plots.figures.maps import COUNTED, NO_MAP, has, scope
from ghostlab.plots.formats import count, number, percent, points
from ghostlab.plots.rows import Row, Rows, greatest, operators
from ghostlab.results.operator import OperatorReport, RankCurve
from ghostlab.results.probe import FACTORS, Factor

_FLOOR = 1e-6
"""Singular values below this share of the greatest are rounding and would only stretch the axis."""
_FITTED = "calibration (fitted on)"
_DOTTED = {"dash": "dot", "width": 1.2}
_REDUCED = "reduced rank (best on the data)"
_FEW = 3
"""With more recoveries than that, curves on the calibration tokens wait for a click on their legend entry."""
_NEAR = 0.05
"""A rank is good enough if it falls short of the best one by this share of what that explains."""


def rank_parameters(rank: int, channels: int, *, bias: bool = False) -> int:
    """Numbers that a map of ``rank`` stores: 2Cr as factors or C² where that is less, and C for a bias."""
    return min(2 * channels * rank, channels**2) + channels * bias


def _best(rows: Rows) -> tuple[Row, OperatorReport]:
    """The map that explains most on held-out text."""
    return greatest(operators(rows), lambda report: report.split.explained)


# -- singular values -------------------------------------------------------------------------------------


def singular_values(rows: Rows) -> go.Figure:
    """Singular values of each recovery's M, greatest first."""
    known = [(row, report.singular_values) for row, report in operators(rows)]
    top = max(max(style.finite(values)) for _, values in known)
    kept = [(row, [v if v > _FLOOR * top else None for v in values]) for row, values in known]
    lines = [style.along(row.role, values, "no. %{x}: %{y:.3~g}") for row, values in kept]
    y = {"title": "singular value", **style.log_ticks(value for _, values in kept for value in values)}
    return style.curves(lines, {"title": "direction, greatest first"}, y)


def _greatest(row: Row) -> str:
    """The greatest singular value, and how far it is above the median one."""
    values = style.finite(row.operator.singular_values) if row.operator else []
    if not values:
        return ""
    middle = float(np.median(values))
    if middle <= _FLOOR * values[0]:
        return f"{number(values[0])} (more than half are zero)"
    return f"{number(values[0])} ({number(values[0] / middle)} times the median one)"


def say_singular_values(rows: Rows) -> str:
    """How fast the singular values fall."""
    row, _ = _best(rows)
    return f"The greatest singular value of {row.name} is {_greatest(row)}."


def cumulative_energy(rows: Rows) -> go.Figure:
    """Share of ||M||_F^2 in the leading directions, against how many they are."""
    hover = "first %{x}: %{y:.1%}"
    lines = [style.along(row.role, report.cumulative_energy, hover) for row, report in operators(rows)]
    y = {"title": "share of the energy of M", "tickformat": ".0%", "range": [0, 1.03]}
    made = style.curves(lines, {"title": "leading singular directions"}, y)
    style.guide(made, "y", 0.9, "90 %")
    return made


def say_cumulative_energy(rows: Rows) -> str:
    """How many directions hold half, and how many hold 90 % of the energy."""
    row, report = _best(rows)
    total = len(report.cumulative_energy)
    half, most = (int(np.searchsorted(report.cumulative_energy, share)) + 1 for share in (0.5, 0.9))
    return (
        f"{count(half)} of {count(total)} directions {'holds' if half == 1 else 'hold'} half of the energy "
        f"of {row.name}, {count(min(most, total))} hold 90 %."
    )


# -- rank ------------------------------------------------------------------------------------------------


def rank_curve(rows: Rows) -> go.Figure:
    """Explained share of the gap against the rank kept: truncated SVD and, where known, reduced rank.

    Held-out; thin and dotted on the calibration tokens. The upper axis gives the parameters that a rank adds.
    """
    known = operators(rows)
    traces = [trace for row, report in known for trace in _curves(row, report)]
    first = {trace.legendgroup: trace for trace in reversed(traces)}
    keys = [style.key(kind, first[kind]) for kind in (_REDUCED, _FITTED) if kind in first]
    hidden = "legendonly" if len(known) > _FEW else True
    for trace in (*traces, *keys):
        trace.update(visible=hidden if trace.legendgroup == _FITTED else True)
    ranks, channels = known[0][1].truncated_svd.ranks, _channels(known[0][1])
    y = {"title": COUNTED, "tickformat": ".0%", "range": _explained_range(known)}
    made = style.curves([*traces, *keys], {}, y, extra=100, legend={"y": 1.24})
    added = {rank: rank_parameters(rank, channels) for rank in _ticks(ranks)}
    return style.rank_axes(made, "parameters added (2Cr, at most C²)", added)


def _ticks(ranks: Sequence[int]) -> list[int]:
    """Ranks 0, 1, 4, 16, ...; only every other one where a telephone has no room for all."""
    every = [rank for rank in (0, *(4**n for n in range(10))) if ranks[0] <= rank <= ranks[-1]]
    return every if len(every) <= 6 else [rank for rank in every if rank == 0 or rank.bit_length() % 4 == 1]


def _channels(report: OperatorReport) -> int:
    """C: a map's singular values number its channels, as far as they are kept."""
    return max(len(report.singular_values), report.truncated_svd.ranks[-1])


def _curves(row: Row, report: OperatorReport) -> list[go.Scatter]:
    """Truncated SVD and reduced rank held out, and truncated SVD on the tokens that it was fitted on."""
    curve, best = report.truncated_svd, report.reduced_rank
    full = {"dash": row.role.dash, "width": 2}
    drawn = [(curve, curve.explained, row.name, full), (curve, curve.explained_train, _FITTED, _DOTTED)]
    if best is not None:
        drawn.append((best, best.explained, _REDUCED, {"dash": "2px,2px", "width": 2}))
    return [_curve(row, *one, channels=_channels(report)) for one in drawn if one[1]]


def _curve(
    row: Row, curve: RankCurve, values: list[float], kind: str, line: dict[str, Any], *, channels: int
) -> go.Scatter:
    """One curve; ``kind`` is the recovery's name for the main one, else the legend entry it falls under."""
    main, symbol = kind == row.name, row.role.symbol
    what = "truncated SVD, held-out" if main else kind
    notes = [
        f"rank {rank:,} explains {percent(value)}<br>{count(rank_parameters(rank, channels))} parameters"
        for rank, value in zip(curve.ranks, values, strict=True)
    ]
    return style.curve(
        row.role,
        [rank or style.ZERO_AT for rank in curve.ranks],
        values,
        f"{what}: %{{customdata}}",
        legendgroup=kind,
        showlegend=main,
        mode="lines" if kind == _FITTED else "lines+markers",
        marker={"symbol": symbol if main else f"{symbol}-open", "size": 7, "maxdisplayed": 16},
        line={"color": row.role.colour, **line},
        customdata=notes,
    )


def _explained_range(known: list[tuple[Row, OperatorReport]]) -> list[float]:
    """From 0 (or the lowest point, but not below -1: some ranks overshoot by far) to the highest point."""
    curves = [curve for _, report in known for curve in (report.truncated_svd, report.reduced_rank) if curve]
    values = style.finite(value for curve in curves for value in (*curve.explained, *curve.explained_train))
    low, high = max(min(0.0, *values), -1.0), max(values)
    pad = 0.05 * ((high - low) or 1.0)
    return [low - pad, high + pad]


def _enough(curve: RankCurve) -> tuple[int, int]:
    """Places of the best rank, and of the lowest one that keeps 95 % of what it explains."""
    reached = np.asarray(curve.explained, dtype=float)
    best = int(np.nanargmax(reached))
    return best, int(np.argmax(reached >= reached[best] - _NEAR * abs(reached[best])))


def say_rank_curve(rows: Rows) -> str:
    """The lowest rank that is good enough and what it costs; which way to take a rank is better."""
    row, report = max(operators(rows), key=lambda pair: max(style.finite(pair[1].truncated_svd.explained)))
    curve = report.truncated_svd
    reached, ranks = curve.explained, [count(rank) for rank in curve.ranks]
    best, enough = _enough(curve)
    if not reached[best] > 0:
        return f"No rank of {row.name} explains any of the gap on held-out text."
    added = rank_parameters(curve.ranks[enough], _channels(report), bias=report.bias_norm > 0)
    text = (
        f"Rank {ranks[enough]} of {row.name} ({count(added)} parameters) explains {percent(reached[enough])} "
        f"of the gap ({scope(report)})"
    )
    full = f"the full rank, {ranks[-1]}, explains {percent(reached[-1])}"
    if reached[best] - reached[-1] > 0.005:
        full += f", less than rank {ranks[best]} with {percent(reached[best])}"
    if enough == len(reached) - 1:
        full = "every lower rank loses more than a twentieth of that"
    return f"{text}; {full}.{_factorisation(row.name, report)}"


def _factorisation(name: str, report: OperatorReport) -> str:
    """Which of the two ways to take a rank does better on held-out text, where they differ most."""
    plain, best = report.truncated_svd, report.reduced_rank
    if best is None or best.ranks != plain.ranks:
        return ""
    lead = np.subtract(best.explained, plain.explained)
    if not np.isfinite(lead).any():
        return ""
    at = int(np.nanargmax(np.abs(lead)))
    if abs(lead[at]) < 0.005:
        return f" Reduced rank and truncated SVD of {name} do equally well at every rank."
    ahead, behind = ("Reduced rank", "truncated SVD") if lead[at] > 0 else ("Truncated SVD", "reduced rank")
    high, low = sorted((best.explained[at], plain.explained[at]), reverse=True)
    return (
        f" {ahead} does better than {behind} of {name} by up to {points(high - low)}: "
        f"{percent(high)} against {percent(low)} at rank {count(plain.ranks[at])}."
    )


def _lowest(row: Row) -> str:
    """The lowest rank that is good enough, for a comparison."""
    if row.operator is None or not style.finite(row.operator.truncated_svd.explained):
        return ""
    curve = row.operator.truncated_svd
    _, at = _enough(curve)
    share = percent(curve.explained[at])
    return f"{count(curve.ranks[at])} of {count(curve.ranks[-1])} ({share} of the gap explained)"


def rank_at(report: OperatorReport, rank: int, factor: Factor) -> str:
    """What a rank explains and costs, from the curve; between two of its points, by interpolation."""
    curve = report.reduced_rank if factor == "reduced_rank" else report.truncated_svd
    if curve is None or len(curve.ranks) < 2:
        return "The error of lower ranks was not recorded."
    top = curve.ranks[-1]
    rank = min(rank, top)
    added, whole = (rank_parameters(r, top, bias=report.bias_norm > 0) for r in (rank, top))
    about = "" if rank in curve.ranks else "about "
    share = percent(float(np.interp(rank, curve.ranks, curve.explained)))
    fewer = (
        f"{count(whole - added)} fewer than the full rank" if added < whole else "as many as the full rank"
    )
    return (
        f"Rank {count(rank)} by {FACTORS[factor]} explains {about}{share} of the gap (full rank "
        f"{percent(curve.explained[-1])}; {scope(report)}) with {count(added)} parameters, {fewer}."
    )


_NONE = "No recovery of this block has a fitted map."
FIGURES = (
    Figure(
        "singular_values",
        "Singular values",
        "A matrix is a sum of simple pieces: each reads one direction, writes another, and has a strength, "
        "its singular value. If they fall fast, a few pieces are almost the whole map, and it can be stored "
        "as two thin matrices. The curve stays high where every direction matters.",
        r"M = \sum_k \sigma_k\, u_k v_k^\top, \qquad \sigma_1 \ge \sigma_2 \ge \dots",
        "Eckart and Young 1936, *The approximation of one matrix by another of lower rank*",
        draw=singular_values,
        say=say_singular_values,
        select=has(lambda report: style.finite(report.singular_values)),
        nothing=_NONE,
        compare=of_each("Greatest singular value", _greatest, NO_MAP),
    ),
    Figure(
        "cumulative_energy",
        "Energy in the leading directions",
        "The part of the map's squared size that its strongest r directions hold. It says how well a rank "
        "would copy the *matrix*; how well it restores the *states* is another question, which the next "
        "figure answers.",
        r"E(r) = \sum_{k \le r} \sigma_k^2 \Big/ \sum_k \sigma_k^2",
        "Eckart and Young 1936",
        draw=cumulative_energy,
        say=say_cumulative_energy,
        select=has(lambda report: style.finite(report.cumulative_energy)),
        nothing=_NONE,
    ),
    Figure(
        "rank_curve",
        "What a lower rank explains",
        "A map of rank r needs 2Cr numbers instead of C². Truncated SVD keeps the r directions that are "
        "largest in the matrix; reduced rank keeps those that matter most for the states at hand, and so "
        "needs fewer. Both are measured on held-out tokens, counted as in the fit, from sums of products and "
        "without running the model.",
        r"\min_{\operatorname{rank} M_r \le r} \lVert X (M_r - M) \rVert_F^2 \quad\text{or}\quad "
        r"\min_{\operatorname{rank} M_r \le r} \lVert M_r - M \rVert_F^2",
        "Reduced rank regression: Izenman 1975; low-rank adapters in place of layers: SHIFT-LLM",
        draw=rank_curve,
        say=say_rank_curve,
        select=has(lambda report: style.finite(report.truncated_svd.explained)),
        nothing=_NONE,
        compare=of_each("Lowest rank within a twentieth of the best", _lowest, NO_MAP),
    ),
)
