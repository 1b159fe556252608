"""Singular values of the fitted map M, and what a map of lower rank would explain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.formats import count, percent
from ghostlab.plots.operator import reports
from ghostlab.plots.style import Role
from ghostlab.records import OperatorReport, RankCurve, RecoveryRun

_NOTHING = "No recovery of this block has a fitted map."
_FLOOR = 1e-6
"""Singular values below this share of the greatest are rounding and would only stretch the axis."""
_ZERO_AT = 0.5
"""Where rank 0 stands on the log axis."""
_FITTED = "calibration (fitted on)"
_TALL = style.LINE_HEIGHT + 60


def singular_values(runs: Sequence[RecoveryRun], block: int = 0) -> go.Figure:
    """Singular values of each recovery's M, greatest first."""
    rows = [(role, r.singular_values) for role, r in reports(runs, block) if style.finite(r.singular_values)]
    if not rows:
        return style.empty(_NOTHING)
    top = max(max(values) for _, values in rows)
    kept = [(role, [v if v > _FLOOR * top else None for v in values]) for role, values in rows]
    traces = [_by_index(role, values) for role, values in kept]
    shown = [value for _, values in kept for value in values]
    return style.figure(
        traces,
        height=style.LINE_HEIGHT,
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
        height=style.LINE_HEIGHT,
        x={"title": "leading singular directions"},
        y={"title": "share of the energy of M", "tickformat": ".0%", "range": [0, 1.03]},
        showlegend=True,
    )
    style.guide(made, "y", 0.9, "90 %")
    return made


def rank_parameters(rank: int, channels: int) -> int:
    """Parameters that a rank-``rank`` map with a bias adds to a model of ``channels`` channels: 2Cr + C."""
    return 2 * channels * rank + channels


def rank_curve(runs: Sequence[RecoveryRun], block: int = 0) -> go.Figure:
    """Explained share of the gap against the rank kept, held-out (solid) and on the calibration tokens.

    The upper axis gives the parameters that a rank adds, 2Cr + C.
    """
    rows = [(role, report) for role, report in reports(runs, block) if report.truncated_svd.ranks]
    if not rows:
        return style.empty(_NOTHING)
    traces = [trace for role, report in rows for trace in _curves(role, report)]
    keys = [style.key(_FITTED, trace) for trace in traces if trace.legendgroup == _FITTED][:1]
    ranks, channels = rows[0][1].truncated_svd.ranks, _channels(rows[0][1])
    ticks = [rank for rank in (0, *(2**n for n in range(0, 20, 2))) if ranks[0] <= rank <= ranks[-1]]
    places = [_place(rank) for rank in ticks]
    made = style.figure(
        [*traces, *keys, go.Scatter(x=[1], y=[None], xaxis="x2", hoverinfo="skip", showlegend=False)],
        height=_TALL,
        x={"title": "rank kept", "type": "log", "tickvals": places, "ticktext": [count(r) for r in ticks]},
        y={"title": "explained share of the gap", "tickformat": ".0%", "range": _explained_range(rows)},
        showlegend=True,
        legend={"y": 1.22},
    )
    added = [count(rank_parameters(rank, channels)) for rank in ticks]
    made.update_layout(xaxis2=_upper_axis(places, added))
    return made


def _upper_axis(places: list[float], added: list[str]) -> dict[str, object]:
    return {
        "overlaying": "x",
        "matches": "x",
        "side": "top",
        "type": "log",
        "tickvals": places,
        "ticktext": added,
        "title": {"text": "parameters added (2Cr + C)"},
        "showgrid": False,
    }


def _place(rank: int) -> float:
    return rank if rank > 0 else _ZERO_AT


def _channels(report: OperatorReport) -> int:
    """C: a map's singular values number its channels, as far as they are kept."""
    return max(len(report.singular_values), report.truncated_svd.ranks[-1])


def _curves(role: Role, report: OperatorReport) -> list[go.Scatter]:
    curve, channels = report.truncated_svd, _channels(report)
    kinds = [("held-out", curve.explained, role.dash, 2), (_FITTED, curve.explained_train, "dot", 1.2)]
    return [
        go.Scatter(
            x=[_place(rank) for rank in curve.ranks],
            y=values,
            name=role.name,
            legendgroup=kind if kind == _FITTED else role.name,
            showlegend=kind != _FITTED,
            mode="lines+markers" if kind == "held-out" else "lines",
            marker={"symbol": role.symbol, "size": 7},
            line={"color": role.colour, "dash": dash, "width": width},
            customdata=_notes(curve, values, channels),
            hovertemplate=f"{role.name}, {kind}: %{{customdata}}<extra></extra>",
        )
        for kind, values, dash, width in kinds
        if values
    ]


def _notes(curve: RankCurve, values: list[float], channels: int) -> list[str]:
    return [
        f"rank {rank:,} explains {percent(value)}<br>{count(rank_parameters(rank, channels))} parameters"
        for rank, value in zip(curve.ranks, values, strict=True)
    ]


def _explained_range(rows: list[tuple[Role, OperatorReport]]) -> list[float]:
    """From 0 (or the lowest point, but not below -1: some ranks overshoot by far) to the highest point."""
    values = style.finite(
        value
        for _, report in rows
        for value in (*report.truncated_svd.explained, *report.truncated_svd.explained_train)
    ) or [0.0]
    low, high = max(min(0.0, *values), -1.0), max(values)
    pad = 0.05 * ((high - low) or 1.0)
    return [low - pad, high + pad]
