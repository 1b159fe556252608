"""Second moments of the state before a block and of the change that the block makes, in float64.

With X [N, C] the states before a block, D = Y - X the change, and Y the states after it, everything that is
fitted follows from G = X'X, R = X'D, the sums of X and D, the squares of D per channel, and N. Moments add up
over batches and folds and subtract again, so that leaving a fold out costs one subtraction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from ghostlab.cut import Block
from ghostlab.model.device import exact_device

MASSIVE = 10.0
"""A token is massive when its norm exceeds this many times the median of its window, before or after the
block. (Massive activations, arXiv 2402.17762: few tokens, often the first, hold most of ||X||^2.)"""

ROWS = 512
"""Tokens that are in float64 at a time."""

Weighting = Literal["none", "relative"]
"""How tokens count: all alike, or by 1 / mean-square(y), which makes the loss a relative error."""


@dataclass(frozen=True)
class Moments:
    """Sums over N tokens; all tensors float64.

    Attributes:
        count: N, or the sum of weights.
        x, change: sum of X and of D, [C].
        gram: G = X'X, [C, C].
        cross: R = X'D, [C, C].
        power: squares of D summed over tokens, per channel, [C].
    """

    count: float
    x: Tensor
    change: Tensor
    gram: Tensor
    cross: Tensor
    power: Tensor

    @classmethod
    def of(cls, x: Tensor, change: Tensor, weight: Tensor | None = None) -> Moments:
        """Moments of states [N, C] and changes [N, K], each token counted ``weight`` [N] times."""
        count, wide, narrow = 0.0, x.shape[1], change.shape[1]
        shapes = ((wide,), (narrow,), (narrow,), (wide, wide), (wide, narrow))
        sums, changes, power, gram, cross = (x.new_zeros(shape, dtype=torch.float64) for shape in shapes)
        for start in range(0, len(x), ROWS):
            rows = slice(start, start + ROWS)
            wx, wd = px, pd = x[rows].double(), change[rows].double()
            if weight is None:
                count += len(px)
            else:
                factor = weight[rows].double()
                count += float(factor.sum())
                wx, wd = px * factor[:, None], pd * factor[:, None]
            sums += wx.sum(0)
            changes += wd.sum(0)
            gram.addmm_(wx.T, px)
            cross.addmm_(wx.T, pd)
            power += (wd * pd).sum(0)
        return cls(count, sums, changes, gram, cross, power)

    def __add__(self, other: Moments) -> Moments:
        return self._combine(other, 1.0)

    def __sub__(self, other: Moments) -> Moments:
        return self._combine(other, -1.0)

    def _combine(self, other: Moments, sign: float) -> Moments:
        return Moments(**{name: value + sign * vars(other)[name] for name, value in vars(self).items()})

    @property
    def width(self) -> int:
        """C."""
        return self.x.shape[0]

    @property
    def total(self) -> float:
        """t = ||D||_F^2: the whole gap that a recovery has to fill."""
        return float(self.power.sum())

    @property
    def state_power(self) -> float:
        """||Y||_F^2 = ||X||^2 + 2 <X, D> + ||D||^2."""
        return float(self.gram.trace() + 2 * self.cross.trace()) + self.total

    def about(self, x: Tensor, change: Tensor) -> Moments:
        """The same moments with X and D taken about the points ``x`` and ``change``, [C] each."""
        n = self.count
        return Moments(
            n,
            self.x - n * x,
            self.change - n * change,
            self.gram - torch.outer(self.x, x) - torch.outer(x, self.x) + n * torch.outer(x, x),
            self.cross
            - torch.outer(self.x, change)
            - torch.outer(x, self.change)
            + n * torch.outer(x, change),
            self.power - 2 * change * self.change + n * change.square(),
        )

    def scaled(self, unit: Tensor) -> Moments:
        """The same moments with each channel of X multiplied by ``unit`` [C]."""
        gram, cross = self.gram * torch.outer(unit, unit), self.cross * unit[:, None]
        return replace(self, x=self.x * unit, gram=gram, cross=cross)

    def centred(self) -> Moments:
        """Moments about the means: what an unpenalised bias leaves to the linear part."""
        return self.about(self.x / self.count, self.change / self.count)

    def residual(self, matrix: Tensor, bias: Tensor | None = None) -> float:
        """||X M + b - D||_F^2 for M [C, C] and b [C]: t - 2 <M, R> + <M, G M> and the terms of b."""
        error = self.total + float(((self.gram @ matrix - 2 * self.cross) * matrix).sum())
        if bias is not None:
            pull = self.x @ matrix - self.change
            error += float(2 * bias @ pull + self.count * bias @ bias)
        return max(error, 0.0)


@dataclass
class BlockMoments:
    """The moments of one block, per fold of documents, with special tokens kept apart.

    Special tokens (the first of a window, and massive ones) are few but hold nearly all of ||X||^2. They are
    kept as they are, [n, C] float32, so that any fit can take them in or leave them out.
    """

    block: Block
    ordinary: list[Moments]
    weighting: Weighting = "none"
    special_x: list[Tensor] = field(default_factory=list)
    special_change: list[Tensor] = field(default_factory=list)
    special_fold: list[Tensor] = field(default_factory=list)
    special_first: list[Tensor] = field(default_factory=list)

    @classmethod
    def empty(
        cls,
        block: Block,
        folds: int,
        width: int,
        device: torch.device | str = "cpu",
        weighting: Weighting = "none",
    ) -> BlockMoments:
        """Moments before any batch was seen; on the CPU if ``device`` has no float64 (Apple MPS)."""
        nothing = torch.empty(0, width, device=exact_device(device))
        return cls(block, [Moments.of(nothing, nothing)] * folds, weighting)

    def add(self, before: Tensor, after: Tensor, fold: Tensor) -> None:
        """Take in the states [B, T, C] before and after the block of windows that belong to ``fold`` [B]."""
        device = self.ordinary[0].x.device
        before, after = before.to(device), after.to(device)
        change = after - before
        special = massive_tokens(before, after)
        special[:, 0] = True
        for index in sorted(set(fold.tolist())):
            rows = (fold == index).to(special.device)
            take = ~special & rows[:, None]
            self.ordinary[index] = self.ordinary[index] + self._of(before[take], change[take])
        window, position = special.nonzero(as_tuple=True)
        self.special_x.append(before[window, position].float())
        self.special_change.append(change[window, position].float())
        self.special_fold.append(fold.to(window.device)[window])
        self.special_first.append(position == 0)

    def folds(self, *, first: bool = True) -> list[Moments]:
        """Moments fold by fold: of all tokens, or of all but the first token of each window."""
        x, change, fold, is_first = (
            torch.cat(part)
            for part in (self.special_x, self.special_change, self.special_fold, self.special_first)
        )
        every = []
        for index, moments in enumerate(self.ordinary):
            take = (fold == index) & (~is_first | first)
            device = moments.x.device
            every.append(moments + self._of(x[take].to(device), change[take].to(device)))
        return every

    def all(self, *, first: bool = True) -> Moments:
        """Moments of all tokens, or of all but the first of each window."""
        return total(self.folds(first=first))

    def first_changes(self, *, without: int | None = None) -> Tensor:
        """Changes of the first token of each window, [windows, C], float32; ``without`` leaves a fold out."""
        take = torch.cat(self.special_first)
        if without is not None:
            take = take & (torch.cat(self.special_fold) != without).to(take.device)
        return torch.cat(self.special_change)[take]

    def first_change(self) -> Tensor:
        """Their mean, [C], float64."""
        return self.first_changes().double().mean(0)

    def _of(self, x: Tensor, change: Tensor) -> Moments:
        if self.weighting == "none":
            return Moments.of(x, change)
        return Moments.of(x, change, 1 / (x + change).double().square().mean(-1))


def total(parts: Iterable[Moments]) -> Moments:
    """The sum of moments of disjoint tokens; at least one."""
    first, *rest = parts
    for part in rest:
        first = first + part
    return first


def massive_tokens(before: Tensor, after: Tensor) -> Tensor:
    """Which tokens [B, T] carry massive activations in either state [B, T, C]; see :data:`MASSIVE`."""
    massive = torch.zeros(before.shape[:2], dtype=torch.bool, device=before.device)
    for state in (before, after):
        norm = torch.linalg.vector_norm(state.float(), dim=-1)
        massive |= norm > MASSIVE * norm.median(dim=1, keepdim=True).values
    return massive
