"""The buttons of the Tasks and Generate tabs: each queues a job about the shown result, as Run does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ghostlab.ui.page import Page, Tab
from ghostlab.ui.service import requests
from ghostlab.ui.tabs import generate, tasks

_QUEUES: Mapping[str, tuple[Callable[..., str], Sequence[str]]] = {
    "Tasks": (requests.tasks, tasks.ASKED),
    "Generate": (requests.generate, generate.ASKED),
}
"""Tab -> what queues its job, given the service, the id of the shown result, whose visitor asks, and the
values of the controls that are named."""


def bind(page: Page, tabs: Mapping[str, Tab]) -> None:
    """Wire both buttons."""

    def wire(title: str, queue: Callable[..., str], names: Sequence[str]) -> None:
        own: Mapping[str, Any] = tabs[title].controls
        page.on_start(
            own["start"].click, partial(queue, page.service), [page.shown, *(own[name] for name in names)]
        )

    for title, how in _QUEUES.items():
        wire(title, *how)
