"""A text file of the visitor's own: taken over, checked at once, and named as the text of the next run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.settings import Settings
from ghostlab.text.uploads import suffixes
from ghostlab.ui.complaints import told_to_user
from ghostlab.ui.service import Service


def build(settings: Settings) -> gr.File:
    """The box that takes a file; to be called inside ``gr.Blocks``."""
    kinds = suffixes(settings)
    most = f"{settings.limits.upload_bytes / 1e6:g} MB"
    return gr.File(
        label=f"Text file ({' '.join(kinds)}; at most {most})", file_types=list(kinds), type="filepath",
        height=120, elem_id="upload",
    )  # fmt: skip


def bind(service: Service, box: gr.File, text: Component, quiet: dict[str, Any]) -> None:
    """Wire the box: a file that is good becomes the text, and the box is empty again."""

    def take(path: str | None, request: gr.Request) -> tuple[Any, None]:
        if path is None:
            return gr.skip(), None
        with told_to_user():
            source, about = service.upload(Path(path), request.session_hash or "")
        gr.Info(f"{about} It is the text of the next run.", title="File taken", duration=6)
        return source, None

    box.upload(take, box, [text, box], **quiet)
