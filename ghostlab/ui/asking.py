"""The button of the Tasks tab: it queues a job, as Run and Generate do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.ui.complaints import told_to_user
from ghostlab.ui.service import Service
from ghostlab.ui.tabs.view import Tab
from ghostlab.ui.task_jobs import queue_tasks


def bind(
    service: Service,
    shown: Component,
    tab: Tab,
    started: Callable[[str], dict[Any, Any]],
    outputs: list[Component],
    **quiet: Any,
) -> Any:
    """Wire the button; returns its click event.

    Args:
        service: Queues the job.
        shown: Holds the id of the shown result.
        tab: The Tasks tab.
        started: What a page is sent once a job is queued.
        outputs: Components of that.
        quiet: Settings of an event that shows no progress.
    """

    def ask(
        request: gr.Request, shown_id: str, names: list[str], limit: float | None, hub: bool
    ) -> dict[Any, Any]:
        with told_to_user():
            owner = request.session_hash or ""
            return started(queue_tasks(service, shown_id, names or [], limit, owner=owner, hub=hub))

    own = tab.controls
    click: Any = own["start"].click
    return click(ask, [shown, own["names"], own["limit"], own["hub"]], outputs, **quiet)
