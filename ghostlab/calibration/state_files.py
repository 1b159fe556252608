"""Files of hidden states, one per boundary, found again by later passes and other processes.

A file is written under another name and takes its own only once it is whole. The folders that were used
longest ago make room for new ones. Other processes, on other hosts too, may delete any file at any time, and
a disk may be full or read-only: that ends the keeping, never the run.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import platform
import shutil
import time
import uuid
from collections.abc import Collection
from pathlib import Path

import psutil
import torch
from torch import Tensor

_SUFFIX = ".states"
_PART = ".part"
_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:12]
_DAY = 24 * 60 * 60
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
        self._size = self._count * dtype.itemsize
        self._token = uuid.uuid4().hex
        self._growing: set[int] = set()

    @property
    def boundaries(self) -> set[int]:
        """Boundaries whose file is there and whole."""
        return {
            int(path.stem)
            for path in self.folder.glob(f"*{_SUFFIX}")
            if path.stem.isdecimal() and _bytes(path) == self._size
        }

    def open(self) -> dict[int, Tensor]:
        """All states [W, T, C] of each boundary that is there.

        They are mapped: only what is looked at is read, and what was opened can be read to the end even if
        its file is deleted.
        """
        with contextlib.suppress(OSError):  # a read-only folder can be read all the same
            os.utime(self.folder)  # used now: others make room first
        opened = {}
        for boundary in self.boundaries:
            with contextlib.suppress(OSError, RuntimeError):  # deleted just now: not there
                flat = torch.from_file(
                    str(self._path(boundary)), shared=False, size=self._count, dtype=self.dtype
                )
                opened[boundary] = flat.reshape(self.shape)
        return opened

    def begin(self, wanted: Collection[int]) -> list[int]:
        """Start files for as many of the boundaries ``wanted`` as find room."""
        self._drop_parts()
        there = len(self.boundaries)
        chosen = list(wanted)[: max(self.budget // self._size - there, 0)]
        if chosen:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._make_room(self._size * (len(chosen) + there))
            except OSError as error:
                self._end(error)
                return []
        self._growing = set(chosen)
        return chosen

    def write(self, boundary: int, first: int, states: Tensor) -> None:
        """Write the states [B, T, C] of windows ``first .. first + B - 1``, if the boundary found room.

        A pass comes by the windows in their order, so that each batch is put at the end of its file. A file
        that is not as long as this pass made it lost its front and is given up.
        """
        if boundary not in self._growing:
            return
        bits = states.contiguous().view(torch.uint8).numpy()
        expected = first * (self._size // self.shape[0])
        try:
            # only the first batch makes the file: a later one would leave a hole in front
            with self._part(boundary).open("r+b" if first else "wb") as file:
                whole = file.seek(0, os.SEEK_END) == expected
                if whole:
                    file.write(bits.data)
        except FileNotFoundError:
            whole = False
        except OSError as error:
            self._end(error)
            return
        if not whole:
            self._give_up(boundary)

    def commit(self) -> None:
        """Give the files written since :meth:`begin` their names."""
        for boundary in sorted(self._growing):
            part = self._part(boundary)
            try:
                if part.stat().st_size == self._size:
                    part.replace(self._path(boundary))
                    continue
            except OSError:
                pass  # deleted just now, or its name cannot be given
            self._give_up(boundary)
        self._growing = set()

    def _path(self, boundary: int) -> Path:
        return self.folder / f"{boundary}{_SUFFIX}"

    def _part(self, boundary: int) -> Path:
        return self.folder / f"{boundary}.{_HOST}.{os.getpid()}.{self._token}{_PART}"

    def _end(self, error: OSError) -> None:
        """Keep nothing more."""
        _LOG.warning("hidden states are not kept in %s: %s", self.folder, error.strerror)
        self._drop_parts()
        self.budget = 0

    def _give_up(self, boundary: int) -> None:
        _LOG.warning("hidden states at boundary %d are not kept: their file is gone or torn", boundary)
        self._growing.discard(boundary)
        _delete(self._part(boundary))

    def _drop_parts(self) -> None:
        """Delete what an interrupted pass of this object, or a process that died, began to write."""
        for path in self.folder.glob(f"*{_PART}"):
            if self._is_left_over(path):
                _delete(path)
        self._growing = set()

    def _is_left_over(self, part: Path) -> bool:
        _, *names = part.name.removesuffix(_PART).split(".")
        if names == [_HOST, str(os.getpid()), self._token]:
            return True
        seen = _stat(part)
        if seen is not None and time.time() - seen.st_mtime > _DAY:
            return True
        # processes of other hosts cannot be asked
        ours = len(names) == 3 and names[0] == _HOST and names[1].isdecimal()
        return ours and not psutil.pid_exists(int(names[1]))

    def _make_room(self, needed: int) -> None:
        """Delete the folders used longest ago until ``needed`` fits."""
        root = self.folder.parent
        found = {path: _stat(path) for path in root.iterdir() if path != self.folder and path.is_dir()}
        used = {path: seen.st_mtime for path, seen in found.items() if seen}
        sizes = {path: sum(map(_bytes, path.glob("*"))) for path in used}
        left = sum(sizes.values())
        for path in sorted(used, key=used.__getitem__):
            if left + needed <= self.budget:
                return
            left -= sizes[path]
            with contextlib.suppress(OSError):  # another process deletes it too, or has it open
                shutil.rmtree(path)


def _stat(path: Path) -> os.stat_result | None:
    """What the system knows of a file, or ``None`` where another process has just deleted it."""
    try:
        return path.stat()
    except OSError:
        return None


def _bytes(path: Path) -> int:
    seen = _stat(path)
    return seen.st_size if seen else 0


def _delete(path: Path) -> None:
    with contextlib.suppress(OSError):  # a read-only folder, or another process has it open
        path.unlink(missing_ok=True)
