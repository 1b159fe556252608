"""A visitor's list of runs for the Compare tab, as the browser keeps it: ids and names, never results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ghostlab.errors import ConfigError

MOST = 40
"""Runs in the list of one visitor; the oldest gives way."""
_LONGEST_NAME = 24
_MARKUP = str.maketrans(dict.fromkeys("<>&`*[]|\\$"))
"""Signs that sentences and figures would take for markup."""


@dataclass(frozen=True)
class Entry:
    """A run in the list: its id, what the visitor calls it, and the query of its configuration."""

    id: str
    name: str
    query: str = ""


def entries(stored: Any) -> list[Entry]:
    """The list as a browser keeps it; what is no entry is left out, for browsers send what they like."""
    read = [_entry(item) for item in stored if isinstance(item, dict)] if isinstance(stored, list) else []
    return list({entry.id: entry for entry in read if entry is not None}.values())[-MOST:]


def _entry(item: dict[Any, Any]) -> Entry | None:
    job_id, name, query = (item.get(key) for key in ("id", "name", "query"))
    if isinstance(job_id, str) and isinstance(name, str) and isinstance(query, str):
        return Entry(job_id, plain(name), query)
    return None


def plain(name: str) -> str:
    """A name that neither sentences nor figures take for markup, and that is not too long."""
    return " ".join(name.translate(_MARKUP).split())[:_LONGEST_NAME].strip()


def to_store(runs: list[Entry]) -> list[dict[str, str]]:
    """The list as JSON values."""
    return [{"id": run.id, "name": run.name, "query": run.query} for run in runs]


def named(runs: list[Entry], name: str | None) -> Entry:
    """The run of this name.

    Raises:
        ConfigError: If there is none.
    """
    for run in runs:
        if run.name == name:
            return run
    raise ConfigError("No run is chosen.", "Choose one of the list.")
