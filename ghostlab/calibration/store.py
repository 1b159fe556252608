"""Hidden states at every boundary, kept in memory while they fit: later blocks then need no pass at all."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor


class StateStore:
    """States of ``sequences`` windows at boundaries 0 .. depth, float32 on the CPU.

    Args:
        depth: L.
        shape: ``(sequences, length, width)``.
    """

    def __init__(self, depth: int, shape: tuple[int, int, int]) -> None:
        self.states = torch.empty(depth + 1, *shape, dtype=torch.float32)

    @staticmethod
    def bytes_needed(depth: int, shape: tuple[int, int, int]) -> int:
        """What a store of this size takes."""
        sequences, length, width = shape
        return 4 * (depth + 1) * sequences * length * width

    def put(self, rows: slice, states: dict[int, Tensor]) -> None:
        """Keep the states [B, T, C] of windows ``rows`` at all boundaries."""
        for boundary, state in states.items():
            self.states[boundary, rows] = state

    def pairs(self, start: int, stop: int, batch: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Windows, and their states [B, T, C] at two boundaries, batch by batch."""
        for first in range(0, self.states.shape[1], batch):
            rows = slice(first, first + batch)
            yield rows, self.states[start, rows], self.states[stop, rows]
