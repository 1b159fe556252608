"""Atlas: every block of consecutive layers at once, what dropping it loses and what maps bring back."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import gradio as gr
from gradio.components import Component

from ghostlab.plots import style
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.figures.atlas import FIRST, MEASURES, best, block_map, by_length, label, say_block_map
from ghostlab.plots.figures.atlas import words as block_words
from ghostlab.plots.formats import unbroken
from ghostlab.results.atlas import Atlas
from ghostlab.text.corpora import PASTE
from ghostlab.text.uploads import UPLOAD
from ghostlab.ui import explain, html, theme
from ghostlab.ui.page import Update, job_progress
from ghostlab.ui.tabs import panels

LENGTHS = "1-10"
_INTRO = (
    "Measures every block of consecutive layers of the sidebar's model on its text, in one pass of the "
    "original: what dropping the block loses, and what is left after each map. Click a block to drop it in "
    "the next run."
)


@dataclass(frozen=True)
class Parts:
    """The components of this tab.

    Attributes:
        lengths, colour: What is measured, and which figure the map shows.
        start, stop, progress: To compute an atlas.
        source, words, map: Which atlas is shown, and the map with its words.
        facts: The figures of the block under the pointer; fires ``select`` with a block that is clicked.
        take: The best block of each length.
        length_words, by_length: The errors by length.
        json, csv, file: Buttons that save the atlas, and the text that is saved.
        shown: Id of the job whose atlas is shown; empty for the example.
    """

    lengths: gr.Textbox
    colour: gr.Dropdown
    start: gr.Button
    stop: gr.Button
    progress: gr.HTML
    source: gr.Markdown
    words: gr.Markdown
    map: gr.Plot
    facts: gr.HTML
    take: gr.Dropdown
    length_words: gr.Markdown
    by_length: gr.Plot
    json: gr.Button
    csv: gr.Button
    file: gr.Textbox
    shown: gr.Textbox

    @property
    def coloured(self) -> list[Component]:
        """What :func:`coloured` gives values for."""
        return [self.words, self.map, self.facts, self.take]

    @property
    def drawn(self) -> list[Component]:
        """What :func:`drawn` gives values for."""
        return [self.source, *self.coloured, self.length_words, self.by_length]


def build() -> Parts:
    """Lengths, colour, start and Stop; the map with words beside it; errors by length; files to save."""
    with gr.Column(elem_id="atlas"):
        gr.Markdown(_INTRO, elem_classes="gl-figure-title")
        with gr.Row(equal_height=True, elem_classes="gl-form"):
            lengths = gr.Textbox(
                LENGTHS, label="Lengths", info="Layers per block: 1-10 or 2,4,6.", max_lines=1,
                min_width=150, elem_id="atlas-lengths",
            )  # fmt: skip
            colour = gr.Dropdown(
                list(MEASURES), value=FIRST, label="Colour", info="What the map shows.", min_width=220,
                elem_id="atlas-colour",
            )  # fmt: skip
            start = gr.Button("Compute atlas", variant="primary", elem_id="atlas-start", min_width=130)
            stop = gr.Button("Stop", variant="stop", interactive=False, elem_id="atlas-stop", min_width=80)
        progress = job_progress("atlas", phone=True)
        source = gr.Markdown(elem_id="atlas-source", elem_classes="gl-figure-title")
        words = gr.Markdown(elem_id="atlas-words", elem_classes="gl-figure-title")
        explain.what_is_this("block_map")
        with gr.Row(equal_height=False):
            plot = gr.Plot(
                show_label=False, label="Atlas", container=False, scale=3, min_width=320, elem_id="atlas-map"
            )
            with gr.Column(scale=1, min_width=240):
                facts = gr.HTML(js_on_load=theme.static("atlas.js"), elem_id="atlas-told")
                take = gr.Dropdown(
                    [], value=None, label="Drop the best block of a length", interactive=True,
                    info="Like a click on it.", elem_id="atlas-take",
                )  # fmt: skip
        length_words = gr.Markdown(elem_id="atlas-length-words", elem_classes="gl-figure-title")
        explain.what_is_this("by_length")
        lengths_plot = gr.Plot(
            show_label=False, label="Error by length", container=False, elem_id="atlas-by-length"
        )
        with gr.Row(elem_classes="gl-actions"):
            json = gr.Button("Save as JSON", size="md", elem_id="atlas-json", min_width=132)
            csv = gr.Button("Save as CSV", size="md", elem_id="atlas-csv", min_width=132)
            file = gr.Textbox("", visible=False, label="Content of the file")
            shown = gr.Textbox("", visible=False, label="Shown atlas")
    return Parts(
        lengths, colour, start, stop, progress, source, words, plot, facts, take, length_words, lengths_plot,
        json, csv, file, shown,
    )  # fmt: skip


def drawn(parts: Parts, atlas: Atlas | None, example: bool, colour: str = FIRST) -> Update:
    """Everything on an atlas.

    Args:
        parts: The tab's components.
        atlas: What is shown; ``None`` before there is any.
        example: Whether it came with the app.
        colour: The figure that the map shows, one of :data:`~ghostlab.plots.figures.atlas.MEASURES`.
    """
    if atlas is None:
        empty: Update = dict.fromkeys(parts.drawn)
        return {
            **empty,
            parts.words: "Press **Compute atlas**.",
            parts.map: style.empty("No atlas yet."),
            parts.take: gr.Dropdown(choices=[]),
        }
    lengths = FIGURES["by_length"]
    return {
        parts.source: source(atlas, example),
        **coloured(parts, atlas, colour),
        parts.length_words: panels.words(lengths, lengths.say(atlas)),
        parts.by_length: by_length(atlas),
    }


def coloured(parts: Parts, atlas: Atlas, colour: str) -> Update:
    """What the choice of a figure changes."""
    shown = MEASURES[colour]
    plot = block_map(atlas, colour)
    plot.update_traces(  # the words stand beside the map
        hovertemplate="%{customdata}<extra></extra>", selector={"hovertemplate": "%{text}<extra></extra>"}
    )
    blocks = best(atlas, shown.of, shown.low)
    listed = [(f"{label(b)}, {b.length} layers: {shown.spell(shown.of(b) or 0.0)}", label(b)) for b in blocks]
    first = block_words(atlas, blocks[len(blocks) // 2]) if blocks else []
    return {
        parts.words: f"### {colour}\n{unbroken(say_block_map(atlas, colour))}",
        parts.map: plot,
        parts.facts: html.facts(first),
        parts.take: gr.Dropdown(choices=listed, value=None),
    }


def source(atlas: Atlas, example: bool) -> str:
    """Which atlas is shown, for which settings, and on how many tokens."""
    config, lengths = atlas.config, atlas.lengths
    span = f"{lengths[0]} to {lengths[-1]}" if len(lengths) > 1 else str(*lengths)
    head = "**Example**, computed in advance with the default settings" if example else "**Your atlas**"
    took, text = html.duration(atlas.seconds), escape(_text(config.text))
    return (
        f"{head}: {escape(atlas.model)}, {config.sequences} × {config.length} tokens of {text}, "
        f"seed {config.seed}; {len(atlas.blocks)} blocks of {span} layers in {took}. "
        f"Maps are fitted on {atlas.fitted:,} ordinary tokens, errors measured on {atlas.tried:,} others."
    )


def _text(source: str) -> str:
    """A text's name without what was pasted, and without the secret of an uploaded file."""
    if source.startswith(PASTE):
        return "pasted text"
    return source.removeprefix(UPLOAD).partition("/")[0] if source.startswith(UPLOAD) else source
