"""Files of hidden states, one per boundary, found again by later passes and other processes.

A file is written under another name and takes its own only once it is whole. The folders that were used
longest ago make room for new ones.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import psutil
import torch
from torch import Tensor

_SUFFIX = ".states"
_PART = ".part"
_LOG = logging.getLogger(__name__)


class StateFiles:
    """Files of one model on one set of windows.

    Args:
        root: Folder that all models and windows share.
        name: Folder of these; whoever writes there writes the same.
        shape: ``(windows, length, width)``.
        dtype: Type of the stored states.
        budget: The most bytes under ``root``.
    """

    def __init__(
        self, root: Path, name: str, shape: tuple[int, int, int], dtype: torch.dtype, budget: int
    ) -> None:
        self.folder = root / name
        self.shape = shape
        self.dtype = dtype
        self.budget = budget
        self._count = shape[0] * shape[1] * shape[2]
        self._growing: set[int] = set()

    @property
    def boundaries(self) -> set[int]:
        """Boundaries whose file is there and whole."""
        found = set()
        for path in self.folder.glob(f"*{_SUFFIX}"):
            if path.stem.isdecimal() and path.stat().st_size == self._count * self.dtype.itemsize:
                found.add(int(path.stem))
        return found

    def read(self, boundary: int) -> Tensor:
        """All states of a boundary, [W, T, C], mapped from the file: only what is looked at is read."""
        path = self._path(boundary)
        os.utime(self.folder)  # used now: others make room first
        return torch.from_file(str(path), shared=False, size=self._count, dtype=self.dtype).reshape(
            self.shape
        )

    def begin(self, wanted: Collection[int]) -> list[int]:
        """Start files for as many of the boundaries ``wanted`` as find room."""
        self._drop_parts()
        size = self._count * self.dtype.itemsize
        most = self.budget // size - len(self.boundaries)
        chosen = list(wanted)[: max(most, 0)]
        if chosen:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._make_room(size * (len(chosen) + len(self.boundaries)))
            self._growing = set(chosen)
        return chosen

    def write(self, boundary: int, first: int, states: Tensor) -> None:
        """Write the states [B, T, C] of windows ``first .. first + B - 1``, if the boundary found room.

        A disk that is full ends the keeping, not the run.
        """
        if boundary not in self._growing:
            return
        part = self._part(boundary)
        bits = states.contiguous().view(torch.uint8).numpy()
        try:
            with part.open("r+b" if part.exists() else "w+b") as file:
                file.seek(first * self.shape[1] * self.shape[2] * self.dtype.itemsize)
                file.write(bits.data)
        except OSError as error:
            _LOG.warning("hidden states are not kept in %s: %s", self.folder, error.strerror)
            self._drop_parts()
            self.budget = 0

    def commit(self) -> None:
        """Give the files written since :meth:`begin` their names."""
        for boundary in self._growing:
            self._part(boundary).replace(self._path(boundary))
        self._growing = set()

    def _path(self, boundary: int) -> Path:
        return self.folder / f"{boundary}{_SUFFIX}"

    def _part(self, boundary: int) -> Path:
        return self.folder / f"{boundary}.{os.getpid()}.{id(self)}{_PART}"

    def _drop_parts(self) -> None:
        """Delete what an interrupted pass of this process, or a process that died, began to write."""
        for path in self.folder.glob(f"*{_PART}"):
            _, process, owner, _ = path.name.split(".")
            if int(owner) == id(self) or not psutil.pid_exists(int(process)):
                path.unlink(missing_ok=True)
        self._growing = set()

    def _make_room(self, needed: int) -> None:
        """Delete the folders used longest ago until ``needed`` fits."""
        others = sorted(_folders(self.folder.parent, but=self.folder), key=lambda path: path.stat().st_mtime)
        sizes = {path: _bytes(path) for path in others}
        left = sum(sizes.values())
        for path in others:
            if left + needed <= self.budget:
                return
            left -= sizes[path]
            with contextlib.suppress(OSError):  # another process deletes it too, or has it open
                shutil.rmtree(path)


def _folders(root: Path, *, but: Path) -> Iterator[Path]:
    return (path for path in root.iterdir() if path.is_dir() and path != but)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
