"""What the address of a page says: the last run, atlas and scores, or settings for a new one."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

import gradio as gr

from ghostlab.config import FIELDS, RunConfig
from ghostlab.errors import GhostlabError
from ghostlab.ui.service.service import Service, View

Query = Sequence[tuple[str, str]]
NAMES = {"run": "run", "atlas": "atlas", "scores": "scoring of blocks"}
"""Parameter of an address -> what it names, for people; by kind of job, too."""
LONGEST = 2000
"""Characters of a query; pasted text makes longer ones, which browsers and servers cut off."""


def query_of(service: Service, job_id: str) -> str:
    """The query of a page that follows a job: its id, and the settings that repeat it where it is gone."""
    view = service.jobs.view(job_id)
    if view is None:
        return ""
    query = urlencode({view.kind if view.kind in NAMES else "run": job_id})
    return f"{query}&{view.about}" if view.about and len(view.about) < LONGEST else query


def job_in(service: Service, query: Query, name: str) -> View | None:
    """The job that an address names; the visitor is told if it is gone."""
    job_id = dict(query).get(name, "")
    view = service.jobs.view(job_id) if job_id else None
    if job_id and view is None:
        instead = (
            "Its settings are in the sidebar: press Run." if settings_in(query) else "Here is the example."
        )
        gr.Warning(
            f"{service.gone(job_id, NAMES[name])} {instead}",
            title=f"{NAMES[name].capitalize()} not found",
        )
    return view


def settings_in(query: Query) -> Query:
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
