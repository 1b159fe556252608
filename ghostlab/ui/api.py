"""The app for scripts, through ``gradio_client``: ``run``, ``atlas``, ``status``, ``result``, ``cancel``.

What a function's docstring says is what the app's API page says of its endpoint.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from ghostlab.config import RunConfig
from ghostlab.errors import ResultError
from ghostlab.ui.page import user_errors
from ghostlab.ui.service import requests
from ghostlab.ui.service.service import Service


def expose(service: Service) -> None:
    """Name the five endpoints; to be called inside ``gr.Blocks``."""

    def run(config: dict[str, Any], request: gr.Request) -> str:
        """Queue a run and return its id at once. `config` holds settings by the names that result.json has
        under "config", for example {"drop": "20:25", "recover": ["ghost"]}; what is missing takes its
        default."""
        return requests.run(service, request.session_hash or "", RunConfig.from_dict(config, strict=True))

    def atlas(config: dict[str, Any], lengths: str, request: gr.Request) -> str:
        """Queue an atlas of every block of so many layers (`lengths`, for example "1-10" or "2,5") and
        return its id at once. Only the model, text and calibration settings of `config` are used."""
        return requests.atlas(
            service, request.session_hash or "", RunConfig.from_dict(config, strict=True), lengths
        )

    def status(run_id: str) -> dict[str, Any]:
        """How the run or atlas of this id is doing: state (waiting, running, done, failed or stopped),
        fraction done, message, position in the waiting list, seconds elapsed and remaining, error."""
        view = service.jobs.view(run_id)
        if view is None:
            raise ResultError("There is no such run on this server.", "Give the id that run returned.")
        names = ("id", "kind", "state", "fraction", "message", "position", "elapsed", "remaining", "error")
        return {name: getattr(view, name) for name in names}

    def result(run_id: str) -> dict[str, Any]:
        """What the run or atlas of this id has found so far: what `ghostlab run` writes as result.json, or
        `ghostlab atlas` as its file."""
        if not run_id:
            raise ResultError("No run is named.", "Give the id that run returned.")
        view = service.jobs.view(run_id)
        if view is None or view.result is None:
            raise ResultError(service.gone(run_id), "It may have found nothing yet; ask for its status.")
        return view.result.to_dict()

    def cancel(run_id: str) -> dict[str, Any]:
        """Stop the run or atlas of this id and return its status; harmless at any time."""
        service.jobs.cancel(run_id)
        return status(run_id)

    for endpoint in (run, atlas, status, result, cancel):
        gr.api(user_errors()(endpoint), api_name=endpoint.__name__, concurrency_limit=None)
