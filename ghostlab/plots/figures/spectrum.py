"""Singular values of the fitted map M, and what a map of lower rank would explain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.figures.maps import COUNTED, reports
from ghostlab.plots.formats import count, percent, short
from ghostlab.plots.style import Role
from ghostlab.results.operator import OperatorReport, RankCurve
from ghostlab.results.records import RecoveryRun

_NOTHING = "No recovery of this block has a fitted map."
_FLOOR = 1e-6
"""Singular values below this share of the greatest are rounding and would only stretch the axis."""
_ZERO_AT = 0.25
"""Where rank 0 stands on the log axis."""
_FITTED = "calibration (fitted on)"
_DOTTED = {"dash": "dot", "width": 1.2}
_REDUCED = "reduced rank (best on the data)"
_FEW = 3
"""With more recoveries than that, curves on the calibration tokens wait for a click on their legend entry."""


def singular_values(
    runs: Sequence[RecoveryRun], block: int = 0, looks: Sequence[Role] | None = None
) -> go.Figure:
    """Singular values of each recovery's M, greatest first."""
    known = reports(runs, block, looks)
    rows = [(role, r.singular_values) for role, r in known if style.finite(r.singular_values)]
    if not rows:
        return style.empty(_NOTHING)
    top = max(max(values) for _, values in rows)
    kept = [(role, [v if v > _FLOOR * top else None for v in values]) for role, values in rows]
    traces = [_by_index(role, values) for role, values in kept]
    shown = [value for _, values in kept for value in values]
    return style.figure(
        traces,
        height=style.lines_height(len(rows)),
        x={"title": "direction, greatest first"},
        y={"title": "singular value", **style.log_ticks(shown)},
        showlegend=True,
    )


def _by_index(role: Role, values: Sequence[float | None]) -> go.Scatter:
    return go.Scatter(
        x=np.arange(1, len(values) + 1),
        y=values,
        name=role.name,
        mode="lines",
        line=style.line(role),
        hovertemplate=f"{role.name}, no. %{{x}}: %{{y:.3~g}}<extra></extra>",
    )


def cumulative_energy(runs: Sequence[RecoveryRun], block: int = 0) -> go.Figure:
    """Share of ||M||_F^2 in the leading directions, against how many they are."""
    rows = [(role, r.cumulative_energy) for role, r in reports(runs, block) if r.cumulative_energy]
    if not rows:
        return style.empty(_NOTHING)
    traces = []
    for role, energy in rows:
        trace = _by_index(role, energy)
        traces.append(trace.update(hovertemplate=f"{role.name}, first %{{x}}: %{{y:.1%}}<extra></extra>"))
    made = style.figure(
        traces,
        height=style.lines_height(len(rows)),
        x={"title": "leading singular directions"},
        y={"title": "share of the energy of M", "tickformat": ".0%", "range": [0, 1.03]},
        showlegend=True,
    )
    style.guide(made, "y", 0.9, "90 %")
    return made


def rank_parameters(rank: int, channels: int, *, bias: bool = False) -> int:
    """Numbers that a map of ``rank`` stores: 2Cr as factors or C² where that is less, and C for a bias."""
    return min(2 * channels * rank, channels**2) + channels * bias


def rank_curve(runs: Sequence[RecoveryRun], block: int = 0, looks: Sequence[Role] | None = None) -> go.Figure:
    """Explained share of the gap against the rank kept: truncated SVD and, where known, reduced rank.

    Held-out; thin and dotted on the calibration tokens. The upper axis gives the parameters that a rank adds.
    """
    rows = [(role, report) for role, report in reports(runs, block, looks) if report.truncated_svd.ranks]
    if not rows:
        return style.empty(_NOTHING)
    traces = [trace for role, report in rows for trace in _curves(role, report)]
    keys = [key for kind in (_REDUCED, _FITTED) for key in _key(kind, traces)]
    hidden = "legendonly" if len(rows) > _FEW else True
    for trace in (*traces, *keys):
        trace.update(visible=hidden if trace.legendgroup == _FITTED else True)
    ranks, channels = rows[0][1].truncated_svd.ranks, _channels(rows[0][1])
    ticks = _ticks(ranks)
    places = [_place(rank) for rank in ticks]
    made = style.figure(
        [*traces, *keys, go.Scatter(x=[1], y=[None], xaxis="x2", hoverinfo="skip", showlegend=False)],
        height=style.lines_height(len(rows) + 2) + 100,
        x={"title": "rank kept", "type": "log", "tickvals": places, "ticktext": [short(r) for r in ticks]},
        y={"title": COUNTED, "tickformat": ".0%", "range": _explained_range(rows)},
        showlegend=True,
        legend={"y": 1.24},
    )
    added = [short(rank_parameters(rank, channels)) for rank in ticks]
    made.update_layout(xaxis2=_upper_axis(places, added))
    return made


