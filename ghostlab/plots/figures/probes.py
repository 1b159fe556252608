"""What altered maps did to the model when they were measured: against strength, and against rank."""

from __future__ import annotations

from typing import Any, Literal

import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.figure import Figure
from ghostlab.plots.figures.maps import scope, why_empty
from ghostlab.plots.formats import count, interval, number, points
from ghostlab.plots.rows import Row, Rows, recoveries, where
from ghostlab.plots.style import Role
from ghostlab.results.probe import FACTORS, PARTS, Alteration, Factor, Part, Probe
from ghostlab.results.records import Metric, RecoveryRun
from ghostlab.results.run import RunResult

Measure = Literal["perplexity", "kl"]
_TITLES: dict[Measure, str] = {
    "perplexity": "perplexity on held-out text",
    "kl": "KL to the original, nats per token",
}
PART_ROLES: dict[Part, Role] = {
    "whole": Role(PARTS["whole"], "#0ca27e", "solid", "circle"),
    "symmetric": Role(PARTS["symmetric"], style.SYMMETRIC, "10px,3px", "diamond"),
    "antisymmetric": Role(PARTS["antisymmetric"], style.ANTISYMMETRIC, "3px,2px", "triangle-up"),
}
_FACTOR_ROLES: dict[Factor, Role] = {
    "truncated_svd": Role(FACTORS["truncated_svd"], style.SYMMETRIC, "solid", "circle"),
    "reduced_rank": Role(FACTORS["reduced_rank"], style.ANTISYMMETRIC, "10px,3px", "diamond"),
}
_APART = 1.9
"""The least ratio of two ranks that are both labelled: doublings are, eighths of the width are not."""
Point = tuple[float, Metric, str]


# -- parts and strengths ---------------------------------------------------------------------------------


def strengths(rows: Rows) -> go.Figure:
    """Perplexity against strength, for the whole map and for each part that was measured.

    Two points are known without a probe: strength 0 is plain dropping, and 1 of the whole map the recovery.
    """
    ((row, run),) = recoveries(rows)
    dropped = (0.0, row.result.baseline.pruned.perplexity, "plain dropping")
    traces = []
    for part, role in PART_ROLES.items():
        known = [dropped, *([(1.0, run.perplexity, "as fitted")] if part == "whole" else [])]
        known += [
            (probe.alteration.alpha, probe.perplexity, probe.alteration.name)
            for probe in row.probes
            if probe.alteration.part == part and probe.alteration.rank is None
        ]
        if len(known) > 1:
            known = sorted(dict.fromkeys(known), key=lambda point: point[0])
            traces.append(_line(role, known))
    return _merit(row.result, traces, "perplexity", {"title": "strength (1 is as fitted)"})


def say_strengths(rows: Rows) -> str:
    """What the latest probe did, which alteration did best, and what S alone and A alone do."""
    ((row, run),) = recoveries(rows)
    found = row.probes
    ends = (
        f"{run.label} as fitted has perplexity {number(run.perplexity.value)}, plain dropping "
        f"{number(row.result.baseline.pruned.perplexity.value)}"
    )
    if not found:
        return f"{ends}. Choose what to put into the model instead."
    best = min(found, key=lambda probe: probe.perplexity.value)
    if best is not found[-1]:
        return f"{ends}; {_result(found[-1])}; the best so far: {_result(best)}.{_parts(row, run)}"
    of = f", the best of {len(found)} probes" if len(found) > 1 else ""
    return f"{ends}; {_result(best)}{of}.{_parts(row, run)}"


def _result(probe: Probe) -> str:
    return f"{probe.alteration.name} has {number(probe.perplexity.value)}"


def _parts(row: Row, run: RecoveryRun) -> str:
    """What S alone and A alone do to the model, once both were measured; else nothing."""
    known = {probe.alteration: probe.perplexity.value for probe in row.probes}
    alone = [known.get(Alteration(part="symmetric")), known.get(Alteration(part="antisymmetric"))]
    values = [value for value in alone if value is not None]
    if len(values) < 2 or not run.operators:
        return ""
    pruned = row.result.baseline.pruned.perplexity.value
    harm = ", both worse than plain dropping" if min(values) > pruned else ""
    split = run.operators[0].split
    cost = points(split.explained - split.explained_symmetric)
    return (
        f" S alone has perplexity {number(values[0])} and A alone {number(values[1])}{harm}; the best "
        f"symmetric map, fitted as such, costs {cost} of explained gap ({scope(run.operators[0])})."
    )


# -- ranks -----------------------------------------------------------------------------------------------


def ranks(rows: Rows, measure: Measure = "perplexity") -> go.Figure:
    """A figure of merit against the rank kept, for each factorisation that was measured.

    The upper axis gives the parameters saved against the recovery as it was fitted.
    """
    ((row, run),) = recoveries(rows)
    result = row.result
    full = (float(result.model.hidden_size), getattr(run, measure), "full rank")
    traces = []
    for factor, role in _FACTOR_ROLES.items():
        found = result.rank_sweep(run, factor)
        known = [
            (float(rank), getattr(probe, measure), "")
            for rank, probe in zip(found.ranks, found.probes, strict=True)
        ]
        if known:
            traces.append(_line(role, [*known, full]))
    made = _merit(result, traces, measure, {}, legend={"y": 1.22})
    return style.rank_axes(made, "parameters saved against the full map", _apart(_saved(result, run)))


