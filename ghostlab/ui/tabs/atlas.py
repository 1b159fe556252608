"""Atlas: every block of consecutive layers at once, what dropping it loses and what maps bring back."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import gradio as gr

from ghostlab.errors import ConfigError
from ghostlab.plots import style
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.figures import atlas as figures
from ghostlab.results.atlas import Atlas
from ghostlab.text.corpora import PASTE
from ghostlab.text.uploads import UPLOAD
from ghostlab.ui import explain, html, theme
from ghostlab.ui.page import Page, Tab, Update, on
from ghostlab.ui.service import requests
from ghostlab.ui.sidebar.controls import read
from ghostlab.ui.sidebar.picker import choose
from ghostlab.ui.tabs import panels
from ghostlab.ui.tabs.downloads import offer

LENGTHS = "1-10"
_BY_LENGTH = FIGURES["by_length"]
_INTRO = (
    "Measures every block of consecutive layers of the sidebar's model on its text, in one pass of the "
    "original: what dropping the block loses, and what is left after each map. Click a block to drop it in "
    "the next run."
)


def build(page: Page) -> Tab:
    """The tab, laid out and wired."""
    AtlasTab(page).bind()
    return Tab()


class AtlasTab:
    """The components of the tab and their handlers, which hold no state of any visitor.

    Attributes:
        facts: The figures of the block under the pointer; fires ``select`` with a block that is clicked.
        take: The best block of each length.
        shown: Id of the job whose atlas is shown; empty for the example.
        map_places: What the choice of a measure changes.
        places: What an atlas changes.
    """

    def __init__(self, page: Page) -> None:
        self.page, self.service = page, page.service
        with gr.Column(elem_id="atlas"):
            panels.prose(_INTRO)
            with gr.Row(equal_height=True, elem_classes="gl-form"):
                self.lengths = gr.Textbox(
                    LENGTHS, label="Lengths", info="Layers per block: 1-10 or 2,4,6.", max_lines=1,
                    min_width=150, elem_id="atlas-lengths",
                )  # fmt: skip
                self.colour = gr.Dropdown(
                    list(figures.MEASURES), value=figures.FIRST, label="Colour", info="What the map shows.",
                    min_width=220, elem_id="atlas-colour",
                )  # fmt: skip
                self.start = gr.Button(
                    "Compute atlas", variant="primary", elem_id="atlas-start", min_width=130
                )
                stop = panels.stop_button("atlas")
            page.job_buttons("atlas", [self.start], stop, phone=True)
            self.source = panels.prose(elem_id="atlas-source")
            self.words = panels.prose(elem_id="atlas-words")
            explain.what_is_this("block_map")
            with gr.Row(equal_height=False):
                self.map = panels.plot("Atlas", "atlas-map", scale=3, min_width=320)
                with gr.Column(scale=1, min_width=240):
                    self.facts = gr.HTML(js_on_load=theme.static("atlas.js"), elem_id="atlas-told")
                    self.take = gr.Dropdown(
                        [], value=None, label="Drop the best block of a length", interactive=True,
                        info="Like a click on it.", elem_id="atlas-take",
                    )  # fmt: skip
            self.by_length = panels.slot(_BY_LENGTH, "atlas-by-length")
            with gr.Row(elem_classes="gl-actions"):
                json, csv = (
                    gr.Button(f"Save as {kind}", size="md", elem_id=f"atlas-{kind.lower()}", min_width=132)
                    for kind in ("JSON", "CSV")
                )
                self.shown = gr.Textbox("", visible=False, label="Shown atlas")
            offer({"json": json, "csv": csv}, self.export, self.shown, "atlas-ready")
        self.map_places = [self.words, self.map, self.facts, self.take]
        self.places = [self.source, *self.map_places, *self.by_length]

    def bind(self) -> None:
        """Wire the tab; a block that is clicked or chosen goes into the sidebar."""
        page = self.page
        page.found["atlas"] = self.shown
        page.on_start(self.start.click, self.queue, [self.lengths, *page.controls.values()])
        on(page.demo.load, self.open, None, [self.lengths, *self.places])
        at = [self.shown, self.colour]
        on(self.shown.change, self.show, at, self.places)
        on(self.colour.input, self.recolour, at, self.map_places, trigger_mode="always_last")
        drop = [page.controls["chooser"], page.controls["drop"]]
        on(self.facts.select, self.choose_clicked, self.shown, drop)
        on(self.take.input, self.choose, [self.take, self.shown], drop)

    def queue(self, owner: str, lengths: str, *values: Any) -> str:
        """Queue an atlas of the sidebar's model and text."""
        config = read(self.page.settings(values))
        return requests.atlas(self.service, owner, config, lengths)

    def open(self, request: gr.Request) -> Update:
        """The lengths and the example, or those of the atlas that the page's address names."""
        job = self.service.jobs.view(request.query_params.get("atlas", ""))
        lengths = dict(parse_qsl(job.about)).get("lengths", LENGTHS) if job else gr.skip()
        if job is not None and job.result is not None:
            return {self.lengths: lengths}  # drawn once its id is there
        return {self.lengths: lengths, **self.show("", figures.FIRST)}

    def show(self, shown: str, colour: str) -> Update:
        """Everything on an atlas; without an example, what to press."""
        atlas = self.service.atlas(shown) if shown else self.service.example_atlas
        if atlas is None:
            empty: Update = dict.fromkeys(self.places)
            return {
                **empty,
                self.words: "Press **Compute atlas**.",
                self.map: style.empty("No atlas yet."),
                self.take: gr.Dropdown(choices=[]),
            }
        text, plot = self.by_length
        return {
            self.source: source(atlas, not shown),
            **self._map(atlas, colour),
            text: panels.heading(_BY_LENGTH.title, _BY_LENGTH.say(atlas)),
            plot: figures.by_length(atlas),
        }

    def recolour(self, shown: str, colour: str) -> Update:
        """The map of an atlas in the colours of another measure."""
        return self._map(self.service.atlas(shown), colour)

    def _map(self, atlas: Atlas, colour: str) -> Update:
        measure, plot = figures.MEASURES[colour], figures.block_map(atlas, colour)
        plot.update_traces(  # the words stand beside the map
            hovertemplate="%{customdata}<extra></extra>", selector={"hovertemplate": "%{text}<extra></extra>"}
        )
        blocks = figures.best(atlas, measure.of, measure.low)
        labels = [figures.label(block) for block in blocks]
        choices = [
            (f"{name}, {block.length} layers: {measure.spell(measure.of(block) or 0.0)}", name)
            for name, block in zip(labels, blocks, strict=True)
        ]
        return {
            self.words: panels.heading(colour, figures.say_block_map(atlas, colour)),
            self.map: plot,
            self.facts: html.piece("facts", figures.words(atlas, blocks[len(blocks) // 2]) if blocks else []),
            self.take: gr.Dropdown(choices=choices, value=None),
        }

    def choose_clicked(self, point: gr.SelectData, shown: str) -> list[str]:
        """Name the block of a clicked cell in the sidebar."""
        return self.choose(str(point.value), shown)

    def choose(self, block: str | None, shown: str) -> list[str]:
        """Name a block of an atlas in the sidebar."""
        if block is None or block not in map(figures.label, self.service.atlas(shown).blocks):
            raise ConfigError("That block is not in the atlas.", "Choose one that is.")
        return choose(block)

    def export(self, kind: str, shown: str) -> str:
        """The path of the JSON that ``ghostlab atlas --out`` writes, or of a CSV with a line per block."""
        atlas = self.service.atlas(shown)

        def write(folder: Path) -> Path:
            path = folder / f"atlas.{kind}"
            if kind == "json":
                return atlas.save(path)
            atlas.to_frame().to_csv(path, index=False)
            return path

        return str(self.page.files.make(write))


def source(atlas: Atlas, example: bool) -> str:
    """Which atlas is shown, for which settings, and on how many tokens."""
    config = atlas.config
    head = "**Example**, computed in advance with the default settings" if example else "**Your atlas**"
    took, text = html.duration(atlas.seconds), escape(_text(config.text))
    return (
        f"{head}: {escape(atlas.model)}, {config.sequences} × {config.length} tokens of {text}, "
        f"seed {config.seed}; {len(atlas.blocks)} blocks of {figures.span(atlas)} layers in {took}. "
        f"Maps are fitted on {atlas.fitted:,} ordinary tokens, errors measured on {atlas.tried:,} others."
    )


def _text(source: str) -> str:
    """A text's name without what was pasted, and without the secret of an uploaded file."""
    if source.startswith(PASTE):
        return "pasted text"
    return source.removeprefix(UPLOAD).partition("/")[0] if source.startswith(UPLOAD) else source
