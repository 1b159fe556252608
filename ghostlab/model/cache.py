"""Converted models on disk: written whole or not at all, and trusted only while they are unchanged.

Each entry is a folder with a manifest that holds size, time and SHA-256 of every file. Size and time are
compared on each use; a file whose time changed is hashed again, a file that differs makes the entry void.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ghostlab.errors import ModelError
from ghostlab.progress import Progress
from ghostlab.storage import file_sha256, read_json, write_text

MANIFEST = "ghostlab.json"
FORMAT = 1


def remembered_sha256(path: Path, memo: Path) -> str:
    """SHA-256 of ``path``, read from the JSON file ``memo`` while size and time of the file are as then."""
    key, status = str(path.resolve()), path.stat()
    known = read_json(memo) or {}
    entry = known.get(key)
    if isinstance(entry, dict) and [entry.get("size"), entry.get("mtime_ns")] == _stamp(status):
        return str(entry["sha256"])
    size, mtime_ns = _stamp(status)
    digest = file_sha256(path)
    with suppress(OSError):  # a shortcut only; a cache that cannot be written is reported by build_entry
        write_text(
            memo, json.dumps({**known, key: {"size": size, "mtime_ns": mtime_ns, "sha256": digest}}, indent=1)
        )
    return digest


def read_entry(folder: Path) -> dict[str, Any] | None:
    """The notes kept with a cached model; ``None`` when it is absent, damaged or of an old format."""
    manifest = read_json(folder / MANIFEST) or {}
    if manifest.get("format") != FORMAT:
        return None
    changed = False
    for name, entry in manifest["files"].items():
        try:
            size, mtime_ns = _stamp((folder / name).stat())
        except OSError:
            return None
        if size != entry["size"]:
            return None
        if mtime_ns != entry["mtime_ns"]:
            if file_sha256(folder / name) != entry["sha256"]:
                return None
            entry["mtime_ns"], changed = mtime_ns, True
    if changed:
        with suppress(OSError):  # a read-only cache is hashed on each use
            write_text(folder / MANIFEST, json.dumps(manifest, indent=1))
    return dict(manifest["notes"])


def build_entry(folder: Path, build: Callable[[Path], dict[str, Any]], progress: Progress) -> dict[str, Any]:
    """The notes of the entry ``folder``; ``build`` fills it first if it is absent or damaged.

    Safe against a crash (work happens in a partial folder that is renamed at the end) and against a second
    process (the later one waits for the lock and finds the work done).

    Raises:
        ModelError: If the cache folder cannot be written.
    """
    notes = read_entry(folder)
    if notes is not None:
        return notes
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.with_name(f"{folder.name}.lock"), progress):
            return read_entry(folder) or _build(folder, build)
    except OSError as error:
        raise ModelError(
            f"The converted model cannot be kept in {folder.parent}: {error.strerror or error}.",
            "Make the folder writable, or set GHOSTLAB_CACHE to one that is.",
        ) from error


def _build(folder: Path, build: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # left by a crash; the lock says that nobody works on it
    partial.mkdir()
    try:
        notes = build(partial)
        files = {path.name: _describe(path) for path in sorted(partial.iterdir())}
        write_text(
            partial / MANIFEST, json.dumps({"format": FORMAT, "notes": notes, "files": files}, indent=1)
        )
        shutil.rmtree(folder, ignore_errors=True)
        partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return notes


def _describe(path: Path) -> dict[str, Any]:
    size, mtime_ns = _stamp(path.stat())
    return {"size": size, "mtime_ns": mtime_ns, "sha256": file_sha256(path)}


def _stamp(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns]


@contextmanager
def _locked(path: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock file; while another process has it, wait but obey a stop."""
    lock = FileLock(path)
    while True:
        try:
            lock.acquire(timeout=0.5)
            break
        except Timeout:
            progress.at(0.0, "Another process is converting this model; waiting for it")
    try:
        yield
    finally:
        lock.release()
