"""Second moments between each boundary and the next few, from states that are looked at once.

Everything that is fitted for block s:e follows from X_s'X_s and X_s'X_e. Over all blocks of up to n layers
these products form a band along the diagonal of the Gram matrix of all states side by side. They are taken
about the mean of the ordinary training tokens at each boundary, so that a bias needs no further work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ghostlab.calibration.calibrate import MOMENT_BYTES, Calibration
from ghostlab.calibration.moments import massive_tokens
from ghostlab.model.device import exact, exact_device
from ghostlab.progress import Progress


@dataclass(frozen=True)
class Census:
    """Which tokens are fitted, tested or special, and what all boundaries have in common.

    Attributes:
        test: Which windows errors are taken on, [W]; the fit sees the others.
        special: Tokens that are first in their window or massive at some boundary, [W, T].
        mean: Mean of the ordinary training tokens at each boundary, [L + 1, C], float64.
        fit_rows, test_rows: States of the special tokens at all boundaries, [n, L + 1, C], float64.
        first: Mean over the training windows of their first token's states, [L + 1, C], float64.
    """

    test: Tensor
    special: Tensor
    mean: Tensor
    fit_rows: Tensor
    test_rows: Tensor
    first: Tensor

    @property
    def fitted(self) -> int:
        """Ordinary tokens that maps are fitted on."""
        return int((~self.special[~self.test]).sum())

    @property
    def tested(self) -> int:
        """Ordinary tokens that errors are taken on."""
        return int((~self.special[self.test]).sum())


def take_census(calib: Calibration, progress: Progress) -> Census:
    """One pass over the states at all boundaries; the last fold of documents is kept as a test.

    With a single fold there is nothing to keep, and errors are taken on the fitted tokens.
    """
    last = calib.folds - 1
    test = calib.windows.fold == last
    fitted = ~test if last else test
    special = torch.zeros(calib.windows.ids.shape, dtype=torch.bool)
    every = range(calib.model.depth + 1)
    total = torch.zeros(len(every), calib.model.width, dtype=torch.float64)
    first = torch.zeros_like(total)
    rows_of: dict[bool, list[Tensor]] = {True: [], False: []}
    for rows, states in calib.states(every, progress, "Looking for massive tokens"):
        apart = torch.zeros_like(special[rows])
        for boundary in every:
            apart |= massive_tokens(states[boundary], states[boundary]).cpu()
        apart[:, 0] = True
        special[rows] = apart
        take = (~apart & fitted[rows, None]).to(states[0].device)
        for boundary in every:
            total[boundary] += exact(states[boundary][take]).sum(0).cpu()
            first[boundary] += exact(states[boundary][fitted[rows], 0]).sum(0).cpu()
        for kind, chosen in ((False, fitted[rows, None]), (True, test[rows, None])):
            found = (apart & chosen).to(states[0].device)
            rows_of[kind].append(torch.stack([states[b][found].cpu().double() for b in every], dim=1))
    count = int((~special & fitted[:, None]).sum())
    rows_fit, rows_try = (torch.cat(rows_of[kind]) for kind in (False, True))
    return Census(test, special, total / max(count, 1), rows_fit, rows_try, first / int(fitted.sum()))


@dataclass(frozen=True)
class Strip:
    """Products of the states at boundary ``start`` with those at the next few, over some ordinary tokens.

    Attributes:
        start: s.
        products: X_s'[X_s, X_(s+1), ..., X_(s+n)], [C, (n + 1) C], about the census mean, float64.
        sums: Sums of X_b, [n + 1, C].
        powers: Squares of X_b summed, [n + 1].
        count: Number of tokens.
    """

    start: int
    products: Tensor
    sums: Tensor
    powers: Tensor
    count: int

    @property
    def gram(self) -> Tensor:
        """G = X'X, [C, C]."""
        return self._product(0)

    def cross(self, length: int) -> Tensor:
        """R = X'D with D the change that ``length`` layers make, [C, C]."""
        return self._product(length) - self.gram

    def total(self, length: int) -> float:
        """||D||^2."""
        inner = self._product(length).trace()
        return float(self.powers[0] + self.powers[length] - 2 * inner)

    def _product(self, offset: int) -> Tensor:
        width = len(self.products)
        return self.products[:, offset * width : (offset + 1) * width]


StripPair = tuple[Strip, Strip]
"""The strips of one start over the tokens to fit on, and over those to try on."""


def strips(
    calib: Calibration, census: Census, starts: Sequence[int], longest: int, progress: Progress
) -> Iterator[StripPair]:
    """Strips of every start, some starts at a time so that they fit in memory."""
    group = max(1, MOMENT_BYTES // (16 * (longest + 1) * calib.model.width**2))
    for first in range(0, len(starts), group):
        part = starts[first : first + group]
        step = progress.part(first / len(starts), (first + len(part)) / len(starts))
        yield from _collect(calib, census, part, longest, step)


def _collect(
    calib: Calibration, census: Census, starts: Sequence[int], longest: int, progress: Progress
) -> list[StripPair]:
    low, high = min(starts), min(max(starts) + longest, calib.model.depth)
    device = exact_device(calib.model.device)
    mean = census.mean[low : high + 1].to(device)
    sides = [_Side(starts, longest, low, mean) for _ in range(2)]
    fitted = census.test if bool(census.test.all()) else ~census.test
    for rows, states in calib.states(range(low, high + 1), progress, "Collecting moments of all blocks"):
        for side, chosen in zip(sides, (fitted, census.test), strict=True):
            take = (~census.special[rows] & chosen[rows, None]).to(calib.model.device)
            if bool(take.any()):
                side.add(torch.stack([states[b][take].to(device) for b in range(low, high + 1)], dim=1))
    fit, test = (side.strips() for side in sides)
    return list(zip(fit, test, strict=True))


class _Side:
    """Accumulates the strips of some starts over some tokens.

    Args:
        starts: Boundaries to start from.
        longest: How many layers a block has at most.
        low: The first boundary of ``mean``.
        mean: What is taken from the states at each boundary from ``low`` on, [boundaries, C], float64.
    """

    def __init__(self, starts: Sequence[int], longest: int, low: int, mean: Tensor) -> None:
        self.mean = mean
        boundaries, self.width = mean.shape
        firsts = [start - low for start in starts]
        self.spans = [(first, min(first + longest + 1, boundaries)) for first in firsts]
        self.starts = starts
        self.products = [
            mean.new_zeros(self.width, (last - first) * self.width) for first, last in self.spans
        ]
        self.sums = mean.new_zeros(boundaries, self.width)
        self.powers = mean.new_zeros(boundaries)
        self.count = 0

    def add(self, states: Tensor) -> None:
        """Take in the states of some tokens at all boundaries, [N, boundaries, C]."""
        centred = states.double() - self.mean
        self.sums += centred.sum(0)
        self.powers += centred.square().sum((0, 2))
        self.count += len(centred)
        flat = centred.flatten(1)
        for (first, last), products in zip(self.spans, self.products, strict=True):
            left = centred[:, first]
            products.addmm_(left.T, flat[:, first * self.width : last * self.width])

    def strips(self) -> list[Strip]:
        """What was accumulated."""
        spans = zip(self.starts, self.products, self.spans, strict=True)
        return [
            Strip(start, products, self.sums[first:last], self.powers[first:last], self.count)
            for start, products, (first, last) in spans
        ]
