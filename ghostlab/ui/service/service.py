"""What the app holds, without a browser: the laboratory, the jobs and what they found, the examples."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ghostlab.config import RunConfig
from ghostlab.errors import GhostlabError, ResultError
from ghostlab.jobs.record import JobView
from ghostlab.jobs.store import JobStore
from ghostlab.results.atlas import Atlas, BlockScores
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings
from ghostlab.ui.service import laboratory
from ghostlab.ui.service.files import Uploads, read
from ghostlab.ui.service.laboratory import Laboratory

EXAMPLE = Path(__file__).resolve().parents[3] / "assets" / "examples" / "default"
_LOG = logging.getLogger(__name__)

Loaded = TypeVar("Loaded")
Kind = TypeVar("Kind", RunResult, Atlas, BlockScores)
Finding = RunResult | Atlas | BlockScores
"""What a job may result in."""
View = JobView[Finding]


class Service:
    """One per server.

    Args:
        lab: Where runs are computed; ``None`` makes a :class:`ghostlab.lab.lab.Lab` on first use, in the
            job's thread, so that the page never waits for torch.
        example: Folder of the finished run and the atlas that are shown before the first ones.
    """

    def __init__(self, settings: Settings, lab: Laboratory | None = None, example: Path = EXAMPLE) -> None:
        self.settings = settings
        self._lab = lab
        limits = settings.limits
        self.jobs: JobStore[Finding] = JobStore(
            limits.waiting_jobs,
            limits.kept_results,
            limits.kept_bytes,
            lambda found: found.weight(),
            each=limits.waiting_each,
            seconds=limits.job_seconds,
        )
        self.example = _load(RunResult.load, example)
        self.example_atlas = _load(Atlas.load, example / "atlas.json")
        self.uploads = Uploads(settings)

    @property
    def lab(self) -> Laboratory:
        """The laboratory, made on first use."""
        if self._lab is None:
            self._lab = laboratory.real(self.settings)
        return self._lab

    def result(self, shown: str) -> RunResult:
        """The result of a run; of the example for an empty id.

        Raises:
            ResultError: If there is none (any more), or the job was no run.
        """
        found = self.find(shown, RunResult)
        if found is not None:
            return found
        if not shown:
            raise ResultError("There is no result yet.", "Press Run first.")
        view = self.jobs.view(shown)
        if view is None or view.result is None:
            raise ResultError(self.gone(shown), "Press Run to compute it again.")
        raise ResultError("That job is no run.", "Give the id of a run.")

    def gone(self, shown: str, what: str = "result") -> str:
        """Why there is no result of this id (any more)."""
        why = ": it made room for newer ones." if self.jobs.made_room(shown) else "."
        return f"That {what} is no longer on this server{why}"

    def atlas(self, shown: str) -> Atlas:
        """An atlas; the example for an empty id.

        Raises:
            ResultError: If there is none (any more), or the job was of another kind.
        """
        found = self.find(shown, Atlas)
        if found is None:
            raise ResultError(self.gone(shown, "atlas"), "Press Compute atlas again.")
        return found

    def find(self, job_id: str, kind: type[Kind]) -> Kind | None:
        """What a job found, or the example for an empty id; ``None`` if that is gone or of another kind."""
        view = self.jobs.view(job_id) if job_id else None
        examples = [] if job_id else [self.example, self.example_atlas]
        candidates = examples if view is None else [view.result]
        return next((found for found in candidates if isinstance(found, kind)), None)

    def open_file(self, data: bytes, owner: str = "") -> tuple[RunConfig, str]:
        """Take in an owner's file: its configuration, and the id of its result, empty if it holds none.

        Raises as :func:`ghostlab.ui.service.files.read`.
        """
        found = read(data, self.settings.limits.file_bytes)
        if isinstance(found, RunConfig):
            return found, ""
        return found.config, self.jobs.put("file", found, found.config.to_query(), owner)


def _load(load: Callable[[Path], Loaded], path: Path) -> Loaded | None:
    """The example at ``path``, if there is one that can be read."""
    if not path.exists():
        return None
    try:
        return load(path)
    except GhostlabError:
        _LOG.exception("the example in assets is unreadable")
        return None
