"""The part of the Overview that lets one take a result along: command, links, files, and a way back in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import gradio as gr

from ghostlab.results.run import OPERATOR_FILE, RESULT_FILE, Checkpoint, RunResult

_FILES = {
    "report.html": "Report (HTML)",
    RESULT_FILE: "Result (JSON)",
    "tables.zip": "Tables (CSV)",
    OPERATOR_FILE: "Operators",
    "everything.zip": "Everything (ZIP)",
}
_WORDS = (
    "### Take it along\nThe report opens offline with every figure interactive; the bar of each saves it "
    "as SVG or PNG. The first link reopens this run while this server remembers it. The second fills in its "
    "settings; what follows its question mark does so after the address of any other Ghostlab."
)
_STOCK = (
    "### Ordinary checkpoints\nAn ordinary checkpoint holds the operator in its weights, so that whatever "
    "reads models of Transformers reads it, without code of Ghostlab's. `result/` is the folder that "
    "`ghostlab run --out` writes, or *Everything* unpacked."
)
_BACK = (
    "Open a `result.json` to see it here, or a JSON file with settings to fill the sidebar. "
    "Nothing is computed until you press Run."
)


@dataclass(frozen=True)
class Share:
    """The components of this part.

    Attributes:
        command: The ``ghostlab run`` line.
        run_link, config_link: Absolute addresses.
        files: Name of a file -> the button that makes it.
        lacking: Says why the operators cannot be had; hidden where they can.
        stock: Says which recoveries can be ordinary checkpoints, and why not the others.
        ready: Holds the file that was made last; a script saves it from there.
        upload: Takes a file in.
    """

    command: gr.Code
    run_link: gr.Textbox
    config_link: gr.Textbox
    files: Mapping[str, gr.Button]
    lacking: gr.Markdown
    stock: gr.Markdown
    ready: gr.DownloadButton
    upload: gr.UploadButton


def build() -> Share:
    """Lay this part out."""
    gr.Markdown(_WORDS, elem_classes="gl-figure-title")
    command = gr.Code(
        language=None,
        label="The same run on the command line",
        interactive=False,
        buttons=["copy"],
        elem_id="command",
        lines=1,
        wrap_lines=True,
        show_line_numbers=False,
    )
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
        upload = gr.UploadButton(
            "Open a file", file_types=[".json"], type="binary", size="md", min_width=132, scale=0,
            elem_id="open-file",
        )  # fmt: skip
    ready = gr.DownloadButton("File", visible="hidden", elem_id="ready")
    return Share(command, run_link, config_link, files, lacking, stock, ready, upload)


def as_stock(result: RunResult) -> str:
    """A line for each recovery, or for all that are kept from it by the same; nothing for older results."""
    lines = [f"- {_answer(each)}" for each in result.checkpoints()]
    return "\n".join([_STOCK, "", *lines]) if lines else ""


def _answer(each: Checkpoint) -> str:
    names = ", ".join(f"**{name}**" for name in each.names)
    return f"{names}: no. {each.reason}" if each.reason else f"{names}: yes, `{each.command}`"


def without_operators(result: RunResult) -> str:
    """Why a result has no operators to take along; empty where it has."""
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