def _key(kind: str, traces: list[go.Scatter]) -> list[go.Scatter]:
    return [style.key(kind, trace) for trace in traces if trace.legendgroup == kind][:1]


def _ticks(ranks: Sequence[int]) -> list[int]:
    """Ranks 0, 1, 4, 16, ...; only every other one where a telephone has no room for all."""
    every = [rank for rank in (0, *(4**n for n in range(10))) if ranks[0] <= rank <= ranks[-1]]
    return every if len(every) <= 6 else [rank for rank in every if rank == 0 or rank.bit_length() % 4 == 1]


def _upper_axis(places: list[float], added: list[str]) -> dict[str, object]:
    return {
        "overlaying": "x",
        "matches": "x",
        "side": "top",
        "type": "log",
        "tickvals": places,
        "ticktext": added,
        "title": {"text": "parameters added (2Cr, at most C²)"},
        "showgrid": False,
        "tickangle": 0,
        "tickfont": {"size": 11},
    }


def _place(rank: int) -> float:
    return rank if rank > 0 else _ZERO_AT


def _channels(report: OperatorReport) -> int:
    """C: a map's singular values number its channels, as far as they are kept."""
    return max(len(report.singular_values), report.truncated_svd.ranks[-1])


def _curves(role: Role, report: OperatorReport) -> list[go.Scatter]:
    """Truncated SVD and reduced rank held out, and truncated SVD on the tokens that it was fitted on."""
    curve, best = report.truncated_svd, report.reduced_rank
    full = {"dash": role.dash, "width": 2}
    drawn = [(curve, curve.explained, role.name, full), (curve, curve.explained_train, _FITTED, _DOTTED)]
    if best is not None:
        drawn.append((best, best.explained, _REDUCED, {"dash": "2px,2px", "width": 2}))
    return [_curve(role, *one, channels=_channels(report)) for one in drawn if one[1]]


def _curve(
    role: Role, curve: RankCurve, values: list[float], kind: str, line: dict[str, Any], *, channels: int
) -> go.Scatter:
    """One curve; ``kind`` is the recovery's name for the main one, else the legend entry it falls under."""
    main = kind == role.name
    what = "truncated SVD, held-out" if main else kind
    return go.Scatter(
        x=[_place(rank) for rank in curve.ranks],
        y=values,
        name=role.name,
        legendgroup=kind,
        showlegend=main,
        mode="lines" if kind == _FITTED else "lines+markers",
        marker={"symbol": role.symbol if main else f"{role.symbol}-open", "size": 7, "maxdisplayed": 16},
        line={"color": role.colour, **line},
        customdata=_notes(curve, values, channels),
        hovertemplate=f"{role.name}, {what}: %{{customdata}}<extra></extra>",
    )


def _notes(curve: RankCurve, values: list[float], channels: int) -> list[str]:
    return [
        f"rank {rank:,} explains {percent(value)}<br>{count(rank_parameters(rank, channels))} parameters"
        for rank, value in zip(curve.ranks, values, strict=True)
    ]


def _explained_range(rows: list[tuple[Role, OperatorReport]]) -> list[float]:
    """From 0 (or the lowest point, but not below -1: some ranks overshoot by far) to the highest point."""
    values = style.finite(value for _, report in rows for value in _heights(report)) or [0.0]
    low, high = max(min(0.0, *values), -1.0), max(values)
    pad = 0.05 * ((high - low) or 1.0)
    return [low - pad, high + pad]


def _heights(report: OperatorReport) -> list[float]:
    curve, best = report.truncated_svd, report.reduced_rank
    return [*curve.explained, *curve.explained_train, *(best.explained if best else [])]
