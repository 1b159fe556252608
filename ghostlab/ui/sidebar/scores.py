"""Scores of the chosen criterion on the block picker: drawn once there are some, computed on a button."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.config import RunConfig
from ghostlab.errors import GhostlabError
from ghostlab.jobs.record import JobView
from ghostlab.results.records import SelectionInfo
from ghostlab.results.scores import SETTINGS, scored
from ghostlab.text.corpora import PASTE
from ghostlab.ui.complaints import told_to_user
from ghostlab.ui.service.score_jobs import at_hand, queue_scores
from ghostlab.ui.service.service import Finding, Service
from ghostlab.ui.shell import Update
from ghostlab.ui.sidebar import picker
from ghostlab.ui.sidebar.sidebar import Sidebar

ASKED = (*SETTINGS, "pasted")
"""The sidebar's controls that decide a criterion's scores."""


@dataclass(frozen=True)
class Page:
    """Ids of what a page shows: a result, a block map."""

    shown: Component
    mapped: Component


def asked(values: Sequence[Any]) -> RunConfig:
    """The configuration whose scores the controls :data:`ASKED` ask for.

    Raises:
        ConfigError: If a value is of the wrong kind.
    """
    named = dict(zip(ASKED, values, strict=True))
    pasted = (named.pop("pasted") or "").strip()
    for name in ("revision", "held_out_text"):
        named[name] = (named[name] or "").strip() or None
    named["text"] = PASTE + pasted if pasted else named["text"]
    return scored(RunConfig.from_dict({**named, "drop": None}))


def resumed(config: RunConfig | None, job: JobView[Finding] | None) -> RunConfig | None:
    """A configuration with the settings of a scoring job, if there is one."""
    if job is None:
        return config
    asked = RunConfig.from_query(job.about)
    return replace(config or RunConfig(), drop=None, **{name: getattr(asked, name) for name in SETTINGS})


def bind(
    service: Service,
    sidebar: Sidebar,
    page: Page,
    started: Callable[[str], Update],
    outputs: list[Component],
    **quiet: Any,
) -> Any:
    """Wire the button and redraw the scores whenever what they depend on changes; returns the click event.

    Args:
        service: Queues the job; holds scores.
        sidebar: What is asked; its picker and its field of blocks get what was found.
        page: What else may hold the scores.
        started: What a page is sent once a job is queued.
        outputs: Components of that.
        quiet: Settings of an event that shows no progress.
    """
    buttons, drop = sidebar.scores, sidebar.controls["drop"]
    controls = [sidebar.controls[name] for name in ASKED]
    known: list[Component] = [buttons.found, page.shown, page.mapped, *controls]

    def find(found: str, shown: str, mapped: str, values: Sequence[Any]) -> SelectionInfo | None:
        try:
            return at_hand(service, asked(values), found=found, shown=shown, mapped=mapped)
        except GhostlabError:  # told when Score or Run is pressed; a number is just being typed
            return None

    def draw(found: str, shown: str, mapped: str, *values: Any) -> gr.HTML:
        return gr.HTML(scores=picker.scores(find(found, shown, mapped, values)))

    def take(found: str, shown: str, mapped: str, *values: Any) -> Any:
        info = find(found, shown, mapped, values)
        return info.chosen if found and info else gr.skip()

    def press(request: gr.Request, *values: Any) -> Update:
        with told_to_user():
            return started(queue_scores(service, asked(values), owner=request.session_hash or ""))

    changes = [component.change for component in known]
    gr.on(changes, draw, known, sidebar.picker, trigger_mode="always_last", **quiet)
    buttons.found.change(take, known, drop, **quiet)
    return buttons.start.click(press, controls, outputs, **quiet)
