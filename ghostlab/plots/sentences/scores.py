"""Sentences on likelihood, on the restored state and on the choice of blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ghostlab.plots import style
from ghostlab.plots.figures import boundary
from ghostlab.plots.figures.selection import chosen
from ghostlab.plots.formats import change, number, percent, plural, points
from ghostlab.results.compare import FEWEST_WINDOWS, best_first
from ghostlab.results.records import BoundaryReport, Metric, RecoveryRun, Scores, SelectionInfo
from ghostlab.results.run import RunResult
from ghostlab.results.statistics import difference

Named = tuple[str, RecoveryRun]


def perplexity(result: RunResult) -> str:
    """What dropping cost and what the best recovery brought back."""
    return f"{_cost(result)}{_recovery(result)}"


def _cost(result: RunResult) -> str:
    original, pruned = result.baseline.original.perplexity, result.baseline.pruned.perplexity
    dropped = f"Dropping {len(result.cut.dropped)} of {plural(result.model.layers, 'layer')}"
    if not (math.isfinite(original.value) and math.isfinite(pruned.value) and original.value > 0):
        return f"{dropped} gives a perplexity that is not a number"
    ratio = pruned.value / original.value
    ends = f"from {number(original.value)} to {number(pruned.value)}"
    if ratio >= 1:
        cost = f"{dropped} raises perplexity {change(ratio)}, {ends}"
    else:
        cost = f"{dropped} lowers perplexity by {percent(1 - ratio)}, {ends}"
    chance = _may_be_chance(result.baseline.original, result.baseline.pruned)
    return cost + (", which may be chance (paired)" if chance else "")


def _recovery(result: RunResult) -> str:
    pruned, original = result.baseline.pruned.perplexity, result.baseline.original.perplexity
    rows = ranked(result.runs)
    if not rows:
        return "; no recovery was fitted." if not result.runs else "; no recovery gives a finite perplexity."
    name, best = rows[0]
    value = number(best.perplexity.value)
    if best.perplexity.value >= pruned.value:
        if len(rows) == 1:
            return f"; {name} does not help: it ends at {value}."
        return f"; no recovery helps, and the best, {name}, ends at {value}."
    if pruned.value <= original.value:
        return f"; {name} goes further down, to {value}."
    beyond = ", below the original" if best.perplexity.value < original.value else ""
    gain = f", closing {percent(best.gap_closed)} of the gap in log-likelihood"
    closing = gain if math.isfinite(best.gap_closed) and not beyond else beyond
    return f"; {name} brings it back to {value}{closing}{_runner_up(rows)}."


def _runner_up(rows: list[Named]) -> str:
    if len(rows) < 2:
        return ""
    (_, best), (name, second) = rows[:2]
    chance = _may_be_chance(best, second)
    sure = {None: "", True: ", which may be chance (paired)", False: ", which is surely worse"}[chance]
    return f"; next comes {name} with {number(second.perplexity.value)}{sure}"


def ranked(runs: Sequence[RecoveryRun]) -> list[Named]:
    """Name and recovery, the best first; those that are not finite left out."""
    named = [(role.name, run) for role, run in zip(style.roles(runs), runs, strict=True)]
    return best_first(named, lambda pair: pair[1])


def _may_be_chance(one: Scores | RecoveryRun, other: Scores | RecoveryRun) -> bool | None:
    """Whether the 95 % interval of the difference, paired by window, holds 0; ``None`` if there is none."""
    windows = len(one.window_nll)
    if windows < FEWEST_WINDOWS or len(other.window_nll) != windows:
        return None
    return may_be_none(difference(one.window_nll, other.window_nll))


def may_be_none(shift: Metric) -> bool:
    """Whether the interval of a difference holds 0."""
    return shift.low <= 0 <= shift.high


def gap_closed(result: RunResult) -> str:
    """How much of the lost likelihood each recovery regains, best first."""
    rows = [
        (role.name, run.gap_closed) for role, run in zip(style.roles(result.runs), result.runs, strict=True)
    ]
    ordered = sorted(((n, v) for n, v in rows if math.isfinite(v)), key=lambda row: -row[1])
    if not ordered or result.baseline.pruned.perplexity.value <= result.baseline.original.perplexity.value:
        return "There is no gap in log-likelihood to close."
    name, share = ordered[0]
    rest = "".join(f", {other} {percent(value)}" for other, value in ordered[1:])
    if share <= 0:
        return f"Nothing is regained: {name} closes {percent(share)} of the gap in log-likelihood{rest}."
    return f"{name} regains {percent(share)} of the log-likelihood that dropping lost{rest}."


def by_position(result: RunResult) -> str:
    """Whether the loss sits early or late in the window."""
    original = np.asarray(result.baseline.original.position_nll)
    pruned = np.asarray(result.baseline.pruned.position_nll)
    if original.size < 4 or original.size != pruned.size:
        return "Likelihood by position was not recorded."
    quarter = original.size // 4
    first, last = ((pruned - original)[part].mean() for part in (slice(None, quarter), slice(-quarter, None)))
    text = (
        f"Dropping costs {number(first)} nats per token in the first quarter of the window "
        f"and {number(last)} in the last"
    )
    rows = [(name, run) for name, run in ranked(result.runs) if len(run.position_nll) == original.size]
    if not rows:
        return f"{text}."
    name, best = rows[0]
    left = (np.asarray(best.position_nll) - original)[-quarter:].mean()
    return f"{text}; {name} leaves {number(left)} of these."


def explained(runs: Sequence[RecoveryRun], block: int | None = None) -> str:
    """How much of what the block does is restored, and how much less than on the fitted tokens."""
    name, report = _best(runs, block)
    if report is None:
        return "No recovery was fitted to this block."
    text = (
        f"{name} restores {percent(report.explained)} of what dropping takes away from "
        f"held-out tokens ({percent(report.explained_ordinary)} from ordinary ones)"
    )
    if report.explained <= 0:
        text = f"No recovery comes closer than plain dropping; {name} explains {percent(report.explained)}"
    if report.explained_train is None or not math.isfinite(report.explained_train):
        return f"{text}."
    lost = report.explained_train - report.explained
    if lost < 0.005:
        return f"{text}, as much as on the tokens that it was fitted on."
    return f"{text}; on the tokens that it was fitted on {points(lost)} more."


def relative_error(runs: Sequence[RecoveryRun], block: int | None = None) -> str:
    """How far off the restored state is, and whether massive activations flatter it."""
    rows = [row for row in boundary.reports(runs, block) if math.isfinite(row[1].relative_error)]
    if not rows:
        return "No recovery was fitted to this block."
    role, report = min(rows, key=lambda row: row[1].relative_error)
    every, ordinary = report.relative_error, report.relative_error_ordinary
    text = f"With {role.name} the restored state of held-out tokens is off by {percent(every)} of its size"
    if not math.isfinite(ordinary):
        return f"{text}."
    if ordinary > 1.05 * every:
        return f"{text}, by {percent(ordinary)} on ordinary tokens: massive activations flatter it."
    if ordinary < 0.95 * every:
        return f"{text}, by only {percent(ordinary)} on ordinary tokens: most error is on massive ones."
    return f"{text}, and by as much on ordinary tokens alone."


def channel_error(runs: Sequence[RecoveryRun], block: int | None = None) -> str:
    """What is left of the gap in the median and in the worst channel."""
    name, report = _best(runs, block)
    if report is None or not style.finite(report.channel_error):
        return "Error per channel was not recorded."
    errors = np.asarray(report.channel_error)
    worst, beyond = int(np.nanargmax(errors)), int((errors > 1).sum())
    text = (
        f"{name} leaves {percent(float(np.nanmedian(errors)))} of the gap in the median channel "
        f"and {percent(float(errors[worst]))} in the worst, channel {worst}"
    )
    return f"{text}; {plural(beyond, 'channel')} would be closer if merely dropped." if beyond else f"{text}."


def position_error(runs: Sequence[RecoveryRun], block: int | None = None) -> str:
    """What is left of the gap at the first position and at the rest."""
    name, report = _best(runs, block)
    if report is None or len(style.finite(report.position_error)) < 2:
        return "Error per position was not recorded."
    first, rest = report.position_error[0], float(np.nanmedian(report.position_error[1:]))
    ends = f"{percent(first)} of the gap at the first position and {percent(rest)}"
    return f"{name} leaves {ends} at the median of the rest{_less_at_first(runs, block, name, first)}."


def _less_at_first(runs: Sequence[RecoveryRun], block: int | None, name: str, first: float) -> str:
    """The recovery that leaves less than half as much at the first position, where there is one."""
    others = [(role.name, row) for role, row in boundary.reports(runs, block) if role.name != name]
    known = [(left, other) for other, row in others for left in style.finite(row.position_error[:1])]
    left, other = min(known, default=(math.inf, ""))
    return (
        f"; {other} leaves least at the first, {percent(left)}"
        if style.finite([first]) and left < 0.5 * first
        else ""
    )


def _best(runs: Sequence[RecoveryRun], block: int | None) -> tuple[str, BoundaryReport | None]:
    """Name and report with the highest explained share."""
    rows = [row for row in boundary.reports(runs, block) if math.isfinite(row[1].explained)]
    if not rows:
        return "", None
    role, report = max(rows, key=lambda row: row[1].explained)
    return role.name, report


def selection(info: SelectionInfo | None) -> str:
    """What the criterion chose and how clear the choice was."""
    if info is None:
        return "The blocks were named by hand."
    others = [s for s, mark in zip(info.scores, chosen(info), strict=True) if not mark and math.isfinite(s)]
    ours = [s for s, mark in zip(info.scores, chosen(info), strict=True) if mark and math.isfinite(s)]
    text = f"{info.criterion} drops {info.chosen}"
    if not (ours and others):
        return f"{text}."
    worst, rival = max(ours), min(others)
    return f"{text} with a score of {number(worst)}; the next candidate has {number(rival)}."
