"""What the Block map tab does with an atlas: show it, take a block of it, save it. Its job is the app's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import gradio as gr

from ghostlab.errors import ConfigError
from ghostlab.plots.figures.atlas import label as name_of
from ghostlab.ui import picks
from ghostlab.ui.page import QUIET, Page, on, user_errors
from ghostlab.ui.service import requests
from ghostlab.ui.service.service import Service
from ghostlab.ui.sidebar.controls import read
from ghostlab.ui.tabs.atlas import view as tab


class Surveys:
    """Handlers of the Block map tab; they hold no state of any user."""

    def __init__(self, service: Service, controls: Mapping[str, Any]) -> None:
        self.service = service
        self.controls = controls
        self.drawn = [controls[name] for name in tab.DRAWN]

    def open(self, request: gr.Request) -> list[Any]:
        """The lengths and the example, or those of the map that the page's address names."""
        view = self.service.jobs.view(request.query_params.get("atlas", ""))
        lengths = dict(parse_qsl(view.about)).get("lengths", tab.LENGTHS) if view else gr.skip()
        if view is not None and view.result is not None:
            return [lengths, *(gr.skip() for _ in self.drawn)]  # drawn once its id is there
        return [lengths, *tab.render(self.service.example_atlas, True)]

    def bind(self, page: Page) -> None:
        """Wire the tab; blocks that are taken go into the sidebar."""
        own, quiet = self.controls, QUIET
        shown, colour = own["shown"], own["colour"]
        page.found["atlas"] = shown

        def survey(owner: str, lengths: str, *values: Any) -> str:
            config = read(dict(zip(page.controls, values, strict=True)))
            return requests.atlas(self.service, owner, config, lengths)

        page.on_start(own["start"].click, survey, [own["lengths"], *page.controls.values()])
        on(page.demo.load, self.open, None, [own["lengths"], *self.drawn])
        touched = [page.controls["chooser"], page.controls["drop"]]
        shown.change(self.show, [shown, colour], self.drawn, **quiet)
        coloured = [own[name] for name in tab.COLOURED]
        colour.input(self.recolour, [shown, colour], coloured, trigger_mode="always_last", **quiet)
        own["told"].select(self.clicked, shown, touched, **quiet)
        own["take"].input(self.take, [own["take"], shown], touched, **quiet)
        for kind in ("json", "csv"):
            made = own[kind].click(getattr(self, kind), shown, own["file"], **quiet)
            made.success(None, own["file"], None, js=f"(text) => ghostlab.saveText(text, 'atlas.{kind}')")

    def show(self, shown: str, colour: str) -> list[Any]:
        """Everything on an atlas."""
        with user_errors():
            return tab.render(self.service.atlas(shown), not shown, colour)

    def recolour(self, shown: str, colour: str) -> list[Any]:
        """The map of an atlas in the colours of another figure."""
        with user_errors():
            return tab.coloured(self.service.atlas(shown), colour)

    def clicked(self, point: gr.SelectData, shown: str) -> list[str]:
        """Name the block of a clicked cell in the sidebar."""
        return self.take(str(point.value), shown)

    def take(self, label: str | None, shown: str) -> list[str]:
        """Name a block of an atlas in the sidebar."""
        with user_errors():
            if label is None or label not in map(name_of, self.service.atlas(shown).blocks):
                raise ConfigError("That block is not on the map.", "Choose one that is.")
            return picks.named(label)

    def json(self, shown: str) -> str:
        """The text of the file that ``ghostlab atlas --out`` writes."""
        with user_errors():
            return self.service.atlas(shown).to_json()

    def csv(self, shown: str) -> str:
        """One line per block, numbers at full precision."""
        with user_errors():
            return str(self.service.atlas(shown).to_frame().to_csv(index=False))