def _saved(result: RunResult, run: RecoveryRun) -> dict[int, int]:
    """Parameters that each measured rank, and the full one, saves against the recovery as it was fitted."""
    sweeps = [result.rank_sweep(run, factor) for factor in FACTORS]
    added = {probe.alteration.rank or 0: probe.parameters_added for sweep in sweeps for probe in sweep.probes}
    added[result.model.hidden_size] = run.parameters_added
    return {rank: run.parameters_added - added[rank] for rank in sorted(added)}


def _apart(saved: dict[int, int]) -> dict[int, int]:
    """Those ranks, from the full one down, whose labels have room beside one another on a log axis."""
    kept: list[int] = []
    for rank in sorted(saved, reverse=True):
        if not kept or kept[-1] >= _APART * rank:
            kept.append(rank)
    return {rank: saved[rank] for rank in reversed(kept)}


def say_ranks(rows: Rows) -> str:
    """The lowest measured rank that is not significantly worse than the full one, for each factorisation."""
    ((row, run),) = recoveries(rows)
    return " ".join(filter(None, (_suggestion(row.result, run, factor) for factor in FACTORS)))


def _suggestion(result: RunResult, run: RecoveryRun, factor: Factor) -> str:
    found = result.rank_sweep(run, factor)
    if not found.probes:
        return ""
    best = found.suggested
    name, full = FACTORS[factor], number(run.perplexity.value)
    if best is None:
        rank = count(found.ranks[-1])
        ends = f"perplexity {number(found.probes[-1].perplexity.value)} against {full}"
        worse = "significantly worse than the full one (paired 95 %)"
        if len(found.ranks) == 1:
            return f"By {name}, rank {rank}, the only one measured, is {worse}: {ends}."
        return f"By {name}, every measured rank is {worse}: rank {rank} has {ends}."
    saved = run.parameters_added - best.parameters_added
    rank, value = count(best.alteration.rank or 0), number(best.perplexity.value)
    cheaper = f" and {count(saved)} fewer parameters" if saved > 0 else ""
    return (
        f"By {name}, rank {rank} is the lowest measured one that is not significantly worse than the full "
        f"rank: perplexity {value} against {full}{cheaper}."
    )


def rank_expected(result: RunResult, run: RecoveryRun, rank: int, factor: Factor) -> str:
    """What a rank did to the model, or what the ranks measured on both sides of it let one expect."""
    found = result.rank_sweep(run, factor)
    expected = found.forecast(rank)
    if expected is None:
        return ""
    perplexity, kl = map(number, expected)
    if rank >= result.model.hidden_size:
        return f"As fitted, perplexity is {perplexity} and KL {kl}."
    if rank in found.ranks:
        return f"Measured: perplexity {perplexity}, KL {kl}."
    return f"Between the ranks measured beside it: perplexity about {perplexity}, KL about {kl}."


# -- what both share -------------------------------------------------------------------------------------


def _line(role: Role, known: list[Point]) -> go.Scatter:
    metrics = [metric for _, metric, _ in known]
    return style.curve(
        role,
        [at for at, _, _ in known],
        [metric.value for metric in metrics],
        "%{x:~g}: %{customdata}",
        mode="lines+markers",
        marker={"symbol": role.symbol, "size": 8},
        error_y=style.error_bar(metrics, thickness=1.2, width=3),
        customdata=[f"{interval(metric)} {note and f'({note})'}" for _, metric, note in known],
    )


def _merit(
    result: RunResult, traces: list[go.Scatter], measure: Measure, x: dict[str, Any], **layout: Any
) -> go.Figure:
    y = {"title": _TITLES[measure], **style.wide_axis(value for trace in traces for value in trace.y)}
    made = style.curves(traces, x, y, **layout)
    if measure == "perplexity":
        original = result.baseline.original.perplexity.value
        style.guide(made, "y", original, f"original, {number(original)}")
    return made


FIGURES = (
    Figure(
        "strengths",
        "Put a part of it into the model",
        "Theory put to the test: instead of looking at a part of the map, put only that part into the "
        "model, weaker or stronger, and see what perplexity it has and what it writes. At strength 0 the "
        "layers are plainly dropped; at 1 the map is as fitted. A minimum beside 1 would mean that the "
        "fit over- or underdoes it.",
        r"W = I + \alpha M', \qquad M' \in \{M,\ S,\ A\} \text{ or a rank of it}",
        "The map: Ghosted Layers (arXiv 2605.15491); parts and strengths: Ghostlab",
        draw=strengths,
        say=say_strengths,
        select=where(lambda row: row.operator is not None),
        nothing=why_empty("No recovery of this run has a map to alter."),
        heading="Parts and strengths of {}",
    ),
    Figure(
        "ranks",
        "Take a rank",
        "What a rank explains of the state is a forecast; what it does to the model must be measured. Here "
        "the factors stand in the model, and each dot is its perplexity, or its KL divergence from the "
        "original, on held-out text. The suggested rank is the lowest that is not significantly worse than "
        "the full one.",
        r"\hat y = x + (xU)V, \quad U \in \mathbb R^{C \times r},\ V \in \mathbb R^{r \times C}; \qquad "
        r"\mathrm{KL} = \sum_w p(w) \log \frac{p(w)}{q(w)}",
        "Low rank: Hu et al. (arXiv 2106.09685); divergence: Kullback and Leibler 1951",
        draw=ranks,
        beside=lambda rows: ranks(rows, "kl"),
        say=say_ranks,
        select=where(
            lambda row: (
                row.run is not None
                and any(row.result.rank_sweep(row.run, factor).probes for factor in FACTORS)
            )
        ),
        nothing="No rank has been measured yet. Press *Measure several ranks* to put some into the model.",
        heading="Ranks of {}, measured",
    ),
)
