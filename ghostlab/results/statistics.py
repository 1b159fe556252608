"""What chance may have made: the bootstrap over windows, and tests on right and wrong answers.

What is uncertain is which text was read, and windows are its units; for answers, which questions were chosen.
Every 95 % interval of Ghostlab is one of :func:`interval`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt

from ghostlab.results.records import Metric

RESAMPLES = 2000
ALPHA = 0.05
"""What chance makes more rarely than this is significant."""
Array = npt.NDArray[np.float64]
Values = Sequence[float] | npt.NDArray[Any]


def interval(draws: Array) -> tuple[float, float]:
    """The 2.5 and the 97.5 percentile of bootstrap draws, linear between order statistics.

    The upper end is taken as the lower one of the negated draws: exchanging the sides of a difference
    exchanges and negates its ends exactly.
    """
    with np.errstate(invalid="ignore"):  # infinite draws have an end that is NaN
        low, high = np.percentile(draws, 2.5), -np.percentile(-draws, 2.5)
    return float(low), float(high)


def resamples(windows: int, seed: int) -> Array:
    """How often each window occurs in each bootstrap sample, [RESAMPLES, windows]."""
    generator = np.random.default_rng(seed)
    return generator.multinomial(windows, np.full(windows, 1 / windows), RESAMPLES).astype(np.float64)


def ratio(part: Array, whole: Array, draws: Array, shape: Callable[[Array], Array] = np.asarray) -> Metric:
    """``shape(sum(part) / sum(whole))`` over all windows, with its interval.

    Args:
        part, whole: A sum over the tokens of each window, [W].
        draws: Bootstrap samples, as :func:`resamples` returns them.
        shape: Applied elementwise to the ratios.
    """
    value = shape(np.asarray(part.sum() / whole.sum()))
    sampled = draws @ whole
    drawn = sampled > 0  # a kind of token that is rare may be in none of the windows of a sample
    return Metric(float(value), *interval(shape((draws @ part)[drawn] / sampled[drawn])))


def paired(statistic: Callable[..., Array], series: Sequence[Values], seed: int = 0) -> Metric:
    """A function of the means of several series over the same windows, with its interval.

    Each bootstrap sample draws windows and takes them from every series, so that what makes a window hard
    for all cancels in a difference.

    Args:
        statistic: Given one array of means per series, elementwise.
        series: One value per window each, in the same order of windows.
        seed: Seed of the resampling.
    """
    values = [np.asarray(each, dtype=np.float64) for each in series]
    draws = resamples(len(values[0]), seed)
    whole = statistic(*(np.asarray(each.mean()) for each in values))
    return Metric(float(whole), *interval(statistic(*(draws @ each / len(each) for each in values))))


def difference(one: Values, other: Values, seed: int = 0) -> Metric:
    """Mean of ``one - other`` over windows with its paired interval; see :func:`paired`."""
    return paired(np.subtract, [one, other], seed)


def significantly_greater(one: Values, other: Values) -> bool:
    """Whether the paired 95 % interval of ``one - other`` over windows lies above zero."""
    return difference(one, other).low > 0


@dataclass(frozen=True)
class Verdict:
    """One model against another on the same questions.

    Attributes:
        difference: Share that the one answers rightly minus that of the other, with a 95 % interval.
        gained, lost: Questions that only the one, and only the other, answers rightly.
        p: Exact McNemar test: how likely so uneven a division of these is if neither is better.
    """

    difference: Metric
    gained: int
    lost: int
    p: float


def compare_answers(ours: Sequence[int], theirs: Sequence[int], seed: int = 0) -> Verdict:
    """Compare two series of right (1) and wrong (0) answers to the same questions."""
    from scipy.stats import binomtest

    _, gained, lost, _ = (int(count) for count in _cells(ours, theirs))
    draws = _answer_draws(ours, theirs, np.random.default_rng(seed))
    ends = interval((draws[:, 1] - draws[:, 2]) / len(ours))
    p = float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    return Verdict(Metric((gained - lost) / len(ours), *ends), gained, lost, p)


def above_chance(answers: Sequence[int], chance: float) -> bool:
    """Whether there are significantly more right answers than guessing gives: binomial test, one-sided."""
    from scipy.stats import binomtest

    return bool(binomtest(sum(answers), len(answers), chance, alternative="greater").pvalue < ALPHA)


def ratio_of_answers(pairs: Sequence[tuple[Sequence[int], Sequence[int]]], seed: int = 0) -> Metric:
    """Mean over tasks of our right answers over theirs, with its interval; NaN without a task.

    Each bootstrap sample draws the questions of every task anew, for both alike; a task of which they then
    have nothing right has no ratio in that sample.
    """
    if not pairs:
        return Metric(nan, nan, nan)
    value = float(np.mean([sum(ours) / sum(theirs) for ours, theirs in pairs]))
    generator = np.random.default_rng(seed)
    draws = [_answer_draws(ours, theirs, generator) for ours, theirs in pairs]
    ours, theirs = (np.array([d[:, 0] + d[:, side] for d in draws]) for side in (1, 2))
    known = theirs > 0
    ratios = np.where(known, ours / np.maximum(theirs, 1.0), 0.0).sum(axis=0)
    counts = known.sum(axis=0)
    return Metric(value, *interval(ratios[counts > 0] / counts[counts > 0]))


def _cells(ours: Sequence[int], theirs: Sequence[int]) -> Array:
    """How many questions both, only we, only they, and neither answer rightly."""
    one, other = np.asarray(ours, dtype=bool), np.asarray(theirs, dtype=bool)
    return np.array([(one & other).sum(), (one & ~other).sum(), (~one & other).sum(), (~one & ~other).sum()])


def _answer_draws(ours: Sequence[int], theirs: Sequence[int], generator: np.random.Generator) -> Array:
    """The four cells in each bootstrap sample of questions, [RESAMPLES, 4]."""
    cells = _cells(ours, theirs)
    return generator.multinomial(len(ours), cells / len(ours), RESAMPLES).astype(np.float64)
