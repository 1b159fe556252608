"""What the address of a page says: the last run, block map and scores, or settings for a new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Literal

import gradio as gr

from ghostlab.config import RunConfig
from ghostlab.errors import GhostlabError
from ghostlab.jobstate import JobView
from ghostlab.ui.service import Finding, Service

Name = Literal["run", "atlas", "scores"]
Query = Sequence[tuple[str, str]]
NAMES: tuple[Name, ...] = ("run", "atlas", "scores")
WHAT = {"run": "run", "atlas": "block map", "scores": "scoring of blocks"}
"""For people; by kind of job, too."""
SHOW = """(id) => {
  if (!id) return;
  const url = new URL(location.href);
  const kept = ["__theme", "run", "atlas", "scores"];
  if ("NAME" === "run") kept.pop(); // a run says by itself how its blocks were scored
  for (const name of [...url.searchParams.keys()]) if (!kept.includes(name)) url.searchParams.delete(name);
  url.searchParams.set("NAME", id);
  history.replaceState(null, "", url);
}"""
"""Puts a job's id into the address; what else it said is gone, for the job says it."""


def job(service: Service, query: Query, name: Name) -> JobView[Finding] | None:
    """The job that an address names; the visitor is told if it is gone."""
    job_id = dict(query).get(name, "")
    view = service.jobs.view(job_id) if job_id else None
    if job_id and view is None:
        gr.Warning(
            f"{service.gone(job_id, WHAT[name])} Here is the example.",
            title=f"{WHAT[name].capitalize()} not found",
        )
    return view


def followed(jobs: Sequence[JobView[Finding] | None]) -> JobView[Finding] | None:
    """Which of the jobs of an address a page follows: the first that is not finished, else the first."""
    named = [job for job in jobs if job is not None]
    return next((job for job in named if not job.finished), named[0] if named else None)


def asked_for(query: Query) -> RunConfig | None:
    """The configuration in a link; ``None`` when it names none, or one that cannot be read."""
    names = {f.name for f in fields(RunConfig)}
    pairs = [(name, value) for name, value in query if name in names]
    try:
        return RunConfig.from_query(pairs) if pairs else None
    except GhostlabError as error:
        gr.Warning(str(error), title="The link's configuration was not understood")
        return None
