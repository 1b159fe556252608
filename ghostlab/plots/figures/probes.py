"""What altered maps did to the model when they were measured: against strength, and against rank."""

from __future__ import annotations

from typing import Any, Literal

import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.formats import interval, number, short
from ghostlab.results.probe import FACTORS, PARTS, Factor, Probe
from ghostlab.results.records import Metric, RecoveryRun
from ghostlab.results.run import RunResult

Measure = Literal["perplexity", "kl"]
_TITLES: dict[Measure, str] = {
    "perplexity": "perplexity on held-out text",
    "kl": "KL to the original, nats per token",
}
PART_LOOKS = {
    "whole": ("#0ca27e", "circle", "solid"),
    "symmetric": (style.SYMMETRIC, "diamond", "10px,3px"),
    "antisymmetric": (style.ANTISYMMETRIC, "triangle-up", "3px,2px"),
}
_FACTOR_LOOKS: dict[Factor, tuple[str, str, str]] = {
    "truncated_svd": (style.SYMMETRIC, "circle", "solid"),
    "reduced_rank": (style.ANTISYMMETRIC, "diamond", "10px,3px"),
}
_APART = 1.9
"""The least ratio of two ranks that are both labelled: doublings are, eighths of the width are not."""
Point = tuple[float, Metric, str]


def strengths(result: RunResult, run: RecoveryRun, measure: Measure = "perplexity") -> go.Figure:
    """A figure of merit against strength, for the whole map and for each part that was measured.

    Two points are known without a probe: strength 0 is plain dropping, and 1 of the whole map the recovery.
    """
    known = [_known(0.0, result.baseline.pruned, measure, "plain dropping")]
    traces = []
    for part, name in PARTS.items():
        points = [*known, *([_known(1.0, run, measure, "as fitted")] if part == "whole" else [])]
        points += [
            (probe.alteration.alpha, getattr(probe, measure), probe.alteration.name)
            for probe in _of(result, run.label)
            if probe.alteration.part == part and probe.alteration.rank is None
        ]
        if len(points) > 1:
            traces.append(_line(name, sorted(dict.fromkeys(points), key=_place), PART_LOOKS[part]))
    return _measured(result, traces, measure, {"title": "strength (1 is as fitted)"})


def ranks(result: RunResult, run: RecoveryRun, measure: Measure = "perplexity") -> go.Figure:
    """A figure of merit against the rank kept, for each factorisation that was measured.

    The upper axis gives the parameters saved against the recovery as it was fitted.
    """
    full = _known(result.model.hidden_size, run, measure, "full rank")
    traces = []
    for factor, name in FACTORS.items():
        found = [
            (float(p.alteration.rank or 0), getattr(p, measure), "")
            for p in result.rank_sweep(run, factor).probes
        ]
        if found:
            traces.append(_line(name, [*found, full], _FACTOR_LOOKS[factor]))
    if not traces:
        return style.empty("No rank has been measured yet.")
    saved = _apart(_saved(result, run))
    ticks = {"tickvals": list(saved), "tickangle": 0}
    made = _measured(
        result,
        traces,
        measure,
        {"title": "rank kept", "type": "log", "ticktext": [short(rank) for rank in saved], **ticks},
    )
    made.add_trace(go.Scatter(x=[min(saved)], y=[None], xaxis="x2", hoverinfo="skip", showlegend=False))
    upper: dict[str, Any] = {
        "overlaying": "x",
        "matches": "x",
        "side": "top",
        "type": "log",
        "showgrid": False,
    }
    upper |= {"ticktext": [short(value) for value in saved.values()], "tickfont": {"size": 11}, **ticks}
    return made.update_layout(
        xaxis2={**upper, "title": {"text": "parameters saved against the full map"}}, legend={"y": 1.22}
    )


def _of(result: RunResult, label: str) -> list[Probe]:
    return [probe for probe in result.probes if probe.label == label]


def _known(at: float, scores: Any, measure: Measure, name: str) -> Point:
    return at, getattr(scores, measure), name


def _place(point: Point) -> float:
    return point[0]


def _saved(result: RunResult, run: RecoveryRun) -> dict[int, int]:
    """Parameters that each measured rank, and the full one, saves against the recovery as it was fitted."""
    found = {
        probe.alteration.rank or 0: probe.parameters_added
        for factor in FACTORS
        for probe in result.rank_sweep(run, factor).probes
    }
    found[result.model.hidden_size] = run.parameters_added
    return {rank: run.parameters_added - found[rank] for rank in sorted(found)}


def _apart(saved: dict[int, int]) -> dict[int, int]:
    """Those ranks, from the full one down, whose labels have room beside one another on a log axis."""
    kept: list[int] = []
    for rank in sorted(saved, reverse=True):
        if not kept or kept[-1] >= _APART * rank:
            kept.append(rank)
    return {rank: saved[rank] for rank in reversed(kept)}


def _line(name: str, points: list[Point], look: tuple[str, str, str]) -> go.Scatter:
    colour, symbol, dash = look
    metrics = [metric for _, metric, _ in points]
    return go.Scatter(
        x=[at for at, _, _ in points],
        y=[metric.value for metric in metrics],
        name=name,
        mode="lines+markers",
        marker={"symbol": symbol, "size": 8},
        line={"color": colour, "dash": dash, "width": 2},
        error_y={
            "array": [metric.high - metric.value for metric in metrics],
            "arrayminus": [metric.value - metric.low for metric in metrics],
            "thickness": 1.2,
            "width": 3,
        },
        customdata=[f"{interval(metric)} {note and f'({note})'}" for _, metric, note in points],
        hovertemplate=f"{name}, %{{x:~g}}: %{{customdata}}<extra></extra>",
    )


def _measured(result: RunResult, traces: list[go.Scatter], measure: Measure, x: dict[str, Any]) -> go.Figure:
    original: Metric = getattr(result.baseline.original, measure)
    heights = [value for trace in traces for value in trace.y]
    made = style.figure(
        traces,
        height=style.LINE_HEIGHT,
        x=x,
        y={"title": _TITLES[measure], **style.wide_axis(heights)},
        showlegend=True,
    )
    if measure == "perplexity":
        style.guide(made, "y", original.value, f"original, {number(original.value)}")
    return made
