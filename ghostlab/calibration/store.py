"""Hidden states at boundaries, kept in memory while they fit and in files beyond that."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ghostlab.calibration.state_files import StateFiles


@dataclass(frozen=True)
class Budget:
    """What hidden states may take.

    Attributes:
        memory: Bytes of main memory.
        disk: Bytes of files, over all models and texts together.
        folder: Where files go; ``None`` for no files.
    """

    memory: int = 768 << 20
    disk: int = 0
    folder: Path | None = None

    @property
    def total(self) -> int:
        """Bytes in all."""
        return self.memory + (self.disk if self.folder is not None else 0)


class StateStore:
    """States of all windows at some boundaries.

    They are kept as the model made them. Only where the states of a float32 model at all boundaries exceed
    the budget, and ``rounded`` allows it, are they kept in bfloat16; :attr:`rounding` then says what that
    lost.

    Args:
        shape: ``(windows, length, width)``.
        depth: Number of blocks; there is one boundary more.
        dtype: Type that the model computes in.
        budget: What may be taken.
        key: Names the model and the windows; files under it hold the same states whoever wrote them.
        rounded: Whether states may be rounded to fit.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        depth: int,
        dtype: torch.dtype,
        budget: Budget,
        key: str,
        *,
        rounded: bool = True,
    ) -> None:
        self.shape = shape
        self.budget = budget
        whole = (depth + 1) * shape[0] * shape[1] * shape[2] * dtype.itemsize
        self.dtype = torch.bfloat16 if rounded and whole > budget.total and dtype.itemsize > 2 else dtype
        self._exact = self.dtype == dtype
        self._whole: dict[int, Tensor] = {}
        self._growing: dict[int, Tensor] = {}
        self._files = None
        if budget.folder is not None and budget.disk >= self.size:
            name = f"{key}-{str(self.dtype).removeprefix('torch.')}"
            self._files = StateFiles(budget.folder, name, shape, self.dtype, budget.disk)
        self._lost, self._power = 0.0, 0.0

    @property
    def size(self) -> int:
        """Bytes of the states at one boundary."""
        return self.shape[0] * self.shape[1] * self.shape[2] * self.dtype.itemsize

    @property
    def boundaries(self) -> set[int]:
        """Boundaries whose states of all windows are there."""
        return set(self._whole) | (self._files.boundaries if self._files else set())

    @property
    def rounding(self) -> float | None:
        """||x - rounded x|| / ||x|| over all states taken in, or ``None`` where nothing is rounded."""
        if self._exact or not self._power:
            return None
        return math.sqrt(self._lost / self._power)

    def open(self) -> dict[int, Tensor]:
        """States [W, T, C] by boundary, of every boundary that is there.

        Those in files may go at any time, so that a pass opens them once and reads from what it opened.
        """
        return (self._files.open() if self._files else {}) | self._whole

    def begin(self, wanted: Collection[int], passed: Collection[int] = ()) -> set[int]:
        """Start to take in states; returns the boundaries that find room.

        Args:
            wanted: Boundaries asked for; they come first.
            passed: Boundaries that the pass comes by anyway. They are taken with what room is left, evenly
                spread, for a later pass starts from the nearest one before it.
        """
        there = self.boundaries
        asked = sorted(set(wanted) - there, reverse=True)
        extra = sorted(
            set(passed) - there - set(asked), key=lambda boundary: (-(boundary & -boundary), boundary)
        )
        order = [*asked, *extra]
        room = max(self.budget.memory // self.size - len(self._whole), 0)
        self._growing = {b: torch.empty(self.shape, dtype=self.dtype) for b in order[:room]}
        spilled = set(self._files.begin(order[room:])) if self._files else set()
        return set(self._growing) | spilled

    def put(self, boundary: int, rows: slice, state: Tensor) -> None:
        """Take in the states [B, T, C] of windows ``rows``."""
        kept = state.to("cpu", self.dtype)
        if not self._exact:
            whole = state.to("cpu", torch.float32)
            self._lost += float((whole - kept.float()).square().sum(dtype=torch.float64))
            self._power += float(whole.square().sum(dtype=torch.float64))
        if boundary in self._growing:
            self._growing[boundary][rows] = kept
        else:
            assert self._files is not None
            self._files.write(boundary, rows.start, kept)

    def commit(self) -> None:
        """All windows were taken in; a pass that ends early never gets here and leaves nothing."""
        self._whole |= self._growing
        self._growing = {}
        if self._files:
            self._files.commit()

    def take(self, other: StateStore, windows: Tensor) -> None:
        """Keep what ``other`` has of some of its ``windows`` (indices), which are all windows here."""
        room = self.budget.memory // self.size
        for boundary, states in sorted(other.open().items(), reverse=True)[:room]:
            self._whole[boundary] = states[windows].to(self.dtype)
