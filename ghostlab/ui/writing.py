"""The button of the Generate tab: it queues a job, as Run does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.config import PromptFormat
from ghostlab.errors import ConfigError
from ghostlab.ui.complaints import told_to_user
from ghostlab.ui.service import Service
from ghostlab.ui.tabs.generate import ASKED
from ghostlab.ui.tabs.view import Tab


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
        tab: The Generate tab.
        started: What a page is sent once a job is queued.
        outputs: Components of that.
        quiet: Settings of an event that shows no progress.
    """

    def generate(request: gr.Request, shown_id: str, *asked: Any) -> dict[Any, Any]:
        with told_to_user():
            return started(queue(service, shown_id, request.session_hash or "", *asked))

    own = tab.controls
    click: Any = own["start"].click
    return click(generate, [shown, *(own[name] for name in ASKED)], outputs, **quiet)


def queue(
    service: Service,
    shown: str,
    owner: str,
    prompt: str,
    prompt_format: PromptFormat,
    *amounts: float | None,
) -> str:
    """Queue the continuation of a prompt by every variant of the shown result; return the job's id.

    ``amounts`` are new tokens, temperature and top p.

    Raises:
        GhostlabError: If a value is missing or wrong, or the result is no longer here.
    """
    given = [amount for amount in amounts if amount is not None]
    if len(given) < len(amounts):
        raise ConfigError("A number is empty.", "Give new tokens, temperature and top p.")
    tokens, temperature, top_p = given
    return service.generate(
        shown,
        prompt=prompt,
        prompt_format=prompt_format,
        new_tokens=int(tokens),
        temperature=temperature,
        top_p=top_p,
        owner=owner,
    )
