"""``ghostlab app``: the app in the browser."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ghostlab.settings import Settings


def app_command(
    host: Annotated[
        str | None, typer.Option("--host", help="Address to listen on [default: this machine only].")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", min=1, max=65535, help="Port to listen on.")] = None,
    public: Annotated[
        bool, typer.Option("--public", help="For strangers: no local paths, and every run is capped.")
    ] = False,
) -> None:
    """Open the app in the browser."""
    env = {**os.environ, "GHOSTLAB_PROFILE": "public"} if public else os.environ
    settings = Settings.from_env(env)
    from ghostlab.ui.app import launch

    launch(settings, host=host, port=port)
