"""What the fitted map of one block is: M = S + A, its symmetric and antisymmetric part, and W = I + M."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.formats import number
from ghostlab.plots.style import Role
from ghostlab.results.operator import OperatorReport
from ghostlab.results.records import RecoveryRun

_PARTS = {"symmetric": ("S", style.SYMMETRIC), "antisymmetric": ("A", style.ANTISYMMETRIC)}
_METRICS = {"frobenius": "in the weights", "activation": "on calibration<br>tokens"}


def reports(
    runs: Sequence[RecoveryRun], block: int = 0, looks: Sequence[Role] | None = None
) -> list[tuple[Role, OperatorReport]]:
    """Each recovery's operator for the ``block``-th dropped block; recoveries without one are left out.

    ``looks`` are the roles to draw them in; by default those of their order.
    """
    rows = zip(looks or style.roles(runs), runs, strict=True)
    return [(role, run.operators[block]) for role, run in rows if block < len(run.operators)]


COUNTED = "explained share of the gap<br>(held-out tokens, as in the fit)"
"""Axis title of what is measured on the tokens that a map is for; :func:`counted` says which they are."""


def counted(report: OperatorReport) -> str:
    """Which held-out tokens a map was measured on, and how they counted: those that its fit is for."""
    tokens = "held-out tokens after the first" if report.first_apart else "all held-out tokens"
    return f"{tokens}, each relative to its size" if report.weight == "relative" else tokens


def heat_map(report: OperatorReport, part: Literal["symmetric", "antisymmetric"]) -> go.Figure:
    """S or A, averaged over square tiles. Both parts of one operator share one colour range."""
    maps = {"symmetric": report.symmetric_map, "antisymmetric": report.antisymmetric_map}
    shown = np.asarray(maps[part], dtype=np.float32)
    if shown.size == 0:
        return style.empty("This operator has no dense map to show.")
    reach = style.symmetric_range(*maps.values())
    letter = _PARTS[part][0]
    channels = np.arange(len(shown)) * report.tile
    tiled = f"means of {report.tile} × {report.tile} entries" if report.tile > 1 else "entries"
    heat = go.Heatmap(
        z=shown,
        x=channels,
        y=channels,
        zmin=-reach,
        zmax=reach,
        colorscale=style.DIVERGING,
        colorbar={
            "title": {"text": f"{letter}, {tiled}", "side": "top", "font": {"size": 12}},
            "orientation": "h",
            "y": 1.01,
            "yanchor": "bottom",
            "len": 0.9,
            "thickness": 8,
            "outlinewidth": 0,
            "tickformat": "~g",
            "tickvals": _ticks(reach),
            "tickangle": 0,
        },
        hovertemplate=f"{letter}[%{{y}}, %{{x}}] = %{{z:.3~g}}<extra>{tiled}</extra>",
    )
    return style.figure(
        [heat],
        height=410,
        x={"title": "to channel", "constrain": "domain", "showgrid": False},
        y={
            "title": "from channel",
            "scaleanchor": "x",
            "constrain": "domain",
            "constraintoward": "top",
            "autorange": "reversed",
            "showgrid": False,
        },
    )


def _ticks(reach: float) -> list[float]:
    """Zero and, on both sides, the greatest of 1, 2 or 5 times a power of ten within ``reach``."""
    power = 10.0 ** math.floor(math.log10(reach))
    end = max(step * power for step in (1, 2, 5) if step * power <= reach or step == 1)
    return [-end, 0.0, end]


def energy_split(report: OperatorReport) -> go.Figure:
    """Energy of S and A over that of M: in the weights (Frobenius), and on the calibration tokens.

    On data S and A are not orthogonal: where they cancel, each can hold more energy than M.
    """
    shares = {"frobenius": report.split.frobenius, "activation": report.split.activation}
    values = [split[part] for split in shares.values() for part in _PARTS if part in split]
    if not style.finite(values):
        return style.empty("This operator is zero: there is no energy to split.")
    bars = [
        _energy_bar(part, [split.get(part, math.nan) for split in shares.values()], wide(values))
        for part in _PARTS
    ]
    return style.figure(bars, height=260, x=energy_axis(values), y={"autorange": "reversed"}, barmode="group")


def wide(energies: Sequence[float]) -> bool:
    """Whether energies reach so far that they are drawn as multiples on a logarithmic axis."""
    return style.axis_type(energies) == "log"


def energy_axis(energies: Sequence[float]) -> dict[str, Any]:
    """Axis of energies over that of M, with room for their texts."""
    if not wide(energies):
        room = style.share_range(energies, room=0.32)
        return {"title": "energy as a share of that of M", "range": room, "tickformat": ".0%"}
    ends = [math.log10(value) for value in style.finite(energies)]
    room = [min(ends) - 0.5, max(ends) + 1]
    return {"title": "energy, times that of M", "range": room, **style.log_ticks([])}


def _energy_bar(part: str, energies: list[float], wide: bool) -> go.Bar:
    """Bars of one part in both metrics; as multiples instead of per cent when they reach that far."""
    letter, colour = _PARTS[part]
    look = energy_texts(energies, wide)
    return go.Bar(
        x=energies,
        y=list(_METRICS.values()),
        name=f"{part} ({letter})",
        orientation="h",
        marker_color=colour,
        **look,
        hovertemplate=f"{part} part, %{{y}}: %{{text}} of the energy of M<extra></extra>",
    )


def energy_texts(energies: Sequence[float], wide: bool) -> dict[str, Any]:
    """What stands beside the bars of energies."""
    look = style.bar_texts(energies)
    return {**look, "text": [f"{number(energy)} ×" for energy in energies]} if wide else look


def symmetry_cost(runs: Sequence[RecoveryRun], block: int = 0) -> go.Figure:
    """Explained share of the gap by each operator and by the best symmetric one (held-out)."""
    rows = [
        (role, report.split)
        for role, report in reports(runs, block)
        if math.isfinite(report.split.explained) and math.isfinite(report.split.explained_symmetric)
    ]
    if not rows:
        return style.empty("No recovery of this block has an operator to compare.")
    names = [role.name for role, _ in rows]
    kinds = (
        ("as fitted", [split.explained for _, split in rows], ""),
        ("best symmetric operator", [split.explained_symmetric for _, split in rows], "/"),
    )
    bars = [
        go.Bar(
            x=values,
            y=names,
            name=label,
            orientation="h",
            marker={"color": [role.colour for role, _ in rows], "pattern": {"shape": shape, "size": 6}},
            **style.bar_texts(values),
            hovertemplate=f"%{{y}}, {label}: %{{text}} of the gap explained<extra></extra>",
        )
        for label, values, shape in kinds
    ]
    every = [value for _, values, _ in kinds for value in values]
    return style.figure(
        bars,
        height=style.bars_height(2 * len(rows)),
        x={"title": COUNTED, "tickformat": ".0%", "range": style.share_range(every)},
        y={"autorange": "reversed"},
        barmode="group",
        bargap=0.25,
    )


def eigenvalues(report: OperatorReport, colour: str = style.SYMMETRIC) -> go.Figure:
    """Eigenvalues of W = I + M in the complex plane with the unit circle, at equal aspect."""
    real, imaginary = np.asarray(report.eigenvalues_real), np.asarray(report.eigenvalues_imag)
    if real.size == 0:
        return style.empty("Eigenvalues were not computed for this operator.")
    angle = np.linspace(0, 2 * np.pi, 181)
    circle = go.Scatter(
        x=np.cos(angle),
        y=np.sin(angle),
        mode="lines",
        name="unit circle",
        line={"color": style.GUIDE, "width": 1.5, "dash": "dot"},
        hoverinfo="skip",
    )
    values = real + 1j * imaginary
    dots = go.Scatter(
        x=real,
        y=imaginary,
        mode="markers",
        name="eigenvalues of W",
        marker={"color": colour, "size": 6, "opacity": 0.65},
        customdata=[f"modulus {number(abs(z))}, angle {np.degrees(np.angle(z)):.0f}°" for z in values],
        hovertemplate="%{x:.3~g} %{y:+.3~g} i<br>%{customdata}<extra></extra>",
    )
    return style.figure(
        [circle, dots],
        height=380,
        x={"title": "real part", "constrain": "domain", "range": _around(real)},
        y={
            "title": "imaginary part",
            "scaleanchor": "x",
            "scaleratio": 1,
            "constrain": "domain",
            "constraintoward": "top",
            "range": _around(imaginary),
        },
        legend={"x": 0.5, "xanchor": "center"},
    )


def _around(values: np.ndarray[Any, Any]) -> list[float]:
    """A range that holds the values and the unit circle."""
    return [min(-1.1, 1.1 * float(values.min())), max(1.1, 1.1 * float(values.max()))]
