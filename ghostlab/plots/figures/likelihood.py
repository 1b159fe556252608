"""What pruning cost and what came back, in likelihood of held-out text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.formats import interval, number
from ghostlab.plots.style import Role
from ghostlab.results.records import Metric, RecoveryRun, Scores
from ghostlab.results.run import RunResult

Unit = Literal["loss", "nll", "perplexity"]
_UNITS = {"loss": "nats per token above the original", "nll": "nats per token", "perplexity": "perplexity"}


def variants(result: RunResult) -> list[tuple[Role, Scores | RecoveryRun]]:
    """Original, pruned and each recovery, with how it is drawn."""
    ends: list[tuple[Role, Scores | RecoveryRun]] = [
        (style.ORIGINAL, result.baseline.original),
        (style.PRUNED, result.baseline.pruned),
    ]
    return [*ends, *zip(style.roles(result.runs), result.runs, strict=True)]


def perplexity(result: RunResult) -> go.Figure:
    """Held-out perplexity of every variant with its 95 % interval.

    The log axis, used when perplexities differ more than twentyfold, starts at 1: the length of a bar is then
    the negative log-likelihood.
    """
    return bars([(role, scores.perplexity) for role, scores in variants(result)])


def bars(rows: Sequence[tuple[Role, Metric]]) -> go.Figure:
    """Perplexities with their intervals; see :func:`perplexity` for the axis."""
    metrics = [metric for _, metric in rows]
    values = [metric.value for metric in metrics]
    if not style.finite(values):
        return style.empty("No perplexity was measured.")
    scale = style.wide_axis(values)
    scale |= {"dtick": 1} if scale["type"] == "log" else {}
    ends = [max([value, *style.finite([metric.high])]) for value, metric in zip(values, metrics, strict=True)]
    labels = _labels(ends, [role.name for role, _ in rows], [number(value) for value in values])
    top = max(style.finite(ends))
    span = [0, math.log10(top) * 1.25] if scale["type"] == "log" else [0, top * 1.25]
    return style.figure(
        [*(_bar(role, metric) for role, metric in rows), labels],
        height=style.bars_height(len(rows)),
        x={"title": "perplexity on held-out text", **scale, "range": span},
        y={"autorange": "reversed"},
        showlegend=False,
        barmode="overlay",
    )


def _bar(role: Role, metric: Metric) -> go.Bar:
    """One variant's bar, paler than its error bar so that the whole interval shows."""
    return go.Bar(
        x=[metric.value],
        y=[role.name],
        name=role.name,
        orientation="h",
        marker={"color": role.colour, "opacity": 0.5},
        error_x={
            "array": [metric.high - metric.value],
            "arrayminus": [metric.value - metric.low],
            "color": role.colour,
            "thickness": 2.5,
            "width": 6,
        },
        hovertemplate=f"{role.name}: perplexity {interval(metric)}<extra></extra>",
    )


def _labels(at: list[float], names: list[str], texts: list[str]) -> go.Scatter:
    """Texts just right of ``at``, clear of the error bars."""
    return go.Scatter(
        x=at,
        y=names,
        text=["  " + text for text in texts],
        mode="text",
        textposition="middle right",
        cliponaxis=False,
        hoverinfo="skip",
    )


def gap_closed(result: RunResult) -> go.Figure:
    """Share of the log-likelihood that pruning lost and each recovery brought back."""
    drawn = zip(style.roles(result.runs), result.runs, strict=True)
    rows = [(role, run) for role, run in drawn if math.isfinite(run.gap_closed)]
    if not rows:
        return style.empty("No recovery was fitted, or pruning lost nothing to bring back.")
    shares = [run.gap_closed for _, run in rows]
    bars = go.Bar(
        x=shares,
        y=[role.name for role, _ in rows],
        orientation="h",
        marker_color=[role.colour for role, _ in rows],
        **style.bar_texts(shares),
        customdata=[interval(run.perplexity) for _, run in rows],
        hovertemplate="%{y}: %{text} of the gap closed<br>perplexity %{customdata}<extra></extra>",
    )
    made = style.figure(
        [bars],
        height=style.bars_height(len(rows)),
        x={
            "title": "share of the lost log-likelihood",
            "tickformat": ".0%",
            "range": style.share_range(shares, whole=True),
        },
        y={"autorange": "reversed"},
    )
    style.guide(made, "x", 1, "original")
    style.guide(made, "x", 0, "pruned")
    return made


def by_position(result: RunResult, unit: Unit = "loss") -> go.Figure:
    """Likelihood by position in the window; a running mean over neighbouring positions.

    ``loss`` is what each variant lost against the original at that position: positions differ far more among
    themselves, by what the windows happen to say there, than variants do.
    """
    original = np.asarray(result.baseline.original.position_nll, dtype=float)
    rows = [(role, np.asarray(scores.position_nll, dtype=float)) for role, scores in variants(result)]
    rows = [(role, nll) for role, nll in rows if nll.size and nll.size == original.size]
    if unit == "loss":
        rows = [(role, nll - original) for role, nll in rows if role is not style.ORIGINAL]
    if not rows:
        return style.empty("Likelihood by position was not recorded.")
    return position_lines(rows, unit)


def position_lines(rows: Sequence[tuple[Role, np.ndarray[Any, Any]]], unit: Unit) -> go.Figure:
    """Lines of nats per token by position, each a running mean over neighbours; in ``unit`` already but for
    perplexity, which is taken of the means."""
    width = max(1, max(nll.size for _, nll in rows) // 32)
    means = [(role, running_mean(nll, width)) for role, nll in rows]
    lines = [(role, np.exp(mean) if unit == "perplexity" else mean) for role, mean in means]
    scale = style.wide_axis(np.concatenate([line for _, line in lines])) if unit == "perplexity" else {}
    note = f" (mean of {width})" if width > 1 else ""
    made = style.figure(
        [_position_line(role, line) for role, line in lines],
        height=style.lines_height(len(lines)),
        x={"title": f"position in the window{note}"},
        y={"title": _UNITS[unit], **scale},
        showlegend=True,
    )
    if unit == "loss":
        style.guide(made, "y", 0, "original")
    return made


def _position_line(role: Role, values: np.ndarray[Any, Any]) -> go.Scatter:
    return go.Scatter(
        x=np.arange(1, len(values) + 1),
        y=values,
        name=role.name,
        mode="lines",
        line=style.line(role),
        hovertemplate=f"{role.name}, position %{{x}}: %{{y:.4~g}}<extra></extra>",
    )


def running_mean(values: np.ndarray[Any, Any], width: int) -> np.ndarray[Any, Any]:
    """Centred mean over ``width`` values; at the ends over those that exist. Same length as ``values``."""
    if width <= 1:
        return values
    kernel = np.ones(width)
    total, known = (np.convolve(each, kernel, mode="same") for each in (values, np.ones_like(values)))
    mean: np.ndarray[Any, Any] = total / known
    return mean
