"""Bootstrap over evaluation windows: what is uncertain is which text was read, and windows are its units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ghostlab.results.records import Metric

RESAMPLES = 2000
Array = npt.NDArray[np.float64]
Values = Sequence[float] | npt.NDArray[Any]


def resamples(windows: int, seed: int) -> Array:
    """How often each window occurs in each bootstrap sample, [RESAMPLES, windows]."""
    generator = np.random.default_rng(seed)
    return generator.multinomial(windows, np.full(windows, 1 / windows), RESAMPLES).astype(np.float64)


def paired(statistic: Callable[..., Array], series: Sequence[Values], seed: int = 0) -> Metric:
    """A function of the means of several series over the same windows, with its 95 % interval.

    Each bootstrap sample draws windows and takes them from every series, so that what makes a window hard
    for all cancels in a difference. The ends are order statistics that lie mirrored: exchanging two series
    in a difference exchanges and negates the ends exactly.

    Args:
        statistic: Given one array of means per series, elementwise.
        series: One value per window each, in the same order of windows.
        seed: Seed of the resampling.
    """
    values = [np.asarray(each, dtype=np.float64) for each in series]
    draws = resamples(len(values[0]), seed)
    shares = [draws @ each / len(each) for each in values]
    found = np.sort(statistic(*shares))
    beyond = int(0.025 * (len(found) - 1))
    whole = statistic(*(np.asarray(each.mean()) for each in values))
    return Metric(float(whole), float(found[beyond]), float(found[-1 - beyond]))


def difference(one: Values, other: Values, seed: int = 0) -> Metric:
    """Mean of ``one - other`` over windows with its paired 95 % interval; see :func:`paired`."""
    return paired(np.subtract, [one, other], seed)
