"""Two recoveries, of one run or of two, figure by figure, and whether they differ by more than chance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, nan
from typing import Any, Literal, TypeVar

import numpy as np

from ghostlab.errors import ResultError
from ghostlab.results.records import (
    METRICS,
    Agreement,
    BoundaryReport,
    Metric,
    MetricInfo,
    RecoveryRun,
    Scores,
)
from ghostlab.results.run import RunResult
from ghostlab.results.statistics import Array, difference, paired

FEWEST_WINDOWS = 5
"""A bootstrap of fewer windows says nothing about chance."""
SAME = 0.05
"""Nats per token by which the original may differ on the same window when its weights are rounded otherwise;
different windows of one text are an order of magnitude further apart."""
ORIGINAL = "original"
"""The method of the original, where it is a side."""
Kind = Literal["number", "share", "count"]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Side:
    """One recovery with the run that it belongs to.

    Attributes:
        name: What it is called here.
        result: The run.
        run: The recovery; the original and plain dropping too are such, see :func:`sides`.
    """

    name: str
    result: RunResult
    run: RecoveryRun


@dataclass(frozen=True)
class Difference:
    """One figure of both sides and ``one - other``, with its paired 95 % interval where there can be one."""

    figure: str
    kind: Kind
    one: float | None
    other: float | None
    difference: float | None
    low: float | None = None
    high: float | None = None


def compare(one: RunResult, other: RunResult, ours: str, theirs: str) -> list[Difference]:
    """Figures of recovery ``ours`` of one run and ``theirs`` of another, or of the same.

    Recoveries go by their label, plain dropping by "pruned", the original by "original".

    Raises:
        ResultError: If there is no recovery of that name.
    """
    return differences(_side(one, ours), _side(other, theirs))


def _side(result: RunResult, label: str) -> Side:
    named = {side.name: side for side in sides(result)}
    if label not in named:
        raise ResultError(f"This run has no recovery '{label}'.", f"Choose from: {', '.join(named)}.")
    return named[label]


def sides(result: RunResult, name: str = "") -> list[Side]:
    """Plain dropping, every recovery and the original of a run; ``name`` goes before theirs.

    The original is left out where its windows were not kept, for then nothing can be paired with it.
    """
    before = f"{name}: " if name else ""
    runs = [_dropping(result), *result.runs]
    if result.baseline.original.window_nll:
        runs.append(_original(result))
    return [Side(before + run.label, result, run) for run in runs]


def _dropping(result: RunResult) -> RecoveryRun:
    """The pruned model as a recovery that does nothing: by definition it explains and closes nothing."""
    return _as_recovery(result.baseline.pruned, "drop", "pruned", BoundaryReport(0.0, None, nan, nan, 0.0))


def _original(result: RunResult) -> RecoveryRun:
    """The original as a recovery that brings all back: by definition it agrees with itself on every token."""
    scores = result.baseline.original
    none, all_ = [0.0] * len(scores.window_nll), [1.0] * len(scores.window_nll)
    along = [0.0] * len(scores.position_nll)
    agrees = Agreement(Metric(1.0, 1.0, 1.0), Metric(0.0, 0.0, 0.0), none, all_, all_, along, along)
    whole = replace(scores, agreement=agrees)
    made = _as_recovery(whole, ORIGINAL, "original", BoundaryReport(1.0, None, 0.0, 0.0, 1.0))
    return replace(made, gap_closed=1.0)


def _as_recovery(scores: Scores, method: str, label: str, boundary: BoundaryReport) -> RecoveryRun:
    fitted: dict[str, Any] = {"rank": None, "ridge": None, "parameters_added": 0, "boundary": boundary}
    return RecoveryRun(**vars(scores), method=method, label=label, **fitted)


def best_first(items: Iterable[Item], run: Callable[[Item], RecoveryRun]) -> list[Item]:
    """Those with a finite likelihood, the fewest bits per byte first: what "best" means everywhere.

    Within a run that is the order of perplexities; runs of models that cut text into other tokens have no
    other figure in common.

    Args:
        items: Anything with a recovery.
        run: The recovery of an item.
    """

    def finite(item: Item) -> bool:
        return all(isfinite(figure.value) for figure in (run(item).perplexity, run(item).bits_per_byte))

    return sorted(filter(finite, items), key=lambda item: run(item).bits_per_byte.value)


def same_windows(one: RunResult, other: RunResult) -> bool:
    """Whether two runs measured the same model on the same held-out windows.

    What the original scored on every window tells it: a text may change under the same name.
    """
    described = [(r.model.name, r.text.held_out_tokens, r.text.length, r.text.bos) for r in (one, other)]
    first, second = (r.baseline.original.window_nll for r in (one, other))
    if described[0] != described[1] or not first or len(first) != len(second):
        return False
    return bool(np.allclose(first, second, rtol=0.0, atol=SAME))


def likelihood(one: Side, other: Side) -> Metric | None:
    """Nats per token that ``one`` needs more than ``other``, with the paired interval.

    ``None`` when they were not measured on the same windows.
    """
    return _paired(one, other, lambda a, b, *_: a - b)


def _paired(one: Side, other: Side, statistic: Callable[..., Array]) -> Metric | None:
    """``statistic(one, other, pruned of one, pruned of other, original)`` of mean log-likelihoods."""
    pruned = [side.result.baseline.pruned.window_nll for side in (one, other)]
    series = [one.run.window_nll, other.run.window_nll, *pruned, one.result.baseline.original.window_nll]
    if not same_windows(one.result, other.result) or len({len(each) for each in series}) > 1:
        return None
    return paired(statistic, series)


def _perplexity(one: Array, other: Array, *_: Array) -> Array:
    return np.asarray(_exp(one) - _exp(other))


def _exp(nll: Array) -> Array:
    return np.asarray(np.exp(np.minimum(nll, 700.0)))  # finite even for a destroyed model


def _closed(one: Array, other: Array, pruned: Array, pruned_other: Array, original: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = (pruned - one) / (pruned - original), (pruned_other - other) / (pruned_other - original)
    return np.asarray(shares[0] - shares[1])


def _window_means(one: Side, other: Side, name: str) -> Metric | None:
    """Difference of the means of a figure that agreement keeps for every window."""
    series = [getattr(side.run.agreement, name, []) for side in (one, other)]
    if not same_windows(one.result, other.result) or not series[0] or len(series[0]) != len(series[1]):
        return None
    return difference(series[0], series[1])


@dataclass(frozen=True)
class _Figure:
    """How a figure is read, and the paired interval of its difference, where windows give it one."""

    name: str
    kind: Kind
    value: Callable[[Side], float | None]
    interval: Callable[[Side, Side], Metric | None] = lambda *_: None


def _metric(metric: MetricInfo) -> _Figure:
    interval = partial(_window_means, name=metric.windows)
    if metric.name == "perplexity":
        interval = partial(_paired, statistic=_perplexity)
    return _Figure(
        metric.label[0].upper() + metric.label[1:],
        "share" if metric.share else "number",
        lambda side: getattr(side.run, metric.name).value,
        interval,
    )


def _cut(side: Side) -> bool:
    """Whether anything was dropped from this side."""
    return side.run.method != ORIGINAL


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _top5(side: Side) -> float | None:
    return None if side.run.agreement is None else side.run.agreement.top5_agreement.value


_FIGURES = (
    *(_metric(each) for each in METRICS),
    _Figure("Nats per token", "number", lambda s: _mean(s.run.window_nll), likelihood),
    _Figure("Gap closed", "share", lambda s: s.run.gap_closed, partial(_paired, statistic=_closed)),
    _Figure("Top-5 agreement", "share", _top5, partial(_window_means, name="window_top5")),
    _Figure("Explained (all)", "share", lambda s: s.run.boundary.explained),
    _Figure("Explained (ordinary)", "share", lambda s: s.run.boundary.explained_ordinary),
    _Figure("Explained (fitted on)", "share", lambda s: s.run.boundary.explained_train),
    _Figure("Relative error", "share", lambda s: s.run.boundary.relative_error),
    _Figure("Parameters dropped", "count", lambda s: s.result.model.parameters_dropped * _cut(s)),
    _Figure("Parameters added", "count", lambda s: s.run.parameters_added),
    _Figure("Layers dropped", "count", lambda s: len(s.result.cut.dropped) * _cut(s)),
)


def differences(one: Side, other: Side) -> list[Difference]:
    """Every figure of both sides; paired intervals where both were measured on the same windows."""
    return [_difference(figure, one, other) for figure in _FIGURES]


def _difference(figure: _Figure, one: Side, other: Side) -> Difference:
    ours, theirs = (_known(figure.value(side)) for side in (one, other))
    if ours is None or theirs is None:
        return Difference(figure.name, figure.kind, ours, theirs, None)
    interval = figure.interval(one, other)
    ends = (None, None) if interval is None else (_known(interval.low), _known(interval.high))
    return Difference(figure.name, figure.kind, ours, theirs, ours - theirs, *ends)


def _known(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None
