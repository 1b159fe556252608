"""Links to a run and files of it: addresses as the visitor's browser knows them, files made when asked."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import gradio as gr

from ghostlab.config import RunConfig
from ghostlab.report import bundle
from ghostlab.results.run import OPERATOR_FILE, RESULT_FILE, Checkpoint, RunResult
from ghostlab.ui.address import LONGEST, query_of
from ghostlab.ui.page import Outputs, Page, on

MAKING = {"concurrency_id": "files", "concurrency_limit": 2}
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
    gr.Markdown(_WORDS, elem_classes="gl-figure-title")
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
    lacking = gr.Markdown(elem_classes="gl-figure-title", elem_id="no-operators", visible=False)
    stock = gr.Markdown(elem_classes="gl-figure-title", elem_id="stock")
    gr.Markdown(_BACK, elem_classes="gl-figure-title")
    with gr.Row(elem_classes="gl-actions"):
        page.open_file = gr.UploadButton(
            "Open a file", file_types=[".json"], type="binary", size="md", min_width=132, scale=0,
            elem_id="open-file",
        )  # fmt: skip
    ready = gr.DownloadButton("File", visible="hidden", elem_id="ready")

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

    on(
        [page.demo.load, page.shown.change],
        links,
        page.shown,
        [run_link, config_link, files[OPERATOR_FILE], lacking],
    )
    for name, button in files.items():
        made = on(button.click, partial(make, name), page.shown, ready, **MAKING)
        made.success(None, ready, None, js="ghostlab.saveFile")
    return Outputs([command, stock], lambda result: [result.config.to_command(), as_stock(result)])


def as_stock(result: RunResult) -> str:
    """A line for each recovery, or for all that are kept from it by the same; nothing for older results."""
    lines = [f"- {_answer(each)}" for each in result.checkpoints()]
    return "\n".join([_STOCK, "", *lines]) if lines else ""


def _answer(each: Checkpoint) -> str:
    names = ", ".join(f"**{name}**" for name in each.names)
    return f"{names}: no. {each.reason}" if each.reason else f"{names}: yes, `{each.command}`"


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
