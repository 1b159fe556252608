"""Block map: every block of consecutive layers at once, what dropping it loses and what maps bring back."""

from __future__ import annotations

from html import escape
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.plots import style
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.figures.atlas import (
    FIRST,
    MEASURES,
    best,
    block_map,
    by_length,
    label,
    say_block_map,
    words,
)
from ghostlab.plots.formats import unbroken
from ghostlab.results.atlas import Atlas
from ghostlab.text.corpora import PASTE
from ghostlab.text.uploads import UPLOAD
from ghostlab.ui import explain, html, theme
from ghostlab.ui.page import job_progress
from ghostlab.ui.tabs import panels
from ghostlab.ui.tabs.view import Outputs, Page, Tab

DRAWN = ("source", "words", "map", "told", "take", "length_words", "by_length")
"""Names of the components that :func:`render` gives values for, in order."""
COLOURED = DRAWN[1:5]
"""Those of them that the choice of a figure changes."""
LENGTHS = "1-10"
_INTRO = (
    "Surveys every block of consecutive layers of the sidebar's model on its text, from one pass of the "
    "original: what dropping it loses, and what is left after each map. Click a block to drop it in the "
    "next run."
)


def build(_: Page) -> Tab:
    """Lengths, colour, Map and Stop; the map with words beside it; errors by length; files to save."""
    with gr.Column(elem_id="atlas"):
        made = _controls()
        made["source"] = gr.Markdown(elem_id="atlas-source", elem_classes="gl-figure-title")
        made["words"] = gr.Markdown(elem_id="atlas-words", elem_classes="gl-figure-title")
        explain.what_is_this("block_map")
        with gr.Row(equal_height=False):
            made["map"] = gr.Plot(
                show_label=False,
                label="Block map",
                container=False,
                scale=3,
                min_width=320,
                elem_id="atlas-map",
            )
            with gr.Column(scale=1, min_width=240):
                made["told"] = gr.HTML(js_on_load=theme.static("atlas.js"), elem_id="atlas-told")
                made["take"] = gr.Dropdown(
                    [], value=None, label="Drop the best block of a length", interactive=True,
                    info="As a click on it.", elem_id="atlas-take",
                )  # fmt: skip
        made["length_words"] = gr.Markdown(elem_id="atlas-length-words", elem_classes="gl-figure-title")
        explain.what_is_this("by_length")
        made["by_length"] = gr.Plot(
            show_label=False, label="Error by length", container=False, elem_id="atlas-by-length"
        )
        made |= _files()
    return Tab(Outputs(), controls=made)


def _controls() -> dict[str, Component]:
    gr.Markdown(_INTRO, elem_classes="gl-figure-title")
    with gr.Row(equal_height=True, elem_classes="gl-form"):
        lengths = gr.Textbox(
            LENGTHS, label="Lengths", info="How many layers blocks have: 1-10 or 2,4,6.", max_lines=1,
            min_width=150, elem_id="atlas-lengths",
        )  # fmt: skip
        colour = gr.Dropdown(
            list(MEASURES), value=FIRST, label="Colour", info="What the map shows.", min_width=220,
            elem_id="atlas-colour",
        )  # fmt: skip
        start = gr.Button("Map the blocks", variant="primary", elem_id="atlas-start", min_width=130)
        stop = gr.Button("Stop", variant="stop", interactive=False, elem_id="atlas-stop", min_width=80)
    going = job_progress("atlas", phone=True)
    return {"lengths": lengths, "colour": colour, "start": start, "stop": stop, "progress": going}


def _files() -> dict[str, Component]:
    with gr.Row():
        return {
            "json": gr.Button("Save as JSON", size="sm", elem_id="atlas-json", min_width=120),
            "csv": gr.Button("Save as CSV", size="sm", elem_id="atlas-csv", min_width=120),
            "file": gr.Textbox("", visible=False, label="Content of the file"),
            "shown": gr.Textbox("", visible=False, label="Shown block map"),
        }


def render(atlas: Atlas | None, example: bool, colour: str = FIRST) -> list[Any]:
    """Values of :data:`DRAWN`.

    Args:
        atlas: What is shown; ``None`` before there is any.
        example: Whether it came with the app.
        colour: The figure that the map shows, one of :data:`~ghostlab.plots.figures.atlas.MEASURES`.
    """
    if atlas is None:
        nothing = style.empty("No block map yet.")
        return ["", "Press **Map the blocks**.", nothing, "", gr.Dropdown(choices=[]), "", None]
    figure = FIGURES["by_length"]
    lengths = panels.words(figure, figure.say(atlas))
    return [source(atlas, example), *coloured(atlas, colour), lengths, by_length(atlas)]


def coloured(atlas: Atlas, colour: str) -> list[Any]:
    """Values of :data:`COLOURED`."""
    shown = MEASURES[colour]
    drawn = block_map(atlas, colour)
    drawn.update_traces(  # the words stand beside the map
        hovertemplate="%{customdata}<extra></extra>", selector={"hovertemplate": "%{text}<extra></extra>"}
    )
    blocks = best(atlas, shown.of, shown.low)
    listed = [(f"{label(b)}, {b.length} layers: {shown.spell(shown.of(b) or 0.0)}", label(b)) for b in blocks]
    first = words(atlas, blocks[len(blocks) // 2]) if blocks else []
    return [
        f"### {colour}\n{unbroken(say_block_map(atlas, colour))}",
        drawn,
        html.facts(first),
        gr.Dropdown(choices=listed, value=None),
    ]


def source(atlas: Atlas, example: bool) -> str:
    """Which atlas is shown, for which settings, and on how many tokens."""
    config, lengths = atlas.config, atlas.lengths
    span = f"{lengths[0]} to {lengths[-1]}" if len(lengths) > 1 else str(*lengths)
    head = "**Example**, computed beforehand with the default settings" if example else "**Your map**"
    took, text = html.duration(atlas.seconds), escape(_text(config.text))
    return (
        f"{head}: {escape(atlas.model)}, {config.sequences} × {config.length} tokens of {text}, "
        f"seed {config.seed}; {len(atlas.blocks)} blocks of {span} layers in {took}. "
        f"Maps are fitted on {atlas.fitted:,} ordinary tokens, errors taken on {atlas.tried:,} others."
    )


def _text(source: str) -> str:
    """A text's name without what was pasted, and without the secret of an uploaded file."""
    if source.startswith(PASTE):
        return "pasted text"
    return source.removeprefix(UPLOAD).partition("/")[0] if source.startswith(UPLOAD) else source
