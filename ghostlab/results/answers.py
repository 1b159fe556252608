"""Right and wrong answers to the same questions compared: what is uncertain is which questions were asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

from ghostlab.results.records import Metric
from ghostlab.results.statistics import RESAMPLES, Array

SURE = 0.05
"""What chance makes more rarely than this is taken for real."""


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
    draws = _draws(ours, theirs, np.random.default_rng(seed))
    low, high = np.percentile((draws[:, 1] - draws[:, 2]) / len(ours), [2.5, 97.5])
    p = float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    return Verdict(Metric((gained - lost) / len(ours), float(low), float(high)), gained, lost, p)


def above_chance(answers: Sequence[int], chance: float) -> bool:
    """Whether so many right answers are more than guessing gives: binomial test, one-sided, p < 0.05."""
    from scipy.stats import binomtest

    return bool(binomtest(sum(answers), len(answers), chance, alternative="greater").pvalue < SURE)


def ratio_of_answers(pairs: Sequence[tuple[Sequence[int], Sequence[int]]], seed: int = 0) -> Metric:
    """Mean over tasks of our right answers over theirs, with its interval; NaN without a task.

    Each bootstrap sample draws the questions of every task anew, for both alike; a task of which they then
    have nothing right has no ratio in that sample.
    """
    if not pairs:
        return Metric(nan, nan, nan)
    value = float(np.mean([sum(ours) / sum(theirs) for ours, theirs in pairs]))
    generator = np.random.default_rng(seed)
    draws = [_draws(ours, theirs, generator) for ours, theirs in pairs]
    ours, theirs = (np.array([d[:, 0] + d[:, side] for d in draws]) for side in (1, 2))
    known = theirs > 0
    ratios = np.where(known, ours / np.maximum(theirs, 1.0), 0.0).sum(axis=0)
    counts = known.sum(axis=0)
    low, high = np.percentile(ratios[counts > 0] / counts[counts > 0], [2.5, 97.5])
    return Metric(value, float(low), float(high))


def _cells(ours: Sequence[int], theirs: Sequence[int]) -> Array:
    """How many questions both, only we, only they, and neither answer rightly."""
    one, other = np.asarray(ours, dtype=bool), np.asarray(theirs, dtype=bool)
    return np.array([(one & other).sum(), (one & ~other).sum(), (~one & other).sum(), (~one & ~other).sum()])


def _draws(ours: Sequence[int], theirs: Sequence[int], generator: np.random.Generator) -> Array:
    """The four cells in each bootstrap sample of questions, [RESAMPLES, 4]."""
    cells = _cells(ours, theirs)
    return generator.multinomial(len(ours), cells / len(ours), RESAMPLES).astype(np.float64)
