"""Ridge regression of any regressors on any targets, from moments that are gathered batch by batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ghostlab.calibration.moments import Moments, total
from ghostlab.calibration.solve import choose_ridge, solve
from ghostlab.model.device import exact

WIDE = 1024
"""With more regressors than this one fold validates the ridge: each costs an eigendecomposition of K x K."""


@dataclass(frozen=True)
class Solution:
    """What a regression found.

    Attributes:
        matrix: Coefficients [K, C].
        bias: [C]; zero if none was fitted.
        ridge: Ridge used, relative to regressors of unit scale.
        error: Squared error over ||Y||^2: cross-validated, or on the fitted rows where nothing could be.
    """

    matrix: Tensor
    bias: Tensor
    ridge: float
    error: float


class Regression:
    """Moments of regressors Z [N, K] and targets D [N, C], fold by fold, float64.

    Args:
        weighted: Count each row by 1 / mean-square of its state y, so that the loss is a relative error.
    """

    def __init__(self, *, weighted: bool) -> None:
        self.weighted = weighted
        self.power = 0.0
        self._folds: dict[int, Moments] = {}

    def add(self, fold: Tensor, regressors: Tensor, target: Tensor, state: Tensor) -> None:
        """Take in rows: folds [N], Z [N, K], D [N, C], and the states y [N, C] that weights come from."""
        regressors, target, state = exact(regressors), exact(target), exact(state)
        power = state.square().sum(-1)
        weight = state.shape[-1] / power if self.weighted else torch.ones_like(power)
        self.power += float((power * weight).sum())
        for index in sorted(set(fold.tolist())):
            take = (fold == index).to(state.device)
            part = Moments.of(regressors[take], target[take], weight[take])
            self._folds[index] = self._folds[index] + part if index in self._folds else part

    def solve(self, setting: str, *, centre: bool) -> Solution:
        """Fit; regressors of different kinds are brought to unit scale before the ridge is applied.

        Args:
            setting: As in :class:`~ghostlab.spec.RecoverySpec`.
            centre: Whether an unpenalised bias is fitted along.
        """
        folds = list(self._folds.values())
        whole = total(folds)
        diagonal = (whole.centred() if centre else whole).gram.diagonal()
        unit = torch.where(diagonal > 0, diagonal, torch.ones_like(diagonal)).rsqrt()
        folds = [fold.scaled(unit) for fold in folds]
        whole = total(folds)
        seen = whole.centred() if centre else whole
        validations = 1 if len(unit) > WIDE else None
        ridge = choose_ridge(setting, folds, centre=centre, validations=validations)
        matrix = solve(seen.gram, seen.cross, ridge.added)
        bias = (whole.change - whole.x @ matrix) / whole.count if centre else torch.zeros_like(whole.change)
        left = 1 - max(ridge.curve) if ridge.curve else whole.residual(matrix, bias) / seen.total
        return Solution(unit[:, None] * matrix, bias, ridge.relative, left * seen.total / self.power)
