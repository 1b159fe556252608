"""Calibration data made of given states instead of a model's: for testing the maths of recoveries."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from ghostlab.calibration.moments import BlockMoments, Weighting
from ghostlab.cut import Block
from ghostlab.progress import SILENT
from ghostlab.recovery.data import FitData


class GivenData(FitData):
    """Block 1:2 with states ``before`` and ``after`` it, [windows, T, C], dealt to folds in order."""

    def __init__(self, before: Tensor, after: Tensor, *, folds: int = 2, batch: int = 3) -> None:
        count, length, width = before.shape
        self.block = Block(1, 2)
        self.patched = None
        self.weighting: Weighting = "none"
        self.progress = SILENT
        self.given = {1: before, 2: after}
        self.fold = torch.arange(count) * folds // count
        self.folds = folds
        self.batch = batch
        self.calib: Any = SimpleNamespace(tokens=count * length, windows=SimpleNamespace(fold=self.fold))
        self.width = width

    def moments(self, weighting: Weighting | None = None) -> BlockMoments:
        counted = weighting or self.weighting
        collected = BlockMoments.empty(self.block, self.folds, self.width, weighting=counted)
        for rows, states in self.batches({1, 2}):
            collected.add(states[1], states[2], self.fold[rows])
        return collected

    def batches(self, boundaries: Collection[int]) -> Iterator[tuple[slice, dict[int, Tensor]]]:
        for start in range(0, len(self.fold), self.batch):
            rows = slice(start, min(start + self.batch, len(self.fold)))
            yield rows, {b: self.given[b][rows] for b in boundaries}
