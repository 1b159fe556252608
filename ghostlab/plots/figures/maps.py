"""What the fitted map of one block is: M = S + A, its symmetric and antisymmetric part, and W = I + M."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.figure import Figure, of_each
from ghostlab.plots.formats import count, number, percent, points
from ghostlab.plots.rows import Row, Rows, operators, where
from ghostlab.results.operator import OperatorReport

Part = Literal["symmetric", "antisymmetric"]
_PARTS: dict[Part, tuple[str, str]] = {
    "symmetric": ("S", style.SYMMETRIC),
    "antisymmetric": ("A", style.ANTISYMMETRIC),
}
_METRICS = {"frobenius": "in the weights", "activation": "on calibration<br>tokens"}
COUNTED = "explained share of the gap<br>(held-out tokens, as in the fit)"
"""Axis title of what is measured on the tokens that a map is for; :func:`scope` says which they are."""
NO_MAP = "has no fitted map"


def scope(report: OperatorReport) -> str:
    """Which held-out tokens a map was measured on, and how they counted: those that its fit is for."""
    tokens = "held-out tokens after the first" if report.first_apart else "all held-out tokens"
    return f"{tokens}, each relative to its size" if report.weight == "relative" else tokens


def why_empty(part: str) -> Callable[[Rows], str]:
    """Why a figure on one recovery's map is empty: its map lacks a part, or there is none."""

    def reason(rows: Rows) -> str:
        for _, report in operators(rows):
            return " ".join([part, *report.notes])
        if not rows:
            return "No recovery was fitted."
        return (
            f"No linear map to show. {rows[0].name} puts none in the place of the layers (it drops them "
            "plainly, keeps one, or changes the weights of one), so there is nothing to take apart; choose "
            "another recovery."
        )

    return reason


def has(test: Callable[[OperatorReport], object]) -> Callable[[Rows], Rows]:
    """A function that keeps the rows with a map for which ``test`` holds."""
    return where(lambda row: row.operator is not None and test(row.operator))


# -- S and A ---------------------------------------------------------------------------------------------


def _tiles(report: OperatorReport) -> dict[Part, np.ndarray[Any, Any]]:
    return {part: np.asarray(getattr(report, f"{part}_map"), dtype=float) for part in _PARTS}


def heat_map(rows: Rows, part: Part = "symmetric") -> go.Figure:
    """S or A, averaged over square tiles. Both parts of one operator share one colour range."""
    ((_, report),) = operators(rows)
    tiles, (letter, _) = _tiles(report), _PARTS[part]
    reach = style.symmetric_range(*tiles.values())
    channels = np.arange(len(tiles[part])) * report.tile
    tiled = f"means of {report.tile} × {report.tile} entries" if report.tile > 1 else "entries"
    heat = go.Heatmap(
        z=tiles[part].astype(np.float32),
        x=channels,
        y=channels,
        zmin=-reach,
        zmax=reach,
        colorscale=style.DIVERGING,
        colorbar=style.colour_bar(
            f"{letter}, {tiled}", y=1.01, len=0.9, thickness=8, tickformat="~g", tickvals=_ticks(reach)
        ),
        hovertemplate=f"{letter}[%{{y}}, %{{x}}] = %{{z:.3~g}}<extra>{tiled}</extra>",
    )
    axes = style.square_axes(
        {"title": "to channel", "showgrid": False},
        {"title": "from channel", "showgrid": False, "autorange": "reversed"},
    )
    return style.figure([heat], height=410, **axes)


def _ticks(reach: float) -> list[float]:
    """Zero and, on both sides, the greatest of 1, 2 or 5 times a power of ten within ``reach``."""
    power = 10.0 ** math.floor(math.log10(reach))
    end = max(step * power for step in (1, 2, 5) if step * power <= reach or step == 1)
    return [-end, 0.0, end]


