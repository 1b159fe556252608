"""Held-out windows one by one: how hard each is, and who does better on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.figure import Figure
from ghostlab.plots.figures.likelihood import not_significant
from ghostlab.plots.formats import interval, number, plural
from ghostlab.plots.rows import Row, Rows, ranked, where
from ghostlab.plots.style import Role
from ghostlab.results.records import Metric
from ghostlab.results.statistics import difference

_MOST = 700.0
"""Nats beyond which the exponential is no longer finite."""


def window_distribution(rows: Rows) -> go.Figure:
    """Perplexity of every held-out window, per variant."""
    values = [np.exp(np.minimum(row.scores.window_nll, _MOST)) for row in rows]
    boxes = [_box(row.role, each, "perplexity %{x:.4~g}") for row, each in zip(rows, values, strict=True)]
    x = {"title": "perplexity of one window", **style.log_ticks(np.concatenate(values))}
    return style.by_row(boxes, len(rows), x, extra=30, showlegend=False)


def say_window_distribution(rows: Rows) -> str:
    """How far windows lie apart for the original, and on which dropping hurts most."""
    ends = rows[0].result.baseline
    original, pruned = np.asarray(ends.original.window_nll), np.asarray(ends.pruned.window_nll)
    if original.size < 2:
        return "A single window does not show how texts differ."
    easy, hard = float(np.exp(original.min())), float(np.exp(original.max()))
    costs = np.exp(np.minimum(pruned - original, _MOST))
    return (
        f"The original's perplexity goes from {number(easy)} on the easiest window to {number(hard)} on the "
        f"hardest; dropping multiplies it by {number(float(costs.min()))} to {number(float(costs.max()))}, "
        f"most on window {int(costs.argmax()) + 1}."
    )


def against_pruned(row: Row) -> np.ndarray[Any, Any]:
    """Nats per token of each window minus those of the pruned model; empty if they cannot be paired."""
    own, pruned = row.scores.window_nll, row.result.baseline.pruned.window_nll
    return np.subtract(own, pruned) if len(own) == len(pruned) else np.empty(0)


def window_differences(rows: Rows) -> go.Figure:
    """Each window's likelihood against the same window of the pruned model; below 0 is better."""
    shifts = [(row.role, against_pruned(row)) for row in rows]
    return shifts_figure(shifts, "nats per token, difference to pruned", "pruned")


def shifts_figure(rows: Sequence[tuple[Role, np.ndarray[Any, Any]]], title: str, zero: str) -> go.Figure:
    """One row per role: differences by window, and a diamond for their mean with its paired 95 % interval.

    ``zero`` names the line at 0.
    """
    means = [(role, difference(shifts, np.zeros_like(shifts))) for role, shifts in rows]
    boxes = [_box(role, shifts, "%{x:+.3~g} nats") for role, shifts in rows]
    traces = [*boxes, *(_mean(role, mean) for role, mean in means)]
    made = style.by_row(traces, len(rows), {"title": title}, extra=30, showlegend=False)
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
    """In the ink of the text, so that it stands out from the dots."""
    marker = {"color": style.INK, "symbol": "diamond", "size": 11, "line": {"color": "white", "width": 1}}
    return style.dots(
        [mean.value],
        [role.name],
        f"{role.name}, mean: {interval(mean)} nats",
        marker,
        name=f"mean of {role.name}",
        error_x=style.error_bar([mean], color=style.INK, thickness=2.5, width=7),
    )


def say_window_differences(rows: Rows) -> str:
    """On how many windows the best recovery beats the pruned model, and whether it beats the runner-up."""
    known = ranked(rows)
    if not known:
        return "No recovery was measured window by window."
    row, best = known[0]
    shifts = against_pruned(row)
    mean = difference(shifts, np.zeros_like(shifts))
    side = "fewer" if mean.value < 0 else "more"
    low, high = sorted((abs(mean.low), abs(mean.high)))
    ends = "" if mean.low < 0 < mean.high else f" (95 % interval {number(low)} to {number(high)})"
    text = (
        f"{row.name} needs {number(abs(mean.value))} nats per token {side} than the pruned model on average"
        f"{ends} and is better on {int((shifts < 0).sum())} of {plural(len(shifts), 'window')}"
    )
    if len(known) < 2:
        return f"{text}."
    other, second = known[1]
    lead = np.subtract(second.window_nll, best.window_nll)
    chance = not_significant(best, second)
    sure = "" if chance is None else f" ({'not ' * chance}significant, paired 95 %)"
    return (
        f"{text}; it beats {other.name} on {int((lead > 0).sum())}, by {number(abs(float(lead.mean())))} "
        f"nats on average{sure}."
    )


def _paired(rows: Rows) -> Rows:
    known = [row for row in rows if row.variant != "pruned" and against_pruned(row).size]
    return known if any(row.run for row in known) else []


FIGURES = (
    Figure(
        "window_differences",
        "Against the pruned model, window by window",
        "Some windows of text are hard for every model, so two models are best compared on the same window. "
        "Each dot is one window: left of zero, the recovery is better there. What makes a window hard "
        "cancels in the difference, so the interval of the mean is narrow enough to tell a real gain from "
        "chance.",
        r"\delta_i = \mathcal L_i^{\text{recovered}} - \mathcal L_i^{\text{pruned}}, \qquad "
        r"\bar\delta = \frac1n \sum_{i=1}^n \delta_i",
        "Koehn 2004, *Statistical significance tests for machine translation evaluation* (paired bootstrap)",
        draw=window_differences,
        say=say_window_differences,
        select=_paired,
        nothing="Likelihood by window was not recorded.",
    ),
    Figure(
        "window_distribution",
        "Hard and easy windows",
        "A mean hides how differently texts fare. Here each window is one dot, so that one can see whether "
        "dropping layers hurts all texts alike or ruins a few: a long tail to the right means the latter.",
        r"\mathrm{PPL}_i = \exp \mathcal L_i, \qquad "
        r"\mathcal L_i = -\frac1T \sum_{t=1}^{T} \log p(w_{i,t} \mid w_{i,<t})",
        "Box plots: Tukey 1977, *Exploratory Data Analysis*",
        draw=window_distribution,
        say=say_window_distribution,
        select=where(lambda row: row.scores.window_nll),
        nothing="Likelihood by window was not recorded.",
    ),
)
