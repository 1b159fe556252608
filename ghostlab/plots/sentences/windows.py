"""Sentences on held-out windows: how they spread, and whether a difference is more than chance."""

from __future__ import annotations

import numpy as np

from ghostlab.plots.figures import windows as figures
from ghostlab.plots.formats import number, plural
from ghostlab.plots.sentences.scores import may_be_none, ranked
from ghostlab.results.compare import FEWEST_WINDOWS, Side, best_first, likelihood
from ghostlab.results.records import Metric
from ghostlab.results.run import RunResult
from ghostlab.results.statistics import difference


def window_distribution(result: RunResult) -> str:
    """How far windows lie apart for the original, and on how many dropping hurts most."""
    original, pruned = (np.asarray(s.window_nll) for s in (result.baseline.original, result.baseline.pruned))
    if original.size < 2 or original.size != pruned.size:
        return "Likelihood by window was not recorded."
    easy, hard = float(np.exp(original.min())), float(np.exp(original.max()))
    costs = np.exp(np.minimum(pruned - original, 700.0))
    return (
        f"The original's perplexity goes from {number(easy)} on the easiest window to {number(hard)} on the "
        f"hardest; dropping multiplies it by {number(float(costs.min()))} to {number(float(costs.max()))}, "
        f"most on window {int(costs.argmax()) + 1}."
    )


def window_differences(result: RunResult, reference: figures.Reference = "pruned") -> str:
    """On how many windows the best recovery beats the reference, and whether it beats the runner-up."""
    rows = [(name, run) for name, run in ranked(result.runs) if run.window_nll]
    if not rows:
        return "No recovery was measured window by window."
    name, best = rows[0]
    shifts = figures.paired_differences(result, best, reference)
    if not shifts.size:
        return f"The windows of {name} and of the {reference} model cannot be paired."
    wins, total = int((shifts < 0).sum()), plural(len(shifts), "window")
    mean = difference(shifts, np.zeros_like(shifts))
    side = "fewer" if mean.value < 0 else "more"
    text = (
        f"{name} needs {number(abs(mean.value))} nats per token {side} than the {reference} model on average"
        f"{_ends(mean)} and is better on {wins} of {total}"
    )
    if len(rows) < 2 or len(rows[1][1].window_nll) != len(best.window_nll):
        return f"{text}."
    beaten = int((np.asarray(best.window_nll) < np.asarray(rows[1][1].window_nll)).sum())
    lead = difference(best.window_nll, rows[1][1].window_nll)
    return f"{text}; it beats {rows[1][0]} on {beaten}, {_lead(lead, len(shifts))}."


def _ends(mean: Metric) -> str:
    low, high = sorted((abs(mean.low), abs(mean.high)))
    if mean.low < 0 < mean.high:
        return ""
    return f" (95 % interval {number(low)} to {number(high)})"


def _lead(lead: Metric, windows: int) -> str:
    size = f"by {number(abs(lead.value))} nats"
    if windows < FEWEST_WINDOWS:
        return f"{size} on average"
    return f"{size} on average, which {'could be chance' if may_be_none(lead) else 'is more than chance'}"


def verdict(one: Side, other: Side) -> str:
    """Whether one side is really better than the other, in one sentence."""
    found = likelihood(one, other)
    if found is None:
        return _unpaired(one, other)
    if found.value == 0 and found.low == found.high == 0:
        return f"{one.name} and {other.name} score the same on every window."
    better, worse, size = (one, other, found) if found.value < 0 else (other, one, _turned(found))
    ours, theirs = (number(side.run.perplexity.value) for side in (better, worse))
    text = (
        f"{better.name} needs {number(abs(size.value))} nats per token fewer than {worse.name}: "
        f"its perplexity is {ours} against {theirs}"
    )
    windows = len(one.run.window_nll)
    if windows < FEWEST_WINDOWS:
        return f"{text}; {plural(windows, 'window')} are too few to say whether that is more than chance."
    told = f"95 % interval over {windows} paired windows"
    if may_be_none(size):
        ends = f"{number(-size.low)} fewer to {number(size.high)} more"
        return f"{text}; that may be chance: the {told} goes from {ends}."
    return (
        f"{text}; the difference is real on this text: the {told}, {number(-size.high)} to "
        f"{number(-size.low)} nats, leaves out 0."
    )


def _turned(shift: Metric) -> Metric:
    return Metric(-shift.value, -shift.high, -shift.low)


def _unpaired(one: Side, other: Side) -> str:
    """Better by how much on what each was measured on, when that was not the same."""
    ordered = best_first((one, other), lambda side: side.run)
    if len(ordered) < 2:
        return "They were not measured on the same windows, and not both have a likelihood that is finite."
    better, worse = ordered
    least, most = (side.run.bits_per_byte.value for side in ordered)
    places = [_place(side) for side in ordered]
    where = f"{places[0]}, but not the same ones" if places[0] == places[1] else "; ".join(places)
    return (
        f"{better.name} needs {number(least)} bits per byte and {worse.name} {number(most)}, but they were "
        f"not measured on the same windows ({where}), so chance cannot be ruled out."
    )


def _place(side: Side) -> str:
    text, model = side.result.text.held_out, side.result.model.name
    return f"{model} on {plural(len(side.run.window_nll), 'window')} of {text}"
