"""Sentences on single directions and tokens of a map, and on what altered maps did to the model."""

from __future__ import annotations

import math

import numpy as np

from ghostlab.plots.figures.maps import counted
from ghostlab.plots.figures.spectrum import rank_parameters
from ghostlab.plots.formats import count, number, percent, points
from ghostlab.results.operator import OperatorReport, Points, RankCurve
from ghostlab.results.probe import FACTORS, Alteration, Factor, Probe
from ghostlab.results.records import RecoveryRun
from ghostlab.results.run import RunResult


def directions(report: OperatorReport) -> str:
    """How much of the map's effect its first direction holds, where it points, and which token it moves."""
    if not report.directions:
        return "Directions were not recorded for this map."
    first = report.directions[0]
    rest = report.directions[1:]
    channel, square = first.writes[0]
    text = (
        f"{percent(first.share)} of what the map does to calibration tokens is along one direction, which "
        f"points to channel {channel} with {percent(square)} of its square"
    )
    if rest:
        share = percent(sum(one.share for one in rest))
        text += f"; the next holds {share}" if len(rest) == 1 else f"; the next {len(rest)} hold {share}"
    if not first.tokens:
        return f"{text}."
    total, massive = len(first.tokens), sum(token.massive for token in first.tokens)
    said = {0: "none is massive", total: "all are massive"}.get(massive, f"{massive} massive")
    return f"{text}. Of the {total} held-out tokens that it moves farthest, {said}."


def state_plane(report: OperatorReport) -> str:
    """How near the recovered states come to the original's, in the plane and for both kinds of tokens."""
    if report.plane is None:
        return "States of single tokens were not recorded."
    left = _left(report.plane.ordinary)
    shown = percent(sum(report.plane.variance))
    text = f"The plane holds {shown} of the variance of ordinary tokens"
    if left is None:
        return f"{text}."
    text += f"; in it their recovered states miss the original's by {percent(left)} of what dropping does"
    massive = _left(report.plane.massive)
    return f"{text}." if massive is None else f"{text}, those of massive tokens by {percent(massive)}."


def _left(shown: Points) -> float | None:
    """Root mean square distance recovered to original, over that of dropping; in the plane."""
    if not shown.after:
        return None
    after, before, recovered = (np.asarray(p) for p in (shown.after, shown.before, shown.recovered))
    gap = float(np.square(before - after).sum())
    return math.sqrt(float(np.square(recovered - after).sum()) / gap) if gap else None


def rank_at(report: OperatorReport, rank: int, factor: Factor) -> str:
    """What a rank explains and costs, from the curve; between two of its points, by interpolation."""
    curve = report.reduced_rank if factor == "reduced_rank" else report.truncated_svd
    if curve is None or len(curve.ranks) < 2:
        return "The error of lower ranks was not recorded."
    top = curve.ranks[-1]
    rank = min(rank, top)
    has_bias = report.bias_norm > 0
    added, whole = (rank_parameters(r, top, bias=has_bias) for r in (rank, top))
    about = "" if rank in curve.ranks else "about "
    less = f"{count(whole - added)} fewer than all of it" if added < whole else "as many as all of it"
    return (
        f"Rank {count(rank)} by {FACTORS[factor]} explains {about}{percent(_explained(curve, rank))} of the "
        f"gap (full rank {percent(curve.explained[-1])}; {counted(report)}) with {count(added)} parameters, "
        f"{less}."
    )


def _explained(curve: RankCurve, rank: int) -> float:
    return float(np.interp(rank, curve.ranks, curve.explained))


def rank_expected(result: RunResult, run: RecoveryRun, rank: int, factor: Factor) -> str:
    """What a rank did to the model, or what the ranks measured on both sides of it let one expect."""
    expected = result.rank_sweep(run, factor).forecast(rank)
    if expected is None:
        return ""
    perplexity, kl = map(number, expected)
    if rank >= result.model.hidden_size:
        return f"As fitted, perplexity is {perplexity} and KL {kl}."
    if rank in result.rank_sweep(run, factor).ranks:
        return f"Measured: perplexity {perplexity}, KL {kl}."
    return f"Between the ranks measured beside it: perplexity about {perplexity}, KL about {kl}."


def ranks(result: RunResult, run: RecoveryRun) -> str:
    """The least measured rank within the noise of the full one, for each factorisation."""
    said = [words for factor in FACTORS if (words := _suggestion(result, run, factor))]
    if not said:
        return "No rank has been measured yet: press *Measure several ranks* to put some into the model."
    return " ".join(said)


def _suggestion(result: RunResult, run: RecoveryRun, factor: Factor) -> str:
    sweep = result.rank_sweep(run, factor)
    found = sweep.probes
    if not found:
        return ""
    best = sweep.suggested
    name, full = FACTORS[factor], number(run.perplexity.value)
    if best is None:
        top = found[-1]
        rank = count(top.alteration.rank or 0)
        ends = f"perplexity {number(top.perplexity.value)} against {full}."
        if len(found) == 1:
            return f"By {name}, rank {rank}, the only one measured, is surely worse than the full one: {ends}"
        return f"By {name}, every measured rank is surely worse than the full one: rank {rank} has {ends}"
    saved = run.parameters_added - best.parameters_added
    cheaper = f" and {count(saved)} fewer parameters" if saved > 0 else ""
    return (
        f"By {name}, rank {count(best.alteration.rank or 0)} is the lowest measured one within the noise of "
        f"the full rank: perplexity {number(best.perplexity.value)} against {full}{cheaper}."
    )


def strengths(result: RunResult, run: RecoveryRun) -> str:
    """What the latest probe did, and which alteration of this recovery did best."""
    found = [probe for probe in result.probes if probe.label == run.label]
    ends = f"{run.label} as fitted has perplexity {number(run.perplexity.value)}, plain dropping "
    ends += number(result.baseline.pruned.perplexity.value)
    if not found:
        return f"{ends}. Choose what to put into the model instead."
    best = min(found, key=lambda probe: probe.perplexity.value)
    latest = _says(found[-1])
    if best is found[-1]:
        return f"{ends}; {latest}{_best_of(found)}."
    return (
        f"{ends}; {latest}; the best so far is {best.alteration.name} with {number(best.perplexity.value)}."
    )


def _says(probe: Probe) -> str:
    return f"{probe.alteration.name} has {number(probe.perplexity.value)}"


def _best_of(found: list[Probe]) -> str:
    return f", the best of {len(found)} probes" if len(found) > 1 else ""


def parts(result: RunResult, run: RecoveryRun) -> str:
    """What S alone and A alone do to the model, once both were measured; else nothing."""
    known = {probe.alteration: probe for probe in result.probes if probe.label == run.label}
    alone = [known.get(Alteration(part="symmetric")), known.get(Alteration(part="antisymmetric"))]
    if None in alone or not run.operators:
        return ""
    values = [probe.perplexity.value for probe in alone if probe]
    pruned = result.baseline.pruned.perplexity.value
    harm = ", both worse than plain dropping" if min(values) > pruned else ""
    split = run.operators[0].split
    cost = points(split.explained - split.explained_symmetric)
    return (
        f" S alone has perplexity {number(values[0])} and A alone {number(values[1])}{harm}; the best "
        f"symmetric map, fitted as such, costs {cost} of explained gap ({counted(run.operators[0])})."
    )
