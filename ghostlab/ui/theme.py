"""How the app looks: Gradio's own offline fonts, one accent colour, quiet surfaces."""

from __future__ import annotations

from html import escape
from pathlib import Path

import gradio as gr

from ghostlab.plots import style, tokens

CSS = Path(__file__).with_name("static") / "style.css"
ICON = CSS.with_name("icon.svg")
TITLE = "Ghostlab: prune layers of a language model, and bring back what they did"
DESCRIPTION = (
    "Drop layers of a language model, fit the linear map that stands in for them, "
    "and see what was lost, what came back and why."
)
"""What search engines and those to whom a link is sent are told."""
_WHEN_PLOTLY_COMES = """
let plotly;
function withoutBase() {
  const base = document.querySelector("base");
  if (base && base.href === new URL("./", location.href).href) base.remove();
}
Object.defineProperty(window, "Plotly", {
  configurable: true,
  get: () => plotly,
  set: (given) => { plotly = given; withoutBase(); ghostlabModebar(given); },
});
"""
"""On a page with a base Plotly names clip paths by the page's whole address, which changes with every run:
curves that are drawn would vanish. Gradio's base is where the page lies anyway."""


def _font(name: str) -> gr.themes.LocalFont:
    """A font that Gradio serves itself; in 6.31 its weight 600 lacks most letters, 700 has all."""
    return gr.themes.LocalFont(name, weights=(400, 700))


def theme() -> gr.themes.Base:
    """The theme for ``launch``: no font or style is fetched from anywhere but this server."""
    return gr.themes.Base(
        primary_hue=gr.themes.colors.indigo,
        secondary_hue=gr.themes.colors.slate,
        neutral_hue=gr.themes.colors.slate,
        radius_size=gr.themes.sizes.radius_md,
        spacing_size=gr.themes.sizes.spacing_md,
        text_size=gr.themes.sizes.text_md,
        font=[_font("IBM Plex Sans"), "system-ui", "sans-serif"],
        font_mono=[_font("IBM Plex Mono"), "ui-monospace", "monospace"],
    ).set(
        body_background_fill="#f7f8fb",
        body_background_fill_dark="#0e1320",
        body_text_color_subdued="#5b6679",
        body_text_color_subdued_dark="*neutral_400",
        input_placeholder_color="#5b6679",
        input_placeholder_color_dark="*neutral_400",
        block_background_fill="#ffffff",
        block_background_fill_dark="#161d2c",
        block_border_width="1px",
        block_shadow="none",
        block_shadow_dark="none",
        block_label_background_fill="transparent",
        block_label_background_fill_dark="transparent",
        input_background_fill="#ffffff",
        input_background_fill_dark="#0e1422",
        input_border_width="1px",
        input_border_color="#d5dae4",
        input_border_color_dark="#2b3548",
        border_color_primary="#e3e7ef",
        border_color_primary_dark="#263044",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_500",
        button_primary_text_color="#ffffff",
    )


def head() -> str:
    """What stands in the page's head: what the page is, and scripts.

    Every figure gets its buttons before the first one is drawn, and tokens their tooltip.
    Gradio sets ``window.Plotly`` when the first figure comes into sight; nothing else tells of it.
    """
    buttons, tooltip = (path.read_text(encoding="utf-8") for path in (style.MODEBAR, tokens.SCRIPT))
    shown = {
        "og:type": "website",
        "og:site_name": "Ghostlab",
        "og:title": TITLE,
        "og:description": DESCRIPTION,
    }
    meta = f'<meta name="description" content="{escape(DESCRIPTION)}">' + "".join(
        f'<meta property="{name}" content="{escape(value)}">' for name, value in shown.items()
    )
    return f"{meta}<script>{buttons}\n{_WHEN_PLOTLY_COMES}\n{tooltip}</script>"
