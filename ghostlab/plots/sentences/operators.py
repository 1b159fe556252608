"""Sentences on the fitted map: its parts, its spectrum and its rank."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ghostlab.plots import style
from ghostlab.plots.figures.maps import counted, reports
from ghostlab.plots.figures.spectrum import rank_parameters
from ghostlab.plots.formats import count, number, percent, points
from ghostlab.results.operator import OperatorReport
from ghostlab.results.records import RecoveryRun

_NONE = "No recovery of this block has a fitted map."


def heat_map(report: OperatorReport) -> str:
    """How the entries of S and A compare, and where the largest is."""
    parts = [np.asarray(m, dtype=float) for m in (report.symmetric_map, report.antisymmetric_map)]
    if not all(part.size for part in parts):
        return "This operator has no dense map to show."
    sizes = [np.abs(part) for part in parts]
    means = [number(float(np.nanmean(size))) for size in sizes]
    peak = max(range(2), key=lambda part: float(np.nanmax(sizes[part])))
    place = np.unravel_index(np.nanargmax(sizes[peak]), sizes[peak].shape)
    row, column = (_channels(int(index), report) for index in place)
    noun = "channels" if report.tile > 1 else "channel"
    tiles = f", averaged over {report.tile} × {report.tile} tiles," if report.tile > 1 else ""
    reach = style.symmetric_range(report.symmetric_map, report.antisymmetric_map)
    beyond = f", beyond the colour scale, which ends at ±{number(reach)}"
    return (
        f"Entries of S{tiles} are {means[0]} in size and those of A {means[1]}; the largest is "
        f"{number(float(parts[peak][place]))}, in {'SA'[peak]} from {noun} {row} to {column}"
        f"{beyond if sizes[peak][place] > reach else ''}."
    )


def _channels(index: int, report: OperatorReport) -> str:
    """The channels of one tile, ``90–98``; the last tile may be smaller."""
    first = index * report.tile
    last = first + report.tile - 1
    if report.singular_values:
        last = min(last, len(report.singular_values) - 1)
    return f"{first}\N{EN DASH}{last}" if last > first else str(first)


def energy_split(report: OperatorReport) -> str:
    """How much of M is antisymmetric, and whether S and A cancel on data."""
    weights, data = report.split.frobenius, report.split.activation
    share = weights.get("antisymmetric", math.nan)
    if not math.isfinite(share):
        return "This operator is zero: there is no energy to split."
    text = f"{percent(share)} of the map's weight energy is antisymmetric"
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


def symmetry_cost(runs: Sequence[RecoveryRun], block: int = 0) -> str:
    """What leaving the symmetric set is worth, in points of explained gap."""
    rows = [(role, r) for role, r in reports(runs, block) if math.isfinite(r.split.explained)]
    rows = [row for row in rows if math.isfinite(row[1].split.explained_symmetric)]
    if not rows:
        return "No recovery of this block has an operator to compare."
    role, report = max(rows, key=lambda row: row[1].split.explained)
    split = report.split
    worth = split.explained - split.explained_symmetric
    ends = f"{percent(split.explained)} against {percent(split.explained_symmetric)} of the gap explained "
    ends += f"({counted(report)})"
    if abs(worth) < 0.005:
        return f"For {role.name} symmetry costs next to nothing: {ends}."
    if worth < 0:
        return f"The best symmetric operator does better than {role.name}: {ends}."
    return f"For {role.name}, leaving the symmetric set is worth {points(worth)} of explained gap: {ends}."


def eigenvalues(report: OperatorReport) -> str:
    """How many eigenvalues of W grow, and how strongly it turns."""
    values = np.asarray(report.eigenvalues_real) + 1j * np.asarray(report.eigenvalues_imag)
    if not values.size:
        return " ".join(["Eigenvalues were not computed for this operator.", *report.notes])
    sizes = np.abs(values)
    outside, total, top = int((sizes > 1).sum()), count(values.size), number(float(sizes.max()))
    verb = "lies" if outside == 1 else "lie"
    text = (
        f"{count(outside)} of {total} eigenvalues of W {verb} outside the unit circle (largest modulus {top})"
    )
    turning = values[np.abs(values.imag) > 1e-9 * sizes.max()]
    if not turning.size:
        return f"{text}; all are real: W stretches and does not turn."
    angle = float(np.degrees(np.abs(np.angle(turning)).max()))
    return f"{text}; {percent(turning.size / values.size)} are complex, turning by up to {angle:.0f}°."


def singular_values(runs: Sequence[RecoveryRun], block: int = 0) -> str:
    """How fast the singular values fall."""
    rows = [(role, r.singular_values) for role, r in reports(runs, block) if style.finite(r.singular_values)]
    if not rows:
        return _NONE
    role, values = rows[_best(runs, block, [role for role, _ in rows])]
    top, middle = values[0], float(np.median(values))
    if middle <= 1e-6 * top:
        return f"The greatest singular value of {role.name} is {number(top)}; more than half are zero."
    return (
        f"The greatest singular value of {role.name} is {number(top)}, "
        f"{number(top / middle)} times the median one."
    )


def cumulative_energy(runs: Sequence[RecoveryRun], block: int = 0) -> str:
    """How many directions hold half, and how many hold 90 % of the energy."""
    rows = [(role, r.cumulative_energy) for role, r in reports(runs, block) if r.cumulative_energy]
    rows = [row for row in rows if style.finite(row[1])]
    if not rows:
        return _NONE
    role, energy = rows[_best(runs, block, [role for role, _ in rows])]
    half, most = (int(np.searchsorted(energy, share)) + 1 for share in (0.5, 0.9))
    verb = "holds" if half == 1 else "hold"
    return (
        f"{count(half)} of {count(len(energy))} directions {verb} half of the energy of {role.name}, "
        f"{count(min(most, len(energy)))} hold 90 %."
    )


def rank_curve(runs: Sequence[RecoveryRun], block: int = 0) -> str:
    """The least rank that keeps 95 % of what the best rank of the best recovery explains, and what it costs.

    Also which of truncated SVD and reduced rank is better.
    """
    rows = [(role, r) for role, r in reports(runs, block) if style.finite(r.truncated_svd.explained)]
    if not rows:
        return _NONE
    role, report = max(rows, key=lambda row: max(style.finite(row[1].truncated_svd.explained)))
    curve = report.truncated_svd
    reached = np.asarray(curve.explained, dtype=float)
    best = int(np.nanargmax(reached))
    if not reached[best] > 0:
        return f"No rank of {role.name} explains any of the gap on held-out text."
    enough = int(np.argmax(reached >= 0.95 * reached[best]))
    channels = max(len(report.singular_values), curve.ranks[-1])
    added = count(rank_parameters(curve.ranks[enough], channels, bias=report.bias_norm > 0))
    text = (
        f"Rank {count(curve.ranks[enough])} of {role.name} ({added} parameters) "
        f"explains {percent(reached[enough])} of the gap ({counted(report)})"
    )
    full = f"the full rank, {count(curve.ranks[-1])}, explains {percent(reached[-1])}"
    if best < len(reached) - 1 and reached[best] - reached[-1] > 0.005:
        full += f", less than rank {count(curve.ranks[best])} with {percent(reached[best])}"
    if enough == len(reached) - 1:
        full = "every lower rank loses more than a twentieth of that"
    return f"{text}; {full}.{_factorisation(role.name, report)}"


def _best(runs: Sequence[RecoveryRun], block: int, roles: Sequence[style.Role]) -> int:
    """Index of the role whose map explains most on held-out text."""
    explained = {role.name: report.split.explained for role, report in reports(runs, block)}
    return max(range(len(roles)), key=lambda index: explained.get(roles[index].name, -math.inf))


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
    ahead, after = ("Reduced rank", "truncated SVD") if lead[at] > 0 else ("Truncated SVD", "reduced rank")
    high, low = sorted((best.explained[at], plain.explained[at]), reverse=True)
    return (
        f" {ahead} does better than {after} of {name} by up to {points(high - low)}: "
        f"{percent(high)} against {percent(low)} at rank {count(plain.ranks[at])}."
    )
