"""Hidden states at boundaries, kept in memory while they fit and in files beyond that.

A file holds the states of all windows at one boundary and takes its name only once it is whole, so that later
passes and other processes find it again. The folders that were used longest ago make room for new ones. Files
may be deleted at any time, and a disk may be full or read-only: caching stops then, and the run continues.
"""

from __future__ import annotations

import logging
import math
import os
import time
import uuid
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import torch
from torch import Tensor

from ghostlab.errors import ResultError
from ghostlab.storage import make_room

_DAY = 24 * 60 * 60
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Budget:
    """Bytes that hidden states may take in memory and, over all models and texts, in files of ``folder``."""

    memory: int = 768 << 20
    disk: int = 0
    folder: Path | None = None

    @property
    def total(self) -> int:
        """Bytes in all."""
        return self.memory + (self.disk if self.folder is not None else 0)


class StateFile:
    """The states [W, T, C] in a file, of which only the windows asked for are read.

    It is read and not mapped: another host may cut it short, and a mapping would then end the process. What
    was opened can be read to the end even if the file is deleted.
    """

    def __init__(self, file: FileIO, shape: tuple[int, int, int], dtype: torch.dtype) -> None:
        self._file = file
        self.shape = shape
        self.dtype = dtype

    def __getitem__(self, windows: slice | Tensor) -> Tensor:
        if isinstance(windows, Tensor):
            return torch.cat([self[index : index + 1] for index in windows.tolist()])
        start, stop, _ = windows.indices(self.shape[0])
        states = torch.empty(stop - start, *self.shape[1:], dtype=self.dtype)
        buffer = states.view(torch.uint8).numpy().data.cast("B")
        self._file.seek(start * (buffer.nbytes // max(stop - start, 1)))
        while buffer.nbytes:
            count = self._file.readinto(buffer)
            if not count:
                raise ResultError(f"'{self._file.name}' became shorter while it was read.", "Run again.")
            buffer = buffer[count:]
        return states

    def __del__(self) -> None:
        self._file.close()


class StateStore:
    """States of all windows at some boundaries.

    They are kept as the model made them. Only where the states of a float32 model at all boundaries exceed
    the budget, and ``rounded`` allows it, are they kept in bfloat16; :attr:`rounding` then says what that
    lost.

    Args:
        shape: ``(windows, length, width)``.
        depth: Number of blocks; there is one boundary more.
        dtype: Type that the model computes in.
        key: Names the model and the windows; files under it hold the same states whoever wrote them.
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
        whole = (depth + 1) * math.prod(shape) * dtype.itemsize
        self.dtype = torch.bfloat16 if rounded and whole > budget.total and dtype.itemsize > 2 else dtype
        self._exact = self.dtype == dtype
        self._whole: dict[int, Tensor] = {}
        self._growing: dict[int, Tensor] = {}
        self._folder: Path | None = None
        if budget.folder is not None and budget.disk >= self.size:
            self._folder = budget.folder / f"{key}-{str(self.dtype).removeprefix('torch.')}"
        self._disk = budget.disk
        self._parts: dict[int, FileIO] = {}
        self._lost, self._power = 0.0, 0.0

    @property
    def size(self) -> int:
        """Bytes of the states at one boundary."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def boundaries(self) -> set[int]:
        """Boundaries whose states of all windows are there."""
        return set(self._whole) | set(self._files())

    @property
    def rounding(self) -> float | None:
        """||x - rounded x|| / ||x|| over all states taken in, or ``None`` where nothing is rounded."""
        if self._exact or not self._power:
            return None
        return math.sqrt(self._lost / self._power)

    def open(self) -> dict[int, Tensor | StateFile]:
        """States [W, T, C] by boundary, of every boundary that is there.

        Those in files may go at any time, so that a pass opens them once and reads from what it opened.
        """
        opened: dict[int, Tensor | StateFile] = {}
        for boundary, path in self._files().items():
            with suppress(OSError):  # deleted just now: not there
                opened[boundary] = StateFile(FileIO(path), self.shape, self.dtype)
        if self._folder:
            with suppress(OSError):  # a read-only folder can be read all the same
                os.utime(self._folder)  # used now: others make room first
        return opened | self._whole

    def begin(self, wanted: Collection[int], passed: Collection[int] = ()) -> set[int]:
        """Start to take in states; returns the boundaries that find room.

        Args:
            wanted: Boundaries asked for; they come first.
            passed: Boundaries computed along the way. They are taken with what room is left, evenly spread,
                for a later pass starts from the nearest one before it.
        """
        there = self.boundaries
        asked = sorted(set(wanted) - there, reverse=True)
        extra = sorted(
            set(passed) - there - set(asked), key=lambda boundary: (-(boundary & -boundary), boundary)
        )
        order = [*asked, *extra]
        room = max(self.budget.memory // self.size - len(self._whole), 0)
        self._growing = {b: torch.empty(self.shape, dtype=self.dtype) for b in order[:room]}
        self._begin_files(order[room:])
        return set(self._growing) | set(self._parts)

    def put(self, boundary: int, rows: slice, state: Tensor) -> None:
        """Take in the states [B, T, C] of windows ``rows``; batches come in the order of the windows."""
        kept = state.to("cpu", self.dtype)
        if not self._exact:
            whole = state.to("cpu", torch.float32)
            self._lost += float((whole - kept.float()).square().sum(dtype=torch.float64))
            self._power += float(whole.square().sum(dtype=torch.float64))
        if boundary in self._growing:
            self._growing[boundary][rows] = kept
        elif boundary in self._parts:
            try:
                self._parts[boundary].write(kept.contiguous().view(torch.uint8).numpy().data.cast("B"))
            except OSError as error:
                self._stop(error)

    def commit(self) -> None:
        """All windows were taken in: what has grown is kept from now on."""
        self._whole |= self._growing
        for boundary, part in self._parts.items():
            path = Path(str(part.name))
            try:
                if path.stat().st_size != self.size:
                    raise OSError(None, "its file was cut short")
                path.replace(path.with_name(f"{boundary}.states"))
            except OSError as error:  # deleted just now, or its name cannot be given
                _LOG.warning("hidden states at boundary %d are not kept: %s", boundary, error.strerror)
        self.end()

    def end(self) -> None:
        """Forget what has grown since :meth:`begin` and was not committed."""
        self._growing = {}
        self._drop_parts()

    def take(self, other: StateStore, windows: Tensor) -> None:
        """Keep what ``other`` has of some of its ``windows`` (indices), which are all windows here."""
        room = self.budget.memory // self.size
        opened = other.open()
        for boundary in sorted(opened, reverse=True)[:room]:
            self._whole[boundary] = opened[boundary][windows].to(self.dtype)

    def _files(self) -> dict[int, Path]:
        """The whole files that are there, by boundary."""
        files = {}
        for path in self._folder.glob("*.states") if self._folder else ():
            with suppress(OSError):  # deleted just now
                if path.stem.isdecimal() and path.stat().st_size == self.size:
                    files[int(path.stem)] = path
        return files

    def _begin_files(self, wanted: Collection[int]) -> None:
        """Start files for as many of the boundaries ``wanted`` as find room."""
        self._parts = {}
        there = len(self._files())
        chosen = list(wanted)[: max(self._disk // self.size - there, 0)]
        if self._folder is None or not chosen:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for part in self._folder.glob("*.part"):
                with suppress(OSError):  # deleted just now
                    if time.time() - part.stat().st_mtime > _DAY:  # its process ended while it wrote
                        part.unlink()
            others = (path for path in self._folder.parent.iterdir() if path != self._folder)
            make_room(others, self.size * (len(chosen) + there), self._disk)
            for boundary in chosen:
                part = self._folder / f"{boundary}.{uuid.uuid4().hex}.part"
                # appended to: what another process cuts short gets another length, not a hole
                self._parts[boundary] = part.open("ab", buffering=0)
        except OSError as error:
            self._stop(error)

    def _stop(self, error: OSError) -> None:
        """Keep nothing more in files."""
        _LOG.warning("hidden states are not kept in %s: %s", self._folder, error.strerror)
        self._disk = 0
        self._drop_parts()

    def _drop_parts(self) -> None:
        for part in self._parts.values():
            part.close()
            with suppress(OSError):  # a read-only folder, or another process has it open
                Path(str(part.name)).unlink(missing_ok=True)
        self._parts = {}
