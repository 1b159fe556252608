"""How well each recovery restores the state that the first surviving layer receives (held-out)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.formats import percent
from ghostlab.plots.style import Role
from ghostlab.results.records import BoundaryReport, RecoveryRun

_MEASURES = {
    "explained": (("all tokens", "explained"), ("ordinary tokens", "explained_ordinary")),
    "relative_error": (("all tokens", "relative_error"), ("ordinary tokens", "relative_error_ordinary")),
}
_SYMBOLS = {
    "all tokens": "circle",
    "ordinary tokens": "diamond-open",
    "calibration (fitted on)": "line-ns-open",
}
_SIZES = {"all tokens": 9, "ordinary tokens": 15, "calibration (fitted on)": 14}


def reports(
    runs: Sequence[RecoveryRun], block: int | None, looks: Sequence[Role] | None = None
) -> list[tuple[Role, BoundaryReport]]:
    """Each recovery's report: of the ``block``-th dropped block, or over all of them when ``None``.

    ``looks`` are the roles to draw them in, here and in the figures; by default those of their order.
    """
    rows = zip(looks or style.roles(runs), runs, strict=True)
    if block is None:
        return [(role, run.boundary) for role, run in rows]
    return [(role, run.blocks[block]) for role, run in rows if block < len(run.blocks)]


def explained(
    runs: Sequence[RecoveryRun], block: int | None = None, looks: Sequence[Role] | None = None
) -> go.Figure:
    """Explained share of the gap per recovery: 0 is plain dropping, 1 is perfect.

    All and ordinary held-out tokens, and the calibration tokens that it was fitted on.
    """
    measures = (*_MEASURES["explained"], ("calibration (fitted on)", "explained_train"))
    made = _dots(reports(runs, block, looks), measures, "explained share of the gap<br>(held-out text)")
    if made.data:
        ends = style.finite(value for trace in made.data for value in trace.x)
        style.clip_low(made, -1.0)
        made.update_xaxes(range=[max(min(0.0, *ends), -1.0) - 0.03, max(1.0, *ends) + 0.05])
        style.guide(made, "x", 1)
        style.guide(made, "x", 0)
    return made


def relative_error(runs: Sequence[RecoveryRun], block: int | None = None) -> go.Figure:
    """Relative error ||Y' - Y|| / ||Y|| per recovery, all and ordinary held-out tokens."""
    made = _dots(
        reports(runs, block), _MEASURES["relative_error"], "relative error ‖Y′ − Y‖ / ‖Y‖<br>(held-out text)"
    )
    made.update_xaxes(rangemode="tozero")
    return made


def _dots(
    rows: list[tuple[Role, BoundaryReport]], measures: Sequence[tuple[str, str]], title: str
) -> go.Figure:
    """One row per recovery, one symbol per measure."""
    if not rows:
        return style.empty("No recovery was fitted to this block.")
    traces = [trace for label, name in measures for trace in _measure(rows, label, name)]
    return style.figure(
        traces,
        height=style.bars_height(len(rows)) + 60,  # on a phone the legend has a line for each measure
        x={"title": title, "tickformat": ".0%"},
        y={"autorange": "reversed", "type": "category"},
        legend={"itemsizing": "constant", "font": {"size": 12}},
    )


def _measure(rows: list[tuple[Role, BoundaryReport]], label: str, name: str) -> list[go.Scatter]:
    """The dots of one measure, and a grey replacement for them in the legend."""
    values = [(role, getattr(report, name)) for role, report in rows]
    known = [(role, value) for role, value in values if value is not None and math.isfinite(value)]
    if not known:
        return []
    symbol = _SYMBOLS[label]
    dots = go.Scatter(
        x=[value for _, value in known],
        y=[role.name for role, _ in known],
        name=label,
        legendgroup=label,
        showlegend=False,
        mode="markers",
        marker={
            "symbol": symbol,
            "size": _SIZES[label],
            "line": {"width": 2 if symbol.endswith("open") else 0},
            "color": [role.colour for role, _ in known],
        },
        customdata=[percent(value) for _, value in known],
        hovertemplate=f"%{{y}}, {label}: %{{customdata}}<extra></extra>",
    )
    return [dots, style.key(label, dots).update(y=[known[0][0].name])]


def channel_error(
    runs: Sequence[RecoveryRun],
    block: int | None = None,
    order: Literal["sorted", "index"] = "sorted",
    looks: Sequence[Role] | None = None,
) -> go.Figure:
    """Share of the gap left in each channel (1 is plain dropping), worst first or by channel index."""
    known = reports(runs, block, looks)
    rows = [(role, report.channel_error) for role, report in known if report.channel_error]
    if not rows:
        return style.empty("Error per channel was not recorded.")
    traces, seen = [], [error for _, errors in rows for error in errors]
    for role, errors in rows:
        channels = np.argsort(errors)[::-1] if order == "sorted" else np.arange(len(errors))
        xs = np.arange(1, len(errors) + 1) if order == "sorted" else channels
        hover = f"{role.name}, channel %{{customdata}}: %{{y:.3~g}}<extra></extra>"
        traces.append(_line(role, xs, np.asarray(errors)[channels], hover, customdata=channels))
    title = "channels, worst first" if order == "sorted" else "channel index"
    made = style.figure(
        traces,
        height=style.lines_height(len(rows)),
        x={"title": title},
        y={"title": "share of the gap left, all tokens", **style.log_ticks(seen)},
        showlegend=True,
    )
    style.guide(made, "y", 1, "plain dropping")
    return made


def position_error(
    runs: Sequence[RecoveryRun], block: int | None = None, looks: Sequence[Role] | None = None
) -> go.Figure:
    """Share of the gap left at each position (1 is plain dropping); ordinary tokens alone as thin lines."""
    known = reports(runs, block, looks)
    rows = [(role, report) for role, report in known if style.finite(report.position_error)]
    if not rows:
        return style.empty("Error per position was not recorded.")
    traces, ordinary, seen = [], [], []
    for role, report in rows:
        seen += style.finite([*report.position_error, *report.position_error_ordinary])
        traces.append(_by_position(role, role.name, report.position_error))
        if style.finite(report.position_error_ordinary):
            thin = _by_position(role, f"{role.name}, ordinary tokens", report.position_error_ordinary)
            thin.update(line={"width": 1.2, "dash": "dot"}, showlegend=False, legendgroup="ordinary tokens")
            ordinary.append(thin)
    keys = [style.key("ordinary tokens", ordinary[0])] if ordinary else []
    made = style.figure(
        [*ordinary, *traces, *keys],
        height=style.lines_height(len(rows)),
        x={"title": "position in the window"},
        y={"title": "share of the gap left, held-out", **style.wide_axis(seen)},
        showlegend=True,
    )
    style.guide(made, "y", 1, "plain dropping")
    return made


def _by_position(role: Role, name: str, errors: Sequence[float | None]) -> go.Scatter:
    hover = f"{name}, position %{{x}}: %{{y:.3~g}}<extra></extra>"
    return _line(role, np.arange(len(errors)), errors, hover, name=name)


def _line(role: Role, x: Any, y: Any, hover: str, **options: Any) -> go.Scatter:
    settings = {
        "name": role.name,
        "mode": "lines",
        "line": style.line(role),
        "hovertemplate": hover,
        **options,
    }
    return go.Scatter(x=x, y=y, **settings)
