"""What the Atlas tab does: compute an atlas, show it, drop a block of it, save it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import gradio as gr

from ghostlab.errors import ConfigError
from ghostlab.plots.figures.atlas import label as name_of
from ghostlab.ui.page import JobButtons, Page, Tab, Update, on
from ghostlab.ui.service import requests
from ghostlab.ui.sidebar.controls import read
from ghostlab.ui.sidebar.picker import choose
from ghostlab.ui.tabs.atlas import view


def build(page: Page) -> Tab:
    """The tab, laid out and wired."""
    AtlasTab(page, view.build()).bind()
    return Tab()


class AtlasTab:
    """Handlers of the tab; they hold no state of any user."""

    def __init__(self, page: Page, parts: view.Parts) -> None:
        self.page = page
        self.service = page.service
        self.parts = parts

    def bind(self) -> None:
        """Wire the tab; blocks that are taken go into the sidebar."""
        page, parts = self.page, self.parts
        page.found["atlas"] = parts.shown
        page.buttons.append(JobButtons([parts.start], parts.stop, parts.progress))
        page.on_start(parts.start.click, self.queue, [parts.lengths, *page.controls.values()])
        on(page.demo.load, self.open, None, [parts.lengths, *parts.drawn])
        at = [parts.shown, parts.colour]
        on(parts.shown.change, self.show, at, parts.drawn)
        on(parts.colour.input, self.recolour, at, parts.coloured, trigger_mode="always_last")
        drop = [page.controls["chooser"], page.controls["drop"]]
        on(parts.facts.select, self.take_clicked, parts.shown, drop)
        on(parts.take.input, self.take, [parts.take, parts.shown], drop)
        for button, make, name in (
            (parts.json, self.json, "atlas.json"),
            (parts.csv, self.csv, "atlas.csv"),
        ):
            made = on(button.click, make, parts.shown, parts.file)
            made.success(None, parts.file, None, js=f"(text) => ghostlab.saveText(text, '{name}')")

    def queue(self, owner: str, lengths: str, *values: Any) -> str:
        """Queue an atlas of the sidebar's model and text."""
        config = read(dict(zip(self.page.controls, values, strict=True)))
        return requests.atlas(self.service, owner, config, lengths)

    def open(self, request: gr.Request) -> Update:
        """The lengths and the example, or those of the atlas that the page's address names."""
        job = self.service.jobs.view(request.query_params.get("atlas", ""))
        lengths = dict(parse_qsl(job.about)).get("lengths", view.LENGTHS) if job else gr.skip()
        if job is not None and job.result is not None:
            return {self.parts.lengths: lengths}  # drawn once its id is there
        return {self.parts.lengths: lengths, **view.drawn(self.parts, self.service.example_atlas, True)}

    def show(self, shown: str, colour: str) -> Update:
        """Everything on an atlas."""
        return view.drawn(self.parts, self.service.atlas(shown), not shown, colour)

    def recolour(self, shown: str, colour: str) -> Update:
        """The map of an atlas in the colours of another figure."""
        return view.coloured(self.parts, self.service.atlas(shown), colour)

    def take_clicked(self, point: gr.SelectData, shown: str) -> list[str]:
        """Name the block of a clicked cell in the sidebar."""
        return self.take(str(point.value), shown)

    def take(self, label: str | None, shown: str) -> list[str]:
        """Name a block of an atlas in the sidebar."""
        if label is None or label not in map(name_of, self.service.atlas(shown).blocks):
            raise ConfigError("That block is not in the atlas.", "Choose one that is.")
        return choose(label)

    def json(self, shown: str) -> str:
        """The text of the file that ``ghostlab atlas --out`` writes."""
        return self.service.atlas(shown).to_json()

    def csv(self, shown: str) -> str:
        """One line per block, numbers at full precision."""
        return str(self.service.atlas(shown).to_frame().to_csv(index=False))
