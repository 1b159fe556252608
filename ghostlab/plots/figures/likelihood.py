"""What pruning cost and what came back, in likelihood of held-out text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.figure import Figure, of_each
from ghostlab.plots.formats import change, fold, interval, is_finite, number, percent, plural
from ghostlab.plots.rows import Row, Rows, ranked, recoveries, where
from ghostlab.results.compare import FEWEST_WINDOWS
from ghostlab.results.records import RecoveryRun, Scores
from ghostlab.results.run import RunResult
from ghostlab.results.statistics import difference

# -- perplexity ------------------------------------------------------------------------------------------


def perplexity(rows: Rows) -> go.Figure:
    """Held-out perplexity of every variant with its 95 % interval.

    The log axis, used when perplexities differ more than twentyfold, starts at 1: the length of a bar is then
    the negative log-likelihood.
    """
    metrics = [row.scores.perplexity for row in rows]
    scale = style.wide_axis(metric.value for metric in metrics)
    ends = [max([metric.value, *style.finite([metric.high])]) for metric in metrics]
    top = max(style.finite(ends))
    if scale["type"] == "log":
        scale["dtick"], top = 1, math.log10(top)
    bars = [
        style.bars(  # paler than its error bar so that the whole interval shows
            [metric.value],
            [row.name],
            f"{row.name}: perplexity {interval(metric)}",
            name=row.name,
            marker={"color": row.role.colour, "opacity": 0.5},
            error_x=style.error_bar([metric], color=row.role.colour, thickness=2.5, width=6),
        )
        for row, metric in zip(rows, metrics, strict=True)
    ]
    texts = go.Scatter(  # just right of the error bars
        x=ends,
        y=[row.name for row in rows],
        text=[f"  {number(metric.value)}" for metric in metrics],
        mode="text",
        textposition="middle right",
        cliponaxis=False,
        hoverinfo="skip",
    )
    x = {"title": "perplexity on held-out text", **scale, "range": [0, 1.25 * top]}
    return style.by_row([*bars, texts], len(rows), x, showlegend=False, barmode="overlay")


def say_perplexity(rows: Rows) -> str:
    """What dropping cost and what the best recovery brought back."""
    return f"{_cost(rows[0].result)}{_recovery(rows)}"


def _cost(result: RunResult) -> str:
    original, pruned = result.baseline.original.perplexity, result.baseline.pruned.perplexity
    dropped = f"Dropping {len(result.cut.dropped)} of {plural(result.model.layers, 'layer')}"
    if not (math.isfinite(original.value) and math.isfinite(pruned.value) and original.value > 0):
        return f"{dropped} gives a perplexity that is not a number"
    ratio = pruned.value / original.value
    by = f"raises perplexity {change(ratio)}" if ratio >= 1 else f"lowers perplexity by {percent(1 - ratio)}"
    chance = not_significant(result.baseline.original, result.baseline.pruned)
    doubt = ", not significantly (paired 95 %)" if chance else ""
    return f"{dropped} {by}, from {number(original.value)} to {number(pruned.value)}{doubt}"


def _recovery(rows: Rows) -> str:
    ends = rows[0].result.baseline
    known = ranked(rows)
    if not known:
        return f"; no recovery {'gives a finite perplexity' if recoveries(rows) else 'was fitted'}."
    row, best = known[0]
    value = number(best.perplexity.value)
    if best.perplexity.value >= ends.pruned.perplexity.value:
        if len(known) == 1:
            return f"; {row.name} does not help: it ends at {value}."
        return f"; no recovery helps, and the best, {row.name}, ends at {value}."
    if ends.pruned.perplexity.value <= ends.original.perplexity.value:
        return f"; {row.name} goes further down, to {value}."
    closing = ""
    if best.perplexity.value < ends.original.perplexity.value:
        closing = ", below the original"
    elif math.isfinite(best.gap_closed):
        closing = f", closing {percent(best.gap_closed)} of the gap in log-likelihood"
    return f"; {row.name} brings it back to {value}{closing}{_runner_up(known)}."


def _runner_up(known: list[tuple[Row, RecoveryRun]]) -> str:
    if len(known) < 2:
        return ""
    (_, best), (row, second) = known[:2]
    chance = not_significant(best, second)
    sure = "" if chance is None else f", {'not ' * chance}significantly worse (paired 95 %)"
    return f"; next comes {row.name} with {number(second.perplexity.value)}{sure}"


def not_significant(one: Scores, other: Scores) -> bool | None:
    """Whether the 95 % interval of the difference, paired by window, holds 0; ``None`` if there is none."""
    windows = len(one.window_nll)
    if windows < FEWEST_WINDOWS or len(other.window_nll) != windows:
        return None
    shift = difference(one.window_nll, other.window_nll)
    return shift.low <= 0 <= shift.high


def _above_original(row: Row) -> str:
    value, origin = row.scores.perplexity.value, row.result.baseline.original.perplexity.value
    if not (math.isfinite(value) and math.isfinite(origin) and origin > 0):
        return "is not a number"
    ratio = value / origin
    if ratio == 1:
        return f"{number(value)}, as the original"
    far = f"{percent(ratio - 1)} above" if ratio > 1 else f"{percent(1 - ratio)} below"
    return f"{number(value)}, {fold(ratio) if ratio >= 2 else far} the original's {number(origin)}"


# -- the gap ---------------------------------------------------------------------------------------------


def gap_closed(rows: Rows) -> go.Figure:
    """Share of the log-likelihood that pruning lost and each recovery brought back."""
    known = recoveries(rows)
    shares = [run.gap_closed for _, run in known]
    bars = style.share_bars(
        shares,
        [row.name for row, _ in known],
        "%{y}: %{text} of the gap closed<br>perplexity %{customdata}",
        marker_color=[row.role.colour for row, _ in known],
        customdata=[interval(run.perplexity) for _, run in known],
    )
    x = style.share_axis("share of the lost log-likelihood", shares, whole=True)
    made = style.by_row([bars], len(known), x)
    style.guide(made, "x", 1, "original")
    style.guide(made, "x", 0, "pruned")
    return made


def say_gap_closed(rows: Rows) -> str:
    """How much of the gap each recovery closes, best first."""
    ends = rows[0].result.baseline
    if ends.pruned.perplexity.value <= ends.original.perplexity.value:
        return "There is no gap in log-likelihood to close."
    (first, best), *others = sorted(recoveries(rows), key=lambda pair: -pair[1].gap_closed)
    rest = "".join(f", {row.name} {percent(run.gap_closed)}" for row, run in others)
    gap = f"{first.name} closes {percent(best.gap_closed)} of the gap in log-likelihood{rest}."
    return gap if best.gap_closed > 0 else f"Nothing is regained: {gap}"


# -- position --------------------------------------------------------------------------------------------


def loss(row: Row) -> np.ndarray[Any, Any]:
    """Nats per token above the original by position; empty where it was not recorded."""
    scores = (row.scores, row.result.baseline.original)
    own, original = (np.asarray(each.position_nll) for each in scores)
    return own - original if own.size == original.size else np.empty(0)


def by_position(rows: Rows) -> go.Figure:
    """What each variant lost against the original at every position; a running mean over neighbours.

    Positions differ far more among themselves, by what the windows happen to say there, than variants do.
    """
    losses = [(row, loss(row)) for row in rows]
    width, hover = max(1, max(nats.size for _, nats in losses) // 32), "position %{x}: %{y:.4~g}"
    lines = [style.along(row.role, running_mean(nats, width), hover) for row, nats in losses]
    note = f" (mean of {width})" if width > 1 else ""
    x, y = {"title": f"position in the window{note}"}, {"title": "nats per token above the original"}
    made = style.curves(lines, x, y)
    style.guide(made, "y", 0, "original")
    return made


def running_mean(values: np.ndarray[Any, Any], width: int) -> np.ndarray[Any, Any]:
    """Centred mean over ``width`` values; at the ends over those that exist. Same length as ``values``."""
    if width <= 1:
        return values
    kernel = np.ones(width)
    total, known = (np.convolve(each, kernel, mode="same") for each in (values, np.ones_like(values)))
    mean: np.ndarray[Any, Any] = total / known
    return mean


def say_by_position(rows: Rows) -> str:
    """Whether the loss sits early or late in the window."""
    pruned = next((loss(row) for row in rows if row.run is None), np.empty(0))
    quarter = pruned.size // 4
    if not quarter:
        return "The windows are too short to tell early positions from late ones."
    text = (
        f"Dropping costs {number(pruned[:quarter].mean())} nats per token in the first quarter of the window "
        f"and {number(pruned[-quarter:].mean())} in the last"
    )
    for row, _ in ranked(rows)[:1]:
        text += f"; {row.name} leaves {number(loss(row)[-quarter:].mean())} of these"
    return f"{text}."


def _late(row: Row) -> str:
    nats = loss(row)
    return number(float(nats[-max(nats.size // 4, 1) :].mean())) if nats.size else ""


FIGURES = (
    Figure(
        "perplexity",
        "Perplexity",
        "How many tokens the model is, in effect, undecided between at each step: 1 would be certainty, the "
        "size of the vocabulary blind guessing. It is the exponential of the mean negative log-likelihood "
        "of text that nothing was fitted on. The bar's whisker is a 95 % interval: the windows of that text "
        "are drawn anew many times, as if another sample of it had been read.",
        r"\mathrm{PPL} = \exp\Bigl(-\frac1T \sum_{t=1}^{T} \log p(w_t \mid w_{<t})\Bigr)",
        "Jelinek et al. 1977, *Perplexity: a measure of the difficulty of speech recognition tasks*; "
        "intervals: Efron 1979, *Bootstrap methods*",
        draw=perplexity,
        say=say_perplexity,
        select=lambda rows: rows if style.finite(row.scores.perplexity.value for row in rows) else [],
        nothing="No perplexity was measured.",
        compare=of_each("On held-out text", _above_original),
    ),
    Figure(
        "gap_closed",
        "Share of the gap closed",
        "Dropping layers opens a gap between the log-likelihood of the original and that of the pruned "
        "model. This is the part of it that a recovery takes back: 0 is plain dropping, 100 % the original. "
        "It is taken on log-likelihoods and not on perplexities, because these grow exponentially: going "
        "from 660 to 85 is far more than half of the way in perplexity, but not in what the model knows.",
        r"\text{gap closed} = \frac{\mathcal L_{\text{pruned}} - \mathcal L_{\text{recovered}}}"
        r"{\mathcal L_{\text{pruned}} - \mathcal L_{\text{original}}}, \qquad \mathcal L = \log \mathrm{PPL}",
        "After the gap that Ghosted Layers (arXiv 2605.15491) closes",
        draw=gap_closed,
        say=say_gap_closed,
        select=where(lambda row: row.run is not None and is_finite(row.run.gap_closed)),
        nothing="There is no gap in log-likelihood to close, or no recovery was fitted.",
    ),
    Figure(
        "by_position",
        "By position in the window",
        "Later tokens have more text before them and should be easier. A loss that grows along the window "
        "suggests that the pruned model has lost the use of distant context; one that is flat, that it has "
        "lost what single tokens mean.",
        r"\Delta_t = \frac1n \sum_{i=1}^n \bigl(\mathcal L_{i,t} - \mathcal L_{i,t}^{\text{original}}\bigr)",
        "Loss by position: Kaplan et al. (arXiv 2001.08361), appendix D",
        draw=by_position,
        say=say_by_position,
        select=where(lambda row: not row.is_original and loss(row).size > 0),
        nothing="Likelihood by position was not recorded.",
        compare=of_each("Nats per token lost in the last quarter of the window", _late),
    ),
)
