"""Text files handed over through the app: kept in the cache for a day, each found only by its secret name."""

from __future__ import annotations

import re
import secrets
import shutil
import time
from pathlib import Path

from ghostlab.errors import TextError
from ghostlab.settings import Settings
from ghostlab.text.files import SUFFIXES

UPLOAD = "upload:"
KEPT = 64
"""Files; the oldest makes room for the next."""
KEPT_SECONDS = 86_400
_SOURCE = re.compile(r"upload:([\w.() -]{1,100})/([\w-]{22})", re.ASCII)
_STRANGE = re.compile(r"[^\w.() -]", re.ASCII)


def uploads_in(source: str) -> list[str]:
    """The uploaded files that a text source names, alone or in a mixture."""
    return [match.group() for match in _SOURCE.finditer(source)]


def suffixes(settings: Settings) -> tuple[str, ...]:
    """Kinds of file that this host takes: on a public one none that unpacks to more than was sent."""
    return SUFFIXES if settings.profile == "local" else tuple(s for s in SUFFIXES if s != ".parquet")


def keep(path: Path, settings: Settings) -> str:
    """Move an uploaded file into the cache and return its source, ``upload:NAME/SECRET``.

    Raises:
        TextError: If it is too large or of a kind that is not read here.
    """
    kinds, limit = suffixes(settings), settings.limits.upload_bytes
    if path.suffix.lower() not in kinds:
        raise TextError(f"{path.name} is not a supported kind of text file.", f"Use {', '.join(kinds)}.")
    if path.stat().st_size > limit:
        raise TextError(
            f"{path.name} is too large for this host.", f"Upload at most {limit / 1e6:g} MB of text."
        )
    _make_room(settings)
    secret = secrets.token_urlsafe(16)
    name = _STRANGE.sub("_", path.name[-100:])
    folder = _store(settings) / secret
    folder.mkdir(parents=True)
    shutil.move(path, folder / name)
    return f"{UPLOAD}{name}/{secret}"


def find(source: str, settings: Settings) -> Path:
    """The file of a source that :func:`keep` returned.

    Raises:
        TextError: If it is not here, or no longer.
    """
    match = _SOURCE.fullmatch(source)
    path = _store(settings) / match[2] / match[1] if match else None
    if path is None or not path.is_file():
        raise TextError(
            f"'{source[:60]}' was not found; uploads are kept for a day.",
            "Upload the file again, or name it by its path.",
        )
    return path


def _store(settings: Settings) -> Path:
    return settings.cache / "uploads"


def _make_room(settings: Settings) -> None:
    """Forget files that are older than a day, and the oldest of too many."""
    folders = sorted(_store(settings).glob("*"), key=_age, reverse=True)
    spare = len(folders) + 1 - KEPT
    for order, folder in enumerate(folders):
        if order < spare or _age(folder) > KEPT_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def _age(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except OSError:  # another request has just removed it
        return 0.0
