"""How the app looks: Gradio's own offline fonts, one accent colour, quiet surfaces; and its static files."""

from __future__ import annotations

import json
from pathlib import Path

import gradio as gr
from markupsafe import Markup

from ghostlab.plots import style, tokens
from ghostlab.ui import html

STATIC = Path(__file__).with_name("static")
STYLES = [*(STATIC / f"{name}.css" for name in ("style", "queue", "picker", "tour")), tokens.CSS]
ICON = STATIC / "icon.svg"
TITLE = "Ghostlab: prune layers of a language model, and bring back what they did"
DESCRIPTION = (
    "Drop layers of a language model, fit the linear map that stands in for them, "
    "and see what was lost, what came back and why."
)
"""What the page is, for its visitors and for search engines."""


def static(name: str) -> str:
    """The text of a static file."""
    return (STATIC / name).read_text(encoding="utf-8")


def _font(name: str) -> gr.themes.LocalFont:
    """A font that Gradio serves itself; in 6.31 its weight 600 lacks most letters, 700 has all."""
    return gr.themes.LocalFont(name, weights=(400, 700))


def theme() -> gr.themes.Base:
    """The theme for ``launch``: no font or style is fetched from anywhere but this server."""
    return gr.themes.Base(
        primary_hue=gr.themes.colors.indigo,
        secondary_hue=gr.themes.colors.slate,
        neutral_hue=gr.themes.colors.slate,
        font=[_font("IBM Plex Sans"), "system-ui", "sans-serif"],
        font_mono=[_font("IBM Plex Mono"), "ui-monospace", "monospace"],
    ).set(**json.loads(static("theme.json")))


def head() -> str:
    """What stands in the page's head: what the page is, and scripts."""
    modebar, tooltip = (path.read_text(encoding="utf-8") for path in (style.MODEBAR, tokens.SCRIPT))
    scripts = map(Markup, (modebar, static("page.js"), tooltip))
    return html.piece("head", TITLE, DESCRIPTION, scripts)
