"""Files that are made when somebody asks for them, and do not stay."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

KEPT = 600.0
"""Seconds; gradio copies a file into its own cache, under a hash of its content, before it sends it."""


class Outbox:
    """A temporary folder with one folder per file, of a name that cannot be guessed.

    Old ones are swept whenever a new one is made; the rest goes when the process ends.

    Args:
        kept: Seconds that a file stays at least.
    """

    def __init__(self, kept: float = KEPT) -> None:
        self._kept = kept
        self._root: tempfile.TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()

    def make(self, write: Callable[[Path], Path]) -> Path:
        """What ``write`` returns, given an empty folder to write into."""
        with self._lock:
            if self._root is None:
                self._root = tempfile.TemporaryDirectory(prefix="ghostlab-", ignore_cleanup_errors=True)
            root = Path(self._root.name)
            self._sweep(root)
            folder = root / secrets.token_urlsafe(16)
            folder.mkdir(mode=0o700)
        return write(folder)

    def _sweep(self, root: Path) -> None:
        for folder in root.iterdir():
            if time.time() - folder.stat().st_mtime > self._kept:
                shutil.rmtree(folder, ignore_errors=True)
