"""What the Block map tab does with an atlas: show it, take a block of it, save it. Its job is the app's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import gradio as gr
from gradio.components import Component

from ghostlab.errors import ConfigError
from ghostlab.jobs.record import JobView
from ghostlab.plots.figures import blocks
from ghostlab.ui import picks
from ghostlab.ui.complaints import told_to_user
from ghostlab.ui.service.service import Finding, Service
from ghostlab.ui.shell import Update
from ghostlab.ui.sidebar.sidebar import Sidebar
from ghostlab.ui.tabs.atlas import view as tab

SAVE = """(text) => {
  if (!text) return;
  const url = URL.createObjectURL(new Blob([text]));
  Object.assign(document.createElement("a"), {href: url, download: "NAME"}).click();
  URL.revokeObjectURL(url);
}"""
"""Saves a text that the page holds as a file: nothing is left on the server."""


class Surveys:
    """Handlers of the Block map tab; they hold no state of any user."""

    def __init__(self, service: Service, controls: Mapping[str, Any]) -> None:
        self.service = service
        self.controls = controls
        self.drawn = [controls[name] for name in tab.DRAWN]

    @property
    def opened(self) -> list[Any]:
        """What :meth:`open` may give values for."""
        return [self.controls["lengths"], self.controls["shown"], *self.drawn]

    def open(self, view: JobView[Finding] | None) -> dict[Any, Any]:
        """What a page shows first: the atlas of the job that its address names, or the example."""
        own = self.controls
        update: dict[Any, Any] = {}
        if view is not None:
            update[own["lengths"]] = dict(parse_qsl(view.about)).get("lengths", tab.LENGTHS)
        if view is not None and view.result is not None:
            return {**update, own["shown"]: view.id}
        drawn = tab.render(self.service.example_atlas, True)
        return update | dict(zip(self.drawn, drawn, strict=True))

    def start(
        self,
        sidebar: Sidebar,
        started: Callable[[str], Update],
        outputs: list[Component],
        quiet: dict[str, Any],
    ) -> Any:
        """Wire the button; returns its click event.

        Args:
            sidebar: Says what is surveyed.
            started: What a page is sent once a job is queued.
            outputs: Components of that.
            quiet: Settings of an event that shows no progress.
        """

        def survey(request: gr.Request, lengths: str, *values: Any) -> Update:
            with told_to_user():
                config = sidebar.read(values)
                return started(self.service.survey(config, lengths, request.session_hash or ""))

        asked = [self.controls["lengths"], *sidebar.inputs]
        return self.controls["start"].click(survey, asked, outputs, **quiet)

    def bind(self, sidebar: Sidebar, quiet: dict[str, Any]) -> None:
        """Wire the tab; blocks that are taken go into ``sidebar``."""
        own = self.controls
        shown, colour = own["shown"], own["colour"]
        touched = [sidebar.controls["chooser"], sidebar.controls["drop"]]
        shown.change(self.show, [shown, colour], self.drawn, **quiet)
        coloured = [own[name] for name in tab.COLOURED]
        colour.input(self.recolour, [shown, colour], coloured, trigger_mode="always_last", **quiet)
        own["told"].select(self.clicked, shown, touched, **quiet)
        own["take"].input(self.take, [own["take"], shown], touched, **quiet)
        for kind in ("json", "csv"):
            made = own[kind].click(getattr(self, kind), shown, own["file"], **quiet)
            made.success(None, own["file"], None, js=SAVE.replace("NAME", f"atlas.{kind}"))

    def show(self, shown: str, colour: str) -> list[Any]:
        """Everything on an atlas."""
        with told_to_user():
            return tab.render(self.service.atlas(shown), not shown, colour)

    def recolour(self, shown: str, colour: str) -> list[Any]:
        """The map of an atlas in the colours of another figure."""
        with told_to_user():
            return tab.coloured(self.service.atlas(shown), colour)

    def clicked(self, point: gr.SelectData, shown: str) -> list[str]:
        """Name the block of a clicked cell in the sidebar."""
        return self.take(str(point.value), shown)

    def take(self, label: str | None, shown: str) -> list[str]:
        """Name a block of an atlas in the sidebar."""
        with told_to_user():
            if label is None or label not in map(blocks.label, self.service.atlas(shown).blocks):
                raise ConfigError("That block is not on the map.", "Choose one that is.")
            return picks.named(label)

    def json(self, shown: str) -> str:
        """The text of the file that ``ghostlab atlas --out`` writes."""
        with told_to_user():
            return self.service.atlas(shown).to_json()

    def csv(self, shown: str) -> str:
        """One line per block, numbers at full precision."""
        with told_to_user():
            return str(self.service.atlas(shown).to_frame().to_csv(index=False))