def say_heat_map(rows: Rows) -> str:
    """How the entries of S and A compare, and where the largest is."""
    ((_, report),) = operators(rows)
    parts = np.stack(list(_tiles(report).values()))
    sizes = np.abs(parts)
    means = [number(float(mean)) for mean in np.nanmean(sizes, axis=(1, 2))]
    place = np.unravel_index(np.nanargmax(sizes), sizes.shape)
    largest, part = float(parts[place]), int(place[0])
    row, column = (_channels(int(index), report) for index in place[1:])
    noun = "channels" if report.tile > 1 else "channel"
    tiles = f", averaged over {report.tile} × {report.tile} tiles," if report.tile > 1 else ""
    reach = style.symmetric_range(parts)
    beyond = f", beyond the colour scale, which ends at ±{number(reach)}" if abs(largest) > reach else ""
    return (
        f"Entries of S{tiles} are {means[0]} in size and those of A {means[1]}; the largest is "
        f"{number(largest)}, in {'SA'[part]} from {noun} {row} to {column}{beyond}."
    )


def _channels(index: int, report: OperatorReport) -> str:
    """The channels of one tile, ``90–98``; the last tile may be smaller."""
    first = index * report.tile
    last = first + report.tile - 1
    if report.singular_values:
        last = min(last, len(report.singular_values) - 1)
    return f"{first}\N{EN DASH}{last}" if last > first else str(first)


# -- energy ----------------------------------------------------------------------------------------------


def energy_split(rows: Rows) -> go.Figure:
    """Energy of S and A over that of M, in the weights and on the calibration tokens; S plain, A hatched
    where several maps are drawn.

    On data S and A are not orthogonal: where they cancel, each can hold more energy than M. Energies that
    reach far are drawn as multiples on a logarithmic axis.
    """
    energies = [
        (row, part, [getattr(report.split, metric).get(part, math.nan) for metric in _METRICS])
        for row, report in operators(rows)
        for part in _PARTS
    ]
    known = style.finite(value for *_, values in energies for value in values)
    if wide := style.axis_type(known) == "log":
        room = [math.log10(min(known)) - 0.5, math.log10(max(known)) + 1]
        x = {"title": "energy, times that of M", "range": room, **style.log_ticks([])}
    else:
        x = style.share_axis("energy as a share of that of M", known, room=0.32)
    bars, pair = [], rows[0].side
    for row, part, values in energies:
        letter, colour = _PARTS[part]
        about = f"{row.name}, {part}" if pair else part
        bar = style.share_bars(
            values,
            list(_METRICS.values()),
            f"{about} part, %{{y}}: %{{text}} of the energy of M",
            name=about if pair else f"{part} ({letter})",
            marker_color=row.role.colour if pair else colour,
            **({"text": [f"{number(value)} ×" for value in values]} if wide else {}),
        )
        bars.append(bar.update(marker_pattern=_hatch(part == "antisymmetric")) if pair else bar)
    height = 160 + 50 * len(energies)
    return style.figure(bars, height=height, x=x, y={"autorange": "reversed"}, barmode="group")


def _hatch(yes: bool) -> dict[str, Any]:
    return {"shape": "/" if yes else "", "size": 6}


def say_energy_split(rows: Rows) -> str:
    """How much of M is antisymmetric, and whether S and A cancel on data."""
    ((_, report),) = operators(rows)
    weights, data = report.split.frobenius, report.split.activation
    text = f"{percent(weights['antisymmetric'])} of the map's weight energy is antisymmetric"
    on_data = data.get("antisymmetric", math.nan)
    if not math.isfinite(on_data):
        return f"{text}."
    total = on_data + data.get("symmetric", math.nan)
    if total > 1.2:
        return (
            f"{text}; on calibration tokens S and A together hold {number(total, 2)} times the energy of M, "
            "because they partly cancel, so neither share alone says what symmetry is worth."
        )
    return f"{text}, and {percent(on_data)} of its energy on calibration tokens."


def _antisymmetric(row: Row) -> str:
    share = row.operator.split.frobenius.get("antisymmetric", math.nan) if row.operator else math.nan
    return percent(share) if math.isfinite(share) else ""


# -- symmetry --------------------------------------------------------------------------------------------


