"""What the app does, without a browser: start, generate, follow and look up runs. No gradio here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode

from ghostlab import checks
from ghostlab.config import PromptFormat, RunConfig, label_of
from ghostlab.errors import ConfigError, GhostlabError, ResultError
from ghostlab.jobs.record import JobView
from ghostlab.jobs.store import Job, JobStore
from ghostlab.lab.requests import AtlasRequest, GenerateRequest, RunRequest, Work
from ghostlab.results.atlas import Atlas, BlockScores, atlas_config, parse_lengths
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings
from ghostlab.ui.service import catalogue, handed
from ghostlab.ui.service.laboratory import Laboratory
from ghostlab.ui.service.uploads import OwnedTexts

EXAMPLE = Path(__file__).resolve().parents[3] / "assets" / "examples" / "default"
_LOG = logging.getLogger(__name__)

Loaded = TypeVar("Loaded")
Finding = RunResult | Atlas | BlockScores
"""What a job may result in."""
JobWork = Callable[[Job[Finding]], Finding]


class Service:
    """One per server. A job finds an :class:`Atlas`, a criterion's scores, or, most of them, a
    :class:`RunResult`.

    Args:
        settings: The host's limits.
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
        self.uploaded = OwnedTexts(settings)

    @property
    def lab(self) -> Laboratory:
        """The laboratory, made on first use."""
        if self._lab is None:
            catalogue.load()
            from ghostlab.lab.lab import Lab

            self._lab = Lab(self.settings)
        return self._lab

    def start(self, config: RunConfig, owner: str) -> str:
        """Queue a run and return its id.

        Raises:
            GhostlabError: If the configuration cannot work here or too many runs wait.
        """
        catalogue.check(config, self.settings)
        self.uploaded.check(config, owner)

        def work(job: Job[Finding]) -> Finding:
            return self.lab.call(RunRequest(config), listeners(job))

        return self.jobs.submit("run", config.key, work, owner, config.to_query())

    def generate(
        self,
        shown: str,
        *,
        prompt: str,
        prompt_format: PromptFormat,
        new_tokens: int,
        temperature: float,
        top_p: float,
        owner: str,
    ) -> str:
        """Queue the continuation of ``prompt`` by every variant of a shown result; return the job's id.

        A result without operators (the example) is run again first.

        Raises:
            GhostlabError: If the settings cannot work or the result is no longer here.
        """
        result = self.result(shown)
        config = replace(
            result.config,
            prompt=prompt,
            prompt_format=prompt_format,
            new_tokens=new_tokens,
            temperature=temperature,
            top_p=top_p,
        )
        if new_tokens < 1:
            raise ConfigError(
                f"'{label_of('new_tokens')}' is {new_tokens}.", "Generate at least 1 token.", "new_tokens"
            )
        if not result.operators:
            return self.start(config, owner)
        checks.check(config, self.settings)
        work = self._continue(replace(result, config=config, generations=[]))
        return self.jobs.submit("generate", f"{shown}:{config.key}", work, owner, config.to_query())

    def _continue(self, result: RunResult) -> JobWork:
        def work(job: Job[Finding]) -> Finding:
            job.keep(result)
            keep = lambda made: job.keep(replace(result, generations=made))  # noqa: E731
            texts = self.lab.call(GenerateRequest(result), replace(listeners(job), on_generations=keep))
            return replace(result, generations=list(texts))

        return work

    def survey(self, config: RunConfig, lengths: str, owner: str) -> str:
        """Queue an atlas of all blocks of ``lengths`` (``1-10``) and return the job's id.

        Raises:
            GhostlabError: If the request cannot work here or too many jobs wait.
        """
        asked, config = parse_lengths(lengths), atlas_config(config)
        checks.check(config, self.settings)
        self.uploaded.check(config, owner)

        def work(job: Job[Finding]) -> Finding:
            return self.lab.call(AtlasRequest(config, tuple(asked)), listeners(job))

        about = f"{config.to_query()}&{urlencode({'lengths': lengths})}"
        return self.jobs.submit("atlas", f"{config.key}:{asked}", work, owner, about)

    def result(self, shown: str) -> RunResult:
        """The result of a run; of the example for an empty id.

        Raises:
            ResultError: If there is none (any more), or the job was no run.
        """
        if not shown:
            if self.example is None:
                raise ResultError("There is no result yet.", "Press Run first.")
            return self.example
        view = self.jobs.view(shown)
        if view is None or view.result is None:
            raise ResultError(self.gone(shown), "Press Run to compute it again.")
        if not isinstance(view.result, RunResult):
            raise ResultError("That job is no run.", "Give the id of a run.")
        return view.result

    def gone(self, shown: str, what: str = "result") -> str:
        """Why there is no result of this id (any more)."""
        why = ": it made room for newer ones." if self.jobs.made_room(shown) else "."
        return f"That {what} is no longer on this server{why}"

    def atlas(self, shown: str) -> Atlas:
        """What a survey of blocks found; the example for an empty id.

        Raises:
            ResultError: If there is none (any more), or the job was no survey.
        """
        view = self.jobs.view(shown) if shown else None
        found = view.result if view else None if shown else self.example_atlas
        if not isinstance(found, Atlas):
            raise ResultError(self.gone(shown, "block map"), "Press Map the blocks again.")
        return found

    def find_atlas(self, shown: str) -> Atlas | None:
        """As :meth:`atlas`, but ``None`` if there is none."""
        try:
            return self.atlas(shown)
        except ResultError:
            return None

    def accept(self, data: bytes, owner: str = "") -> tuple[RunConfig, str]:
        """Take in an owner's file: its configuration, and the id of its result, empty if it holds none.

        Raises:
            GhostlabError: If it cannot be read; see :func:`ghostlab.ui.service.handed.read`.
        """
        found = handed.read(data, self.settings.limits.file_bytes)
        if isinstance(found, RunConfig):
            return found, ""
        return found.config, self.jobs.put("file", found, found.config.to_query(), owner)

    def find(self, shown: str) -> RunResult | None:
        """As :meth:`result`, but ``None`` if there is none."""
        try:
            return self.result(shown)
        except ResultError:
            return None

    def follow(self, job_id: str) -> Iterator[JobView[Finding]]:
        """Views of a job until it is finished; see :meth:`JobStore.follow`."""
        return self.jobs.follow(job_id)

    def cancel(self, job_id: str) -> None:
        """Stop a job; harmless at any time."""
        self.jobs.cancel(job_id)


def listeners(job: Job[Finding]) -> Work:
    """A job as the laboratory sees it."""
    return Work(job.progress, job.cancel, on_result=job.keep, on_text=job.text)


def _load(load: Callable[[Path], Loaded], path: Path) -> Loaded | None:
    """The example at ``path``, if there is one that can be read."""
    if not path.exists():
        return None
    try:
        return load(path)
    except GhostlabError:
        _LOG.exception("the example in assets is unreadable")
        return None
