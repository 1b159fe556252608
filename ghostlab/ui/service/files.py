"""Files of the visitors: texts and results that they upload, and those that are made for a download."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from ghostlab.config import FIELDS, RunConfig
from ghostlab.errors import ConfigError, GhostlabError, TextError
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings
from ghostlab.text import uploads
from ghostlab.text.corpora import PASTE, load_text

WANTED = "Open a result.json that Ghostlab wrote, or a JSON file with settings of a run."
KEPT = 600.0
"""Seconds that a download stays; gradio copies it, under a hash of its content, before it sends it."""


class Uploads:
    """The uploaded texts of one server, as many as it keeps; each serves the page that sent it alone."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._owners: dict[str, str] = {}
        self._lock = threading.Lock()

    def take(self, path: Path, owner: str) -> tuple[str, str]:
        """Take a text file over: the source that names it in a run of this owner, and a sentence on it.

        Raises:
            TextError: If it is too large, unreadable, or holds too little to be divided.
        """
        with self._lock:  # each makes room for itself: two at once would remove the same file
            source = uploads.keep(path, self.settings)
            try:
                text = load_text(source, settings=self.settings)
            except GhostlabError:
                uploads.find(source, self.settings).unlink()
                raise
            self._owners[source] = owner
            while len(self._owners) > uploads.KEPT:
                del self._owners[next(iter(self._owners))]
        noun = "document" if len(text.whole) == 1 else "documents"
        return source, f"{text.title}: {len(text.whole):,} {noun}, {text.whole.characters:,} characters."

    def check(self, config: RunConfig, owner: str) -> None:
        """Raise TextError if a configuration names a file that was uploaded on another page."""
        sources = (s for s in (config.text, config.held_out_text or "") if not s.startswith(PASTE))
        if any(self._owners.get(name) != owner for source in sources for name in uploads.uploads_in(source)):
            raise TextError("That file was uploaded on another page.", "Upload it here to use it.")


def read(data: bytes, most: int) -> RunConfig | RunResult:
    """The configuration or the result that a file holds; whether its figures can be drawn shows later.

    Raises:
        GhostlabError: If it has more than ``most`` bytes, is not JSON, damaged, or something else; in one
            sentence.
    """
    if len(data) > most:
        raise ConfigError(
            f"The file has {len(data) / 1e6:.1f} MB; this server reads up to {most / 1e6:.0f} MB.", WANTED
        )
    try:
        values = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError("The file is not readable JSON.", WANTED) from error
    if not isinstance(values, dict):
        raise ConfigError("The file holds no JSON object.", WANTED)
    if {"schema", "runs"} & values.keys():
        return RunResult.from_dict(values)
    if not FIELDS.keys() & values:
        raise ConfigError("The file holds neither a result nor settings of a run.", WANTED)
    return RunConfig.from_dict(values)


class Outbox:
    """A temporary folder with one folder per download, of a name that cannot be guessed.

    Old ones are swept whenever a new one is made; the rest goes when the process ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @cached_property
    def _root(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="ghostlab-", ignore_cleanup_errors=True)

    def make(self, write: Callable[[Path], Path]) -> Path:
        """What ``write`` returns, given an empty folder to write into."""
        with self._lock:
            root = Path(self._root.name)
            for old in root.iterdir():
                if time.time() - old.stat().st_mtime > KEPT:
                    shutil.rmtree(old, ignore_errors=True)
            folder = root / secrets.token_urlsafe(16)
            folder.mkdir(mode=0o700)
        return write(folder)
