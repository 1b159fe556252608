"""Jobs that let every variant of a shown result answer zero-shot tasks, without a browser. No gradio here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ghostlab.errors import ConfigError
from ghostlab.evaluation.tasks import ON_THE_HUB, SHIPPED, check_limit, require_harness
from ghostlab.jobs.store import Job
from ghostlab.lab.requests import EvaluateRequest
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import SUITES, parse_tasks
from ghostlab.ui.service.probe_jobs import RERUN, run_again
from ghostlab.ui.service.service import Finding, Service, listeners

OFFERED = [*SUITES, *sorted({**SHIPPED, **ON_THE_HUB})]
"""Suites and tasks that the app offers."""
MOST_QUESTIONS = 100_000
MOST_QUESTIONS_PUBLIC = 400
"""Questions of all tasks together that a job may ask."""


def ask(service: Service, shown: str, owner: str, *asked: Any) -> str:
    """:func:`queue_tasks`, given what stands in the tab's controls."""
    names, limit, hub = asked
    return queue_tasks(service, shown, names or [], limit, owner=owner, hub=hub)


def queue_tasks(
    service: Service, shown: str, names: Sequence[str], limit: float | None, *, owner: str, hub: bool = False
) -> str:
    """Queue zero-shot tasks for every variant of a shown result; return the job's id.

    A result without operators (the example) is run again first. The job's result is the shown one with the
    answers added to it. ``hub`` asks for the papers' splits, from the hub.

    Raises:
        GhostlabError: If it cannot work or the result is no longer here.
    """
    require_harness()
    result = service.result(shown)
    unknown = [name for name in names if name not in OFFERED]
    if unknown:
        raise ConfigError(f"'{unknown[0]}' is not offered here.", f"Choose from {', '.join(OFFERED)}.")
    if hub and not service.settings.limits.hub_models:
        raise ConfigError("This host reads no data of the hub.", "Ask the installed tasks.")
    if limit is None:
        raise ConfigError("The number of questions is empty.", "Give one, for example 100.")
    asked, most = parse_tasks(names), int(limit)
    check_limit(most)
    allowed = MOST_QUESTIONS if service.settings.profile == "local" else MOST_QUESTIONS_PUBLIC
    if len(asked) * most > allowed:
        raise ConfigError(
            f"{len(asked)} tasks of {most} questions are more than this host allows ({allowed:,} in all).",
            "Choose fewer tasks or fewer questions.",
        )

    if not result.operators:
        service.uploaded.check(result.config, owner)  # it will be run again, and reads its texts

    def work(job: Job[Finding]) -> RunResult:
        ready, done = result, 0.0
        if not result.operators:
            ready, done = run_again(service, job, result), RERUN
        request = EvaluateRequest(ready, tuple(asked), most, hub)
        found = service.lab.call(request, listeners(job).part(done, 1.0))
        return replace(ready, zero_shot=found)

    key = f"{shown}:{','.join(asked)}:{most}:{'hub' if hub else 'installed'}"
    return service.jobs.submit("tasks", key, work, owner, result.config.to_query())
