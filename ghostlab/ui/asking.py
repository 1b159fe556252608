"""The buttons of the Tasks and Generate tabs: each queues a job about the shown result, as Run does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.ui import writing
from ghostlab.ui.complaints import told_to_user
from ghostlab.ui.service import task_jobs
from ghostlab.ui.service.service import Service
from ghostlab.ui.tabs import generate, tasks
from ghostlab.ui.tabs.view import Tab

_QUEUES: Mapping[str, tuple[Callable[..., str], Sequence[str]]] = {
    "Tasks": (task_jobs.ask, tasks.ASKED),
    "Generate": (writing.queue, generate.ASKED),
}
"""Tab -> what queues its job, given the service, the id of the shown result, whose visitor asks, and the
values of the controls that are named."""


def bind(
    service: Service,
    shown: Component,
    tabs: Mapping[str, Tab],
    started: Callable[[str], dict[Any, Any]],
    outputs: list[Component],
    **quiet: Any,
) -> list[Any]:
    """Wire both buttons; returns their click events.

    Args:
        service: Queues the jobs.
        shown: Holds the id of the shown result.
        tabs: All tabs.
        started: What a page is sent once a job is queued.
        outputs: Components of that.
        quiet: Settings of an event that shows no progress.
    """

    def wire(title: str, queue: Callable[..., str], names: Sequence[str]) -> Any:
        def ask(request: gr.Request, shown_id: str, *values: Any) -> dict[Any, Any]:
            with told_to_user():
                return started(queue(service, shown_id, request.session_hash or "", *values))

        own: Mapping[str, Any] = tabs[title].controls
        return own["start"].click(ask, [shown, *(own[name] for name in names)], outputs, **quiet)

    return [wire(title, *how) for title, how in _QUEUES.items()]
