"""Links to a run and files of it: addresses as the visitor's browser knows them, files made on a click."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.config import RunConfig
from ghostlab.report import bundle
from ghostlab.results.run import OPERATOR_FILE, RESULT_FILE, RunResult
from ghostlab.ui.address import LONGEST, query_of
from ghostlab.ui.page import Outputs, Page, on
from ghostlab.ui.tabs.panels import prose

_FILES = {
    "report.html": "Report (HTML)",
    RESULT_FILE: "Result (JSON)",
    "tables.zip": "Tables (CSV)",
    OPERATOR_FILE: "Operators",
    "everything.zip": "Everything (ZIP)",
}
_WORDS = (
    "### Downloads\nThe report opens offline with every figure interactive; the toolbar of each figure "
    "saves it as SVG or PNG. The first link reopens this run for as long as this server keeps it. The second "
    "fills in its settings; appended to the address of any other Ghostlab, its query (from `?` on) does the "
    "same."
)
_STOCK = (
    "### Ordinary checkpoints\nAn ordinary checkpoint has the operator merged into its weights: anything "
    "that loads Transformers models loads it, without Ghostlab's code. `result/` is the folder that "
    "`ghostlab run --out` writes, or *Everything* unpacked."
)
_BACK = (
    "Open a `result.json` to see it here, or a JSON file with settings to fill the sidebar. "
    "Nothing is computed until you press Run."
)
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


def build(page: Page) -> Outputs:
    """Command, links, files and a way back in, laid out and wired; returns what a result changes of it."""
    prose(_WORDS)
    command = gr.Code(
        language=None, label="The same run on the command line", interactive=False, buttons=["copy"],
        elem_id="command", lines=1, wrap_lines=True, show_line_numbers=False,
    )  # fmt: skip
    with gr.Row():
        run_link = _link("Link to this run", "run-link")
        config_link = _link("Link that fills in its settings", "config-link")
    with gr.Row(elem_id="downloads", elem_classes="gl-actions"):
        files = {
            name: gr.Button(label, size="md", min_width=132, elem_id=f"get-{name.partition('.')[0]}")
            for name, label in _FILES.items()
        }
    lacking = prose(elem_id="no-operators", visible=False)
    stock = prose(elem_id="stock")
    prose(_BACK)
    with gr.Row(elem_classes="gl-actions"):
        page.open_file = gr.UploadButton(
            "Open a file", file_types=[".json"], type="binary", size="md", min_width=132, scale=0,
            elem_id="open-file",
        )  # fmt: skip

    def links(shown: str, request: gr.Request) -> list[Any]:
        """The two links of a result, whether its operators can be had, and if not, why."""
        result = page.service.find(shown, RunResult)
        if result is None:
            return ["", "", gr.Button(interactive=False), gr.Markdown(visible=False)]
        here, query = address(request), link_query(result.config)
        again = f"{here}/?{query}" if query else "Too long for a link: pass result.json on instead."
        run = f"{here}/?{query_of(page.service, shown)}" if shown else f"{here}/"
        why = without_operators(result)
        return [run, again, gr.Button(interactive=not why), gr.Markdown(why, visible=bool(why))]

    def make(name: str, shown: str) -> str:
        """The path of a file of the shown result, made now."""
        result = page.service.result(shown)
        return str(page.files.make(lambda folder: bundle.write(result, name, folder)))

    places = [run_link, config_link, files[OPERATOR_FILE], lacking]
    on([page.demo.load, page.shown.change], links, page.shown, places)
    offer(files, make, page.shown, "ready")
    return Outputs([command, stock], lambda result: [result.config.to_command(), as_stock(result)])


def offer(
    buttons: Mapping[str, gr.Button], make: Callable[..., str], source: Component, elem_id: str
) -> None:
    """Let each button make its file and the browser save it.

    Args:
        buttons: By name of their file.
        make: Given such a name and the value of ``source``, returns the path of the file.
    """
    ready = gr.DownloadButton("File", visible="hidden", elem_id=elem_id)
    for name, button in buttons.items():
        made = on(
            button.click, partial(make, name), source, ready, concurrency_id="files", concurrency_limit=2
        )
        made.success(None, ready, None, js="ghostlab.saveFile")


def as_stock(result: RunResult) -> str:
    """A line for each recovery, or for several where the same reason rules them out; empty without any."""
    lines = [
        f"- {', '.join(f'**{name}**' for name in each.names)}: "
        + (f"no. {each.reason}" if each.reason else f"yes, `{each.command}`")
        for each in result.checkpoints()
    ]
    return "\n".join([_STOCK, "", *lines]) if lines else ""


def without_operators(result: RunResult) -> str:
    """Why a result has no operators to download; empty where it has."""
    if result.operators:
        return ""
    if any(run.method != "drop" for run in result.runs):
        return (
            "*Operators* is greyed out because this result came without its matrices, as the example and "
            "every opened `result.json` do. Press **Run**: the same run, computed here, has them."
        )
    return "*Operators* is greyed out because this run fitted nothing that could be saved."


def _link(label: str, elem_id: str) -> gr.Textbox:
    return gr.Textbox(
        label=label, interactive=False, buttons=["copy"], max_lines=1, min_width=280, elem_id=elem_id
    )
