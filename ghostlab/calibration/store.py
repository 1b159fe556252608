"""Hidden states at boundaries, kept in memory while they fit: what was computed once is read from here."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor


class StateStore:
    """States of all windows at some boundaries, float32 on the CPU.

    Args:
        shape: ``(windows, length, width)``.
        budget: The most bytes to keep.
    """

    def __init__(self, shape: tuple[int, int, int], budget: int) -> None:
        self.shape = shape
        self.budget = budget
        self._whole: dict[int, Tensor] = {}
        self._growing: dict[int, Tensor] = {}

    @property
    def boundaries(self) -> set[int]:
        """Boundaries whose states of all windows are there."""
        return set(self._whole)

    def get(self, boundary: int, rows: slice) -> Tensor:
        """States [B, T, C] of some windows at a boundary that is there."""
        return self._whole[boundary][rows]

    def begin(self, wanted: Collection[int]) -> set[int]:
        """Start to take in states; returns those of ``wanted`` that are not there but find room."""
        size = 4 * self.shape[0] * self.shape[1] * self.shape[2]
        room = self.budget // size - len(self._whole)
        chosen = sorted(set(wanted) - self.boundaries, reverse=True)[: max(room, 0)]
        self._growing = {boundary: torch.empty(self.shape, dtype=torch.float32) for boundary in chosen}
        return set(chosen)

    def put(self, boundary: int, rows: slice, state: Tensor) -> None:
        """Take in the states [B, T, C] of windows ``rows``."""
        self._growing[boundary][rows] = state

    def commit(self) -> None:
        """All windows were taken in; a pass that ends early never gets here and leaves nothing."""
        self._whole |= self._growing
        self._growing = {}