def symmetry_cost(rows: Rows) -> go.Figure:
    """Explained share of the gap by each operator and by the best symmetric one (held-out)."""
    splits = [(row, report.split) for row, report in operators(rows)]
    kinds = {
        "as fitted": [split.explained for _, split in splits],
        "best symmetric operator": [split.explained_symmetric for _, split in splits],
    }
    bars = [
        style.share_bars(
            values,
            [row.name for row, _ in splits],
            f"%{{y}}, {label}: %{{text}} of the gap explained",
            name=label,
            marker={"color": [row.role.colour for row, _ in splits], "pattern": _hatch(label != "as fitted")},
        )
        for label, values in kinds.items()
    ]
    x = style.share_axis(COUNTED, chain(*kinds.values()))
    return style.by_row(bars, 2 * len(splits), x, barmode="group", bargap=0.25)


def say_symmetry_cost(rows: Rows) -> str:
    """What leaving the symmetric set is worth, in points of explained gap."""
    row, report = max(operators(rows), key=lambda pair: pair[1].split.explained)
    fitted, symmetric = report.split.explained, report.split.explained_symmetric
    worth = fitted - symmetric
    ends = f"{percent(fitted)} against {percent(symmetric)} of the gap explained ({scope(report)})"
    if abs(worth) < 0.005:
        return f"For {row.name} symmetry costs next to nothing: {ends}."
    if worth < 0:
        return f"The best symmetric operator does better than {row.name}: {ends}."
    return f"For {row.name}, leaving the symmetric set is worth {points(worth)} of explained gap: {ends}."


# -- eigenvalues -----------------------------------------------------------------------------------------


def _eigenvalues(report: OperatorReport) -> np.ndarray[Any, Any]:
    return np.asarray(report.eigenvalues_real) + 1j * np.asarray(report.eigenvalues_imag)


def eigenvalues(rows: Rows) -> go.Figure:
    """Eigenvalues of W = I + M in the complex plane with the unit circle, at equal aspect."""
    angle = np.linspace(0, 2 * np.pi, 181)
    circle = style.thread(
        np.cos(angle),
        np.sin(angle),
        name="unit circle",
        line={"color": style.GUIDE, "width": 1.5, "dash": "dot"},
        showlegend=True,
    )
    known = [(row, _eigenvalues(report)) for row, report in operators(rows)]
    dots = [
        style.dots(
            values.real,
            values.imag,
            f"{row.name}: %{{x:.3~g}} %{{y:+.3~g}} i<br>%{{customdata}}",
            {"color": row.role.colour, "symbol": row.role.symbol, "size": 6, "opacity": 0.65},
            name=row.name if row.side else "eigenvalues of W",
            customdata=[f"modulus {number(abs(z))}, angle {np.degrees(np.angle(z)):.0f}°" for z in values],
        )
        for row, values in known
    ]
    every = np.concatenate([values for _, values in known])
    axes = style.square_axes(
        {"title": "real part", "range": _around(every.real)},
        {"title": "imaginary part", "range": _around(every.imag)},
    )
    legend = {"x": 0.5, "xanchor": "center"}
    return style.figure([circle, *dots], height=360 + 20 * len(known), legend=legend, **axes)


def _around(values: np.ndarray[Any, Any]) -> list[float]:
    """A range that holds the values and the unit circle."""
    return [min(-1.1, 1.1 * float(values.min())), max(1.1, 1.1 * float(values.max()))]


def say_eigenvalues(rows: Rows) -> str:
    """How many eigenvalues of W grow, and how strongly it turns."""
    ((_, report),) = operators(rows)
    values = _eigenvalues(report)
    sizes = np.abs(values)
    outside = int((sizes > 1).sum())
    lie = "lies" if outside == 1 else "lie"
    text = (
        f"{count(outside)} of {count(values.size)} eigenvalues of W {lie} outside "
        f"the unit circle (largest modulus {number(float(sizes.max()))})"
    )
    turning = values[np.abs(values.imag) > 1e-9 * sizes.max()]
    if not turning.size:
        return f"{text}; all are real: W stretches and does not turn."
    angle = float(np.degrees(np.abs(np.angle(turning)).max()))
    return f"{text}; {percent(turning.size / values.size)} are complex, turning by up to {angle:.0f}°."


def _outside(row: Row) -> str:
    if row.operator is None or not row.operator.eigenvalues_real:
        return ""
    sizes = np.abs(_eigenvalues(row.operator))
    outside, top = int((sizes > 1).sum()), float(sizes.max())
    return f"{count(outside)} of {count(sizes.size)} (largest modulus {number(top)})"


