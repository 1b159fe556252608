"""What the address of a page says: the last run, atlas and scores, or settings for a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from urllib.parse import urlencode

import gradio as gr

from ghostlab.config import FIELDS, RunConfig
from ghostlab.errors import GhostlabError
from ghostlab.jobs.record import JobView
from ghostlab.ui.page import Page, on
from ghostlab.ui.service.service import Finding, Service

Name = Literal["run", "atlas", "scores"]
Query = Sequence[tuple[str, str]]
NAMES: tuple[Name, ...] = ("run", "atlas", "scores")
WHAT = {"run": "run", "atlas": "atlas", "scores": "scoring of blocks"}
"""For people; by kind of job, too."""
LONGEST = 2000
"""Characters of a query; pasted text makes longer ones, which browsers and servers cut off."""


def query_of(service: Service, job_id: str) -> str:
    """The query of a page that follows a job: its id, and the settings that repeat it where it is gone."""
    view = service.jobs.view(job_id)
    if view is None:
        return ""
    found = urlencode([(view.kind if view.kind in NAMES else "run", job_id)])
    return f"{found}&{view.about}" if view.about and len(view.about) < LONGEST else found


def bind(page: Page) -> None:
    """Let the address say which job is followed."""

    def query(job_id: str) -> str:
        return query_of(page.service, job_id)

    on(page.job.change, query, page.job, page.query).success(
        None, page.query, None, js="ghostlab.showAddress"
    )


def job_in(service: Service, query: Query, name: Name) -> JobView[Finding] | None:
    """The job that an address names; the visitor is told if it is gone."""
    job_id = dict(query).get(name, "")
    view = service.jobs.view(job_id) if job_id else None
    if job_id and view is None:
        instead = (
            "Its settings are in the sidebar: press Run." if settings_in(query) else "Here is the example."
        )
        gr.Warning(
            f"{service.gone(job_id, WHAT[name])} {instead}",
            title=f"{WHAT[name].capitalize()} not found",
        )
    return view


def to_follow(jobs: Sequence[JobView[Finding] | None]) -> JobView[Finding] | None:
    """Which of the jobs of an address a page follows: the first that is not finished, else the first."""
    named = [job for job in jobs if job is not None]
    return next((job for job in named if not job.finished), named[0] if named else None)


def settings_in(query: Query) -> list[tuple[str, str]]:
    """What an address says of a configuration."""
    return [(name, value) for name, value in query if name in FIELDS]


def config_in(query: Query) -> RunConfig | None:
    """The configuration in a link; ``None`` when it names none, or one that cannot be read."""
    pairs = settings_in(query)
    try:
        return RunConfig.from_query(pairs) if pairs else None
    except GhostlabError as error:
        gr.Warning(str(error), title="The link's configuration was not understood")
        return None
