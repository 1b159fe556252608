"""Links to a run and files of it: addresses as the visitor's browser knows them, files made when asked."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.config import RunConfig
from ghostlab.report import bundle
from ghostlab.results.run import OPERATOR_FILE, RunResult
from ghostlab.ui.address import LONGEST, of
from ghostlab.ui.page import user_errors
from ghostlab.ui.service.downloads import Outbox
from ghostlab.ui.service.service import Service
from ghostlab.ui.tabs.overview.share import Share, without_operators

MAKING: dict[str, Any] = {
    "show_progress": "hidden",
    "api_visibility": "private",
    "concurrency_id": "files",
    "concurrency_limit": 2,
}
_NAMED = ("model", "text", "drop", "recover")
"""Settings that a link names even where they are the default, so that it says what it is about."""


def address(request: gr.Request) -> str:
    """Where the visitor's browser finds the app, without a slash at the end; behind proxies too.

    As gradio itself decides it: GRADIO_ROOT_PATH, else what the nearest proxy says of its own request.
    """
    root = os.environ.get("GRADIO_ROOT_PATH", "").rstrip("/")
    if root.startswith(("http://", "https://")):
        return root
    host = _first(request.headers.get("x-forwarded-host")) or request.url.netloc
    scheme = _first(request.headers.get("x-forwarded-proto")) or request.url.scheme
    path = root or request.url.path.partition("/gradio_api/")[0].rstrip("/")
    return f"{scheme}://{host}{path}"


def link_query(config: RunConfig) -> str:
    """The query of a link that fills in a configuration; empty if it is too long for one."""
    query = config.to_query(*_NAMED)
    return query if len(query) < LONGEST else ""


def _first(header: str | None) -> str:
    return (header or "").partition(",")[0].strip()


class Sharing:
    """Handlers of the links and files of the shown result."""

    def __init__(self, service: Service, share: Share, outbox: Outbox) -> None:
        self.service = service
        self.share = share
        self.outbox = outbox

    def bind(self, demo: gr.Blocks, shown: Component, quiet: dict[str, Any]) -> None:
        """Wire links and download buttons.

        Args:
            shown: Holds the id of the shown result.
            quiet: Settings of an event that shows no progress.
        """
        share = self.share
        links = [share.run_link, share.config_link, share.files[OPERATOR_FILE], share.lacking]
        demo.load(self.links, shown, links, **quiet)
        shown.change(self.links, shown, links, **quiet)
        for name, button in share.files.items():
            made = button.click(partial(self.make, name), shown, share.ready, **MAKING)
            made.success(None, share.ready, None, js="ghostlab.saveFile")

    def links(self, shown: str, request: gr.Request) -> list[Any]:
        """The two links of a result, whether its operators can be had, and if not, why."""
        result = self.service.find(shown, RunResult)
        if result is None:
            return ["", "", gr.Button(interactive=False), gr.Markdown(visible=False)]
        here, query = address(request), link_query(result.config)
        again = f"{here}/?{query}" if query else "Too long for a link: pass result.json on instead."
        found = f"{here}/?{of(self.service, shown)}" if shown else f"{here}/"
        why = without_operators(result)
        return [found, again, gr.Button(interactive=not why), gr.Markdown(why, visible=bool(why))]

    def make(self, name: str, shown: str) -> str:
        """The path of a file of the shown result, made now."""
        with user_errors():
            result = self.service.result(shown)

            def write(folder: Path) -> Path:
                return bundle.write(result, name, folder)

            return str(self.outbox.make(write))