FIGURES = (
    Figure(
        "energy_split",
        "Energy of S and A",
        "Every square matrix is the sum of a symmetric part S, which stretches along fixed axes, and an "
        "antisymmetric part A, which turns. In the weights their energies add up to that of M. On tokens "
        "(those of the calibration) they need not: if they cancel each other there, together they hold more "
        "than M itself, and neither share says what a part is worth.",
        r"M = S + A, \quad S = \tfrac12 (M + M^\top), \quad A = \tfrac12 (M - M^\top); \qquad "
        r"\frac{\lVert S \rVert_F^2}{\lVert M \rVert_F^2}, \quad "
        r"\frac{\lVert XS \rVert_F^2}{\lVert XM \rVert_F^2}",
        "Horn and Johnson, *Matrix Analysis*, section 4.1",
        draw=energy_split,
        say=say_energy_split,
        select=has(lambda report: math.isfinite(report.split.frobenius.get("antisymmetric", math.nan))),
        nothing=why_empty("This operator is zero: there is no energy to split."),
        compare=of_each("Antisymmetric share of the energy in the weights", _antisymmetric, NO_MAP),
        heading="Energy of {}",
    ),
    Figure(
        "symmetry_cost",
        "What symmetry costs",
        "Some recoveries are symmetric by construction: a scaling of each channel, or of rotated channels "
        "as in LinearPatch. The fair question is not what the symmetric part of a free map does, but how "
        "well the best symmetric map, fitted as such, does. Both are measured on the held-out tokens "
        "that the fit is for, counted as in it. The difference is what such a constraint gives away on this "
        "model.",
        r"\min_{M} \lVert XM - \Delta \rVert_F^2 \quad\text{against}\quad "
        r"\min_{M = M^\top} \lVert XM - \Delta \rVert_F^2, \qquad \Delta = Y - X",
        "LinearPatch (arXiv 2505.24680); Ghosted Layers (arXiv 2605.15491); symmetric least squares: "
        "Higham 1988",
        draw=symmetry_cost,
        say=say_symmetry_cost,
        select=has(
            lambda report: (
                math.isfinite(report.split.explained) and math.isfinite(report.split.explained_symmetric)
            )
        ),
        nothing="No recovery of this block has an operator to compare.",
    ),
    Figure(
        "heat_map",
        "The two parts: S (symmetric) and A (antisymmetric)",
        "A dot in row i and column j tells how much of channel i is added to channel j; small squares of "
        "entries are averaged, so that the whole matrix fits. Both parts share one scale. S mirrors itself "
        "at the diagonal, A with the opposite sign. A dark stripe is a channel that the map reads or writes "
        "more than others.",
        r"\hat y_j = x_j + \sum_i x_i\, (S_{ij} + A_{ij}), \qquad S_{ij} = S_{ji}, \quad A_{ij} = -A_{ji}",
        "The map: Ghosted Layers (arXiv 2605.15491)",
        draw=heat_map,
        beside=lambda rows: heat_map(rows, "antisymmetric"),
        say=say_heat_map,
        select=has(lambda report: report.symmetric_map and report.antisymmetric_map),
        nothing=why_empty("This operator has no dense map to show."),
        heading="S and A of {}",
    ),
    Figure(
        "eigenvalues",
        "Eigenvalues of W in the complex plane",
        "W = I + M is what happens to the state as a whole. A real eigenvalue stretches or shrinks along an "
        "axis; a complex pair turns as well. Points on the dotted circle keep their length, those outside "
        "grow. Doing nothing would be the single point 1, and a symmetric W has only real ones.",
        r"x W = \lambda x, \qquad \lambda = r\, e^{i\varphi}",
        "Horn and Johnson, *Matrix Analysis*, section 2.5",
        draw=eigenvalues,
        say=say_eigenvalues,
        select=has(lambda report: report.eigenvalues_real),
        nothing=why_empty("Eigenvalues were not computed for this operator."),
        compare=of_each("Eigenvalues outside the unit circle", _outside, NO_MAP),
        heading="Eigenvalues of {}",
    ),
)
