"""A text file of the visitor's own: taken over, checked at once, and named as the text of the next run."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from ghostlab.settings import Settings
from ghostlab.text.uploads import suffixes
from ghostlab.ui.page import Page, on


def build(settings: Settings) -> gr.UploadButton:
    """The button that takes a file; to be called inside ``gr.Blocks``."""
    kinds = suffixes(settings)
    most = f"{settings.limits.upload_bytes / 1e6:g} MB"
    named = " ".join(kind.removeprefix(".") for kind in kinds)
    return gr.UploadButton(
        f"Upload {named} (up to {most})", file_types=list(kinds), type="filepath", size="sm", elem_id="upload"
    )


def bind(page: Page, button: gr.UploadButton) -> None:
    """Wire the button: a file that is good becomes the text."""

    def take(path: str, request: gr.Request) -> str:
        source, about = page.service.uploads.take(Path(path), request.session_hash or "")
        gr.Info(f"{about} It is the text of the next run.", title="File taken", duration=6)
        return source

    on(button.upload, take, button, page.controls["text"])
