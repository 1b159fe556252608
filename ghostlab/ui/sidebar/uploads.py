"""A text file of the visitor's own: taken over, checked at once, and named as the text of the next run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.settings import Settings
from ghostlab.text.uploads import suffixes
from ghostlab.ui.complaints import told_to_user
from ghostlab.ui.service.service import Service


def build(settings: Settings) -> gr.UploadButton:
    """The button that takes a file; to be called inside ``gr.Blocks``."""
    kinds = suffixes(settings)
    most = f"{settings.limits.upload_bytes / 1e6:g} MB"
    named = " ".join(kind.removeprefix(".") for kind in kinds)
    return gr.UploadButton(
        f"Upload {named} (up to {most})", file_types=list(kinds), type="filepath", size="sm", elem_id="upload"
    )


def bind(service: Service, button: gr.UploadButton, text: Component, quiet: dict[str, Any]) -> None:
    """Wire the button: a file that is good becomes the text."""

    def take(path: str, request: gr.Request) -> str:
        with told_to_user():
            source, about = service.uploaded.take(Path(path), request.session_hash or "")
        gr.Info(f"{about} It is the text of the next run.", title="File taken", duration=6)
        return source

    button.upload(take, button, text, **quiet)
