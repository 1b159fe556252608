"""Held-out windows one by one: how hard each is, and who does better on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.figures.likelihood import variants
from ghostlab.plots.formats import number
from ghostlab.plots.style import Role
from ghostlab.results.records import Metric, RecoveryRun, Scores
from ghostlab.results.run import RunResult
from ghostlab.results.statistics import difference

Reference = Literal["original", "pruned"]


def window_distribution(result: RunResult) -> go.Figure:
    """Perplexity of every held-out window, per variant."""
    rows = [(role, np.exp(np.minimum(scores.window_nll, 700.0))) for role, scores in variants(result)]
    rows = [(role, values) for role, values in rows if values.size]
    if not rows:
        return style.empty("Likelihood by window was not recorded.")
    return style.figure(
        [_box(role, values, "perplexity %{x:.4~g}") for role, values in rows],
        height=style.bars_height(len(rows)) + 30,
        x={"title": "perplexity of one window", **style.log_ticks(np.concatenate([v for _, v in rows]))},
        y={"autorange": "reversed"},
        showlegend=False,
    )


def window_differences(result: RunResult, reference: Reference = "pruned") -> go.Figure:
    """Each held-out window's likelihood against the same window of the reference; below 0 is better.

    The diamond is the mean with its 95 % interval, paired over windows.
    """
    rows = [
        (role, paired_differences(result, scores, reference))
        for role, scores in variants(result)
        if role.name != reference
    ]
    rows = [(role, shifts) for role, shifts in rows if shifts.size]
    if not rows:
        return style.empty("Likelihood by window was not recorded.")
    return shifts_figure(rows, f"nats per token, difference to {reference}", reference)


def shifts_figure(rows: Sequence[tuple[Role, np.ndarray[Any, Any]]], title: str, zero: str) -> go.Figure:
    """One row per role: differences by window, their mean and its interval; ``zero`` names the line at 0."""
    means = [(role, difference(shifts, np.zeros_like(shifts))) for role, shifts in rows]
    boxes = [_box(role, shifts, "%{x:+.3~g} nats") for role, shifts in rows]
    made = style.figure(
        [*boxes, *(_mean(role, mean) for role, mean in means)],
        height=style.bars_height(len(rows)) + 30,
        x={"title": title},
        y={"autorange": "reversed"},
        showlegend=False,
    )
    style.guide(made, "x", 0, zero)
    return made


def _box(role: Role, values: np.ndarray[Any, Any], hover: str) -> go.Box:
    return go.Box(
        x=values,
        y=[role.name] * len(values),
        name=role.name,
        orientation="h",
        boxpoints="all",
        jitter=0.5,
        pointpos=0,
        marker={"color": role.colour, "size": 6, "opacity": 0.8},
        line={"width": 1.5},
        fillcolor="rgba(128,128,128,.12)",
        customdata=np.arange(1, len(values) + 1),
        hovertemplate=f"{role.name}, window %{{customdata}}: {hover}<extra></extra>",
        hoveron="points",
    )


def _mean(role: Role, mean: Metric) -> go.Scatter:
    """The mean as a diamond with its interval, in the ink of the text so that it stands out from the dots."""
    low, high = number(mean.low), number(mean.high)
    return go.Scatter(
        x=[mean.value],
        y=[role.name],
        name=f"mean of {role.name}",
        mode="markers",
        marker={"color": style.INK, "symbol": "diamond", "size": 11, "line": {"color": "white", "width": 1}},
        error_x={
            "array": [mean.high - mean.value],
            "arrayminus": [mean.value - mean.low],
            "color": style.INK,
            "thickness": 2.5,
            "width": 7,
        },
        hovertemplate=f"{role.name}, mean: {number(mean.value)} ({low} to {high}) nats<extra></extra>",
    )


def paired_differences(
    result: RunResult, scores: Scores | RecoveryRun, reference: Reference
) -> np.ndarray[Any, Any]:
    """NLL of each window minus the reference's, in nats per token; empty when they cannot be paired."""
    base = getattr(result.baseline, reference).window_nll
    if len(base) != len(scores.window_nll):
        return np.empty(0)
    shifts: np.ndarray[Any, Any] = np.subtract(scores.window_nll, base)
    return shifts
