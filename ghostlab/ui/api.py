"""The app for scripts: ``run``, ``status``, ``result``, ``cancel`` through ``gradio_client``."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ghostlab.config import RunConfig
from ghostlab.errors import ResultError
from ghostlab.ui.complaints import told_to_user
from ghostlab.ui.service import Service


def expose(service: Service) -> None:
    """Name the four endpoints; to be called inside ``gr.Blocks``."""

    def run(config: dict[str, Any], request: gr.Request) -> str:
        """Start a run of a configuration (as in result.json; missing keys take their defaults).

        Returns its id.
        """
        with told_to_user():
            return service.start(RunConfig.from_dict(config), request.session_hash or "")

    def status(run_id: str) -> dict[str, Any]:
        """How a run is: state (waiting, running, done, failed, stopped), fraction, message, position,
        elapsed and remaining seconds, error."""
        with told_to_user():
            return _status(service, run_id)

    def result(run_id: str) -> dict[str, Any]:
        """What a run found so far, as in result.json."""
        with told_to_user():
            if not run_id:
                raise ResultError("No run is named.", "Give the id that run returned.")
            return service.result(run_id).to_dict()

    def cancel(run_id: str) -> dict[str, Any]:
        """Stop a run; harmless at any time. Returns its status."""
        with told_to_user():
            service.cancel(run_id)
            return _status(service, run_id)

    for endpoint in (run, status, result, cancel):
        gr.api(endpoint, api_name=endpoint.__name__, concurrency_limit=None)


def _status(service: Service, run_id: str) -> dict[str, Any]:
    view = service.jobs.view(run_id)
    if view is None:
        raise ResultError("There is no such run on this server.", "Give the id that run returned.")
    names = ("id", "kind", "state", "fraction", "message", "position", "elapsed", "remaining", "error")
    return {name: getattr(view, name) for name in names}
