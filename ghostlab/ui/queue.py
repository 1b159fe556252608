"""The jobs of one page: those that wait, the one that computes, and the runs that are finished.

The browser keeps their ids, and which of them the page has already shown. A page that is reloaded shows those
that ended meanwhile, one after the other, so that Compare misses none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ghostlab.config import FIELDS, RunConfig
from ghostlab.errors import GhostlabError
from ghostlab.jobs.store import JobStore
from ghostlab.results.run import RunResult
from ghostlab.ui import html
from ghostlab.ui.address import LONGEST
from ghostlab.ui.service.service import Finding, View

MOST = 100
"""Ids that a browser keeps: more than a server remembers jobs."""
SHOWN = 5
"""Finished runs in the list; earlier ones are in the Compare tab."""
PAUSE = 1.0
"""Seconds on one finished job before the page goes on: its figures must have arrived."""
_KINDS = {
    "generate": "Texts",
    "atlas": "Atlas",
    "probe": "Altered map",
    "tasks": "Zero-shot tasks",
    "scores": "Scores of layers",
}
_IN_FRONT = ("drop", "select", "count", "recover")


class Queue:
    """What a page knows about its jobs while it follows one of them.

    Args:
        stored: What the browser kept.
        owner: The page; what it has queued since belongs to the list.
    """

    def __init__(self, jobs: JobStore[Finding], stored: Any, owner: str) -> None:
        self._jobs = jobs
        self._owner = owner
        self._seen = _read(stored)
        self.views: list[View] = []
        self.look()

    def look(self, followed: View | None = None) -> None:
        """Read how all of them are; a job that was followed to its end has been shown."""
        self.views = self._jobs.listed(self._seen, self._owner)
        ended = followed.id if followed is not None and followed.finished else ""
        self._seen = {
            view.id: self._seen.get(view.id, False) or view.id == ended or _nothing_to_see(view)
            for view in self.views
        }

    def coming(self, followed: str = "") -> View | None:
        """The first job after the followed one that the page has not shown yet, if there is one."""
        ids = [view.id for view in self.views]
        after = ids.index(followed) + 1 if followed in ids else 0
        return next((view for view in self.views[after:] if not self._seen[view.id]), None)

    def stored(self) -> list[dict[str, Any]]:
        """What the browser is to keep."""
        return [{"id": name, "seen": seen} for name, seen in list(self._seen.items())[-MOST:]]

    def html(self, followed: View | None) -> str:
        """The list; empty while the progress line, which tells of the followed job, says all there is."""
        runs = [view for view in self.views if view.finished and view.kind == "run"]
        ended = [view for view in runs if not _nothing_to_see(view)][-SHOWN:]
        rows = [view for view in self.views if view in ended or not view.finished]
        if len(rows) < 2 and all(followed is not None and view.id == followed.id for view in rows):
            return ""
        return html.piece("queue", list(map(_row, rows, _words(rows))))


def _read(stored: Any) -> dict[str, bool]:
    """Ids, and whether each was shown; anything else is left out, for browsers send what they like."""
    items = [item for item in stored if isinstance(item, dict)] if isinstance(stored, list) else []
    return {item["id"]: item.get("seen") is True for item in items[-MOST:] if isinstance(item.get("id"), str)}


def _nothing_to_see(view: View) -> bool:
    return view.finished and view.result is None and not view.error


def _row(view: View, about: str) -> dict[str, str]:
    """What the template takes; ``act`` is what the button does, empty for no button."""
    act = ""
    if not view.finished:
        act = "" if view.stopping else "stop"
    elif isinstance(view.result, RunResult):
        act = "open"
    return {"job": view.id, "state": view.state, "status": _status(view), "about": about, "act": act}


def _status(view: View) -> str:
    """How a job is, in a word or two that do not change with every step."""
    if view.state == "waiting":
        return "Next" if view.position == 1 else f"Number {view.position} in line"
    if view.state == "running":
        return "Stopping" if view.stopping else "Computing"
    if view.state == "done":
        return f"Done in {html.duration(view.elapsed)}"
    return view.state.capitalize()


def _words(views: Sequence[View]) -> list[str]:
    """What each is: its blocks, its recoveries, and the settings in which not all are alike."""
    configs = [_config(view) for view in views]
    known = [config for config in configs if config is not None]
    varied = [
        name
        for name in FIELDS
        if name not in _IN_FRONT and len({getattr(config, name) for config in known}) > 1
    ]
    return [_described(view, config, varied) for view, config in zip(views, configs, strict=True)]


def _described(view: View, config: RunConfig | None, varied: Sequence[str]) -> str:
    kind = _KINDS.get(view.kind, "")
    if config is None:
        return kind or "A run on pasted text"
    cut = f"{config.count} layers by {config.select}" if config.select else f"layers {config.drop}"
    recoveries = ", ".join(map(str, config.recover)) or "no recovery"
    front = {"run": [cut, recoveries], "atlas": [], "scores": []}.get(view.kind, [cut])
    settings = [f"{FIELDS[name].label} {_short(getattr(config, name))}" for name in varied]
    return " \N{MIDDLE DOT} ".join(filter(None, [kind, *front, *settings]))


def _short(value: Any) -> str:
    text = "none" if value in (None, "") else str(value)
    return text if len(text) <= 40 else f"{text[:39]}\N{HORIZONTAL ELLIPSIS}"


def _config(view: View) -> RunConfig | None:
    """The configuration of a job; ``None`` where it is too long to be read at every step."""
    try:
        return RunConfig.from_query(view.about) if len(view.about) < LONGEST else None
    except GhostlabError:
        return None
