"""Figures of two recoveries drawn into one: of one run in its colours, of two in the order of the sides."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.catalog import Panel
from ghostlab.plots.figures import boundary, kinds, spectrum, tasks, windows
from ghostlab.plots.figures import likelihood as perplexity
from ghostlab.plots.figures import maps as operator
from ghostlab.plots.formats import number
from ghostlab.plots.sentences import sides
from ghostlab.plots.style import Role
from ghostlab.results.compare import ORIGINAL, Side, same_windows
from ghostlab.results.operator import OperatorReport
from ghostlab.results.records import Metric


def panels(one: Side, other: Side) -> list[Panel]:
    """Likelihood, restored state, maps and tasks of both sides, in a fixed order."""
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
    both_looks = looks(one, other)
    both = [Panel(name, words(one, other), [figure(runs, looks=both_looks)]) for name, figure, words in drawn]
    more = [
        Panel("by_kind", sides.by_kind(one, other), [by_kind(one, other)]),
        Panel("energy_split", sides.energy_split(one, other), [energy_split(one, other)]),
        Panel("eigenvalues", sides.eigenvalues(one, other), [eigenvalues(one, other)]),
        Panel("retained", sides.retained(one, other), [retained(one, other)]),
    ]
    return [*made, *both, *more]


FIGURES = (
    "perplexity",
    "paired_windows",
    "by_position",
    "explained",
    "channel_error",
    "position_error",
    "singular_values",
    "rank_curve",
    "by_kind",
    "energy_split",
    "eigenvalues",
    "retained",
)
"""Of :func:`panels`, for whoever must lay them out before there is anything to compare."""


def looks(one: Side, other: Side) -> list[Role]:
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
    roles = looks(one, other)
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
    role = looks(one, other)[0]
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
    roles = looks(one, other)
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


def by_kind(one: Side, other: Side) -> go.Figure:
    """What each loses on each kind of token against its own original."""
    rows = zip(looks(one, other), (one, other), strict=True)
    return kinds.bars(
        [(role, side.run.agreement.classes) for role, side in rows if side.run.agreement is not None]
    )


def energy_split(one: Side, other: Side) -> go.Figure:
    """Energy of S and of A over that of M of each side's first map, in the weights and on data."""
    rows = [
        (role, part, [split.frobenius.get(part, math.nan), split.activation.get(part, math.nan)])
        for role, report in _maps(one, other)
        for split in [report.split]
        for part in ("symmetric", "antisymmetric")
    ]
    values = [value for *_, both in rows for value in both]
    if not style.finite(values):
        return style.empty("Neither has a fitted map with energy to split.")
    drawn = [_energies(*row, operator.wide(values)) for row in rows]
    height = 160 + 50 * len(rows)
    return style.figure(
        drawn, height=height, x=operator.energy_axis(values), y={"autorange": "reversed"}, barmode="group"
    )


def _energies(role: Role, part: str, energies: list[float], wide: bool) -> go.Bar:
    """S plain, A hatched."""
    shape = "" if part == "symmetric" else "/"
    return go.Bar(
        x=energies,
        y=["in the weights", "on calibration<br>tokens"],
        name=f"{role.name}, {part}",
        orientation="h",
        marker={"color": role.colour, "pattern": {"shape": shape, "size": 6}},
        **operator.energy_texts(energies, wide),
        hovertemplate=f"{role.name}, {part} part, %{{y}}: %{{text}} of the energy of M<extra></extra>",
    )


def eigenvalues(one: Side, other: Side) -> go.Figure:
    """Eigenvalues of W = I + M of each side's first map, with the unit circle, at equal aspect."""
    rows = [(role, report) for role, report in _maps(one, other) if report.eigenvalues_real]
    if not rows:
        return style.empty("Eigenvalues were not computed for either.")
    dots = [
        go.Scatter(
            x=report.eigenvalues_real,
            y=report.eigenvalues_imag,
            mode="markers",
            name=role.name,
            marker={"color": role.colour, "symbol": role.symbol, "size": 6, "opacity": 0.6},
            hovertemplate=f"{role.name}: %{{x:.3~g}} %{{y:+.3~g}} i<extra></extra>",
        )
        for role, report in rows
    ]
    made = style.figure(
        dots,
        height=400,
        x={"title": "real part", "constrain": "domain"},
        y={"title": "imaginary part", "scaleanchor": "x", "scaleratio": 1, "constrain": "domain"},
        showlegend=True,
    )
    made.add_shape(type="circle", x0=-1, y0=-1, x1=1, y1=1, line={"color": style.GUIDE, "dash": "dot"})
    return made


def _maps(one: Side, other: Side) -> list[tuple[Role, OperatorReport]]:
    """The first map of each; a side without one is left out."""
    rows = zip(looks(one, other), (one, other), strict=True)
    return [(role, side.run.operators[0]) for role, side in rows if side.run.operators]


def retained(one: Side, other: Side) -> go.Figure:
    """Share of the original's zero-shot accuracy that each keeps on the tasks that count for both."""
    told, kept = sides.kept_on_tasks(one, other)
    if not told:
        return style.empty("They were not asked the same zero-shot tasks.")
    rows = zip(looks(one, other), (one, other), kept, strict=True)
    return tasks.bars([(role, side.name, metric) for role, side, metric in rows], len(told))
