"""Compare: all runs of a visitor in one table, and any two recoveries figure by figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from textwrap import shorten
from typing import Any

import gradio as gr
import pandas as pd
from gradio.components import Component
from pandas.io.formats.style import Styler

from ghostlab.config import differing
from ghostlab.plots import formats as fmt
from ghostlab.plots.catalog import FIGURES, comparison
from ghostlab.plots.figures import pairs
from ghostlab.results.compare import Difference, Kind, Side, differences
from ghostlab.ui import explain, html
from ghostlab.ui.tabs.compare.runs import WIDTHS
from ghostlab.ui.tabs.view import Outputs, Page, Tab

_LEGEND = (
    "### All runs\nEvery run that you finished, opened by its link or loaded from a file: plain dropping and "
    "each recovery as a row. Held-out figures: *perplexity* with its 95 % interval; *gap*, the share of the "
    "lost log-likelihood that is regained; *KL* and *top-1* agreement against the original; *expl.*, the "
    "share of the gap in the state that is explained on ordinary tokens; *added*, the operator's parameters. "
    "The menu \N{VERTICAL ELLIPSIS} of a column sorts; click a row to compare it: it takes the place of the "
    "one chosen earlier."
)
_LONGEST = 160
"""Characters of a value in the table of settings; a pasted text is longer."""
_PAIR_WIDTHS = ["26%", "21%", "21%", "32%"]
"""Shares, so that the table fits a phone."""
_SHOWN: Mapping[Kind, Any] = {"number": fmt.number, "share": fmt.percent}


@dataclass(frozen=True)
class Comparing:
    """The components of this tab.

    Attributes:
        kept: The visitor's runs as a list of ``{id, name, query}``, in the browser.
        gone: Says which of them are no longer on the server.
        table: All of them.
        first, second: The rows that are compared.
        verdict, pair: A sentence and a table on both.
        places: What differs, both texts with words before them, then words and figure of each panel.
        chosen, name, rename, remove: To manage the list.
        as_csv, as_json: Buttons that export the table.
        ready: Holds the exported file.
    """

    kept: gr.BrowserState
    gone: gr.Markdown
    table: gr.Dataframe
    first: gr.Dropdown
    second: gr.Dropdown
    verdict: gr.Markdown
    pair: gr.Dataframe
    places: list[Component]
    chosen: gr.Dropdown
    name: gr.Textbox
    rename: gr.Button
    remove: gr.Button
    as_csv: gr.Button
    as_json: gr.Button
    ready: gr.DownloadButton

    @property
    def compared(self) -> list[Component]:
        """What :func:`compared` gives values for."""
        return [self.verdict, self.pair, *self.places]


def build(page: Page) -> Tab:
    """Table of runs, choice of two, and everything on them; wired by the handlers beside."""
    gr.Markdown(_LEGEND, elem_classes="gl-figure-title")
    gone = gr.Markdown(visible=False, elem_id="gone")
    table = gr.Dataframe(
        interactive=False, show_label=False, label="All runs", column_widths=WIDTHS, max_height=360,
        wrap=True, elem_id="runs-table",
    )  # fmt: skip
    managing = _manage()
    with gr.Row():
        first = _side("First", "compare-first")
        second = _side("Second", "compare-second")
    verdict = gr.Markdown(elem_classes="gl-lead", elem_id="verdict")
    settings = gr.HTML(elem_id="compare-settings")
    pair = gr.Dataframe(
        interactive=False, show_label=False, label="Both, figure by figure", column_widths=_PAIR_WIDTHS,
        max_height=640, wrap=True, elem_id="pair-table",
    )  # fmt: skip
    said = gr.Markdown(elem_classes="gl-figure-title", elem_id="compare-texts-words")
    explain.what_is_this("generated")
    places = [settings, said, gr.HTML(elem_id="compare-texts"), *_places()]
    ready = gr.DownloadButton("File", visible="hidden", elem_id="compare-ready")
    parts = Comparing(page.runs, gone, table, first, second, verdict, pair, places, *managing, ready)
    return Tab(Outputs(), parts=parts)


def _manage() -> tuple[gr.Dropdown, gr.Textbox, gr.Button, gr.Button, gr.Button, gr.Button]:
    with gr.Row(elem_classes="gl-actions", equal_height=False):
        chosen = gr.Dropdown(
            [], label="A run of the list", interactive=True, min_width=170, elem_id="compare-run"
        )
        name = gr.Textbox(
            "", label="New name", max_lines=1, max_length=40, min_width=150, elem_id="compare-name"
        )
        rename = gr.Button("Rename", size="md", min_width=90, elem_id="compare-rename")
        remove = gr.Button("Remove", size="md", min_width=90, elem_id="compare-remove")
        as_csv = gr.Button("CSV", size="md", min_width=70, elem_id="compare-csv")
        as_json = gr.Button("JSON", size="md", min_width=70, elem_id="compare-json")
    return chosen, name, rename, remove, as_csv, as_json


def _side(label: str, elem_id: str) -> gr.Dropdown:
    return gr.Dropdown([], label=label, interactive=True, min_width=260, elem_id=elem_id)


def _places() -> list[Component]:
    """Words and figures, two panels beside each other where there is room."""
    places: list[Component] = []
    for start in range(0, len(pairs.NAMES), 2):
        with gr.Row(equal_height=False):
            for index in range(start, min(start + 2, len(pairs.NAMES))):
                with gr.Column(min_width=340):
                    places += _place(index, pairs.NAMES[index])
    return places


def _place(index: int, figure: str) -> list[Component]:
    words = gr.Markdown(elem_classes="gl-figure-title", elem_id=f"compare-{index}-words")
    explain.what_is_this(figure)
    plot = gr.Plot(show_label=False, label=FIGURES[figure].title, container=False, elem_id=f"compare-{index}")
    return [words, plot]


def settings_table(one: Side, other: Side) -> str:
    """A short table of the settings in which both runs differ."""
    if one.result is other.result:
        return html.no_differences("Both are of one run, with the same settings.")
    rows = differing(one.result.config, other.result.config)
    if not rows:
        return html.no_differences("Both runs have the same settings.")
    short = partial(shorten, width=_LONGEST, placeholder="…")
    return html.differences(one.name, other.name, [(name, short(a), short(b)) for name, a, b in rows])


def texts(one: Side, other: Side) -> str:
    """What both wrote, side by side."""
    looks = pairs.looks(one, other)
    return html.columns(
        [
            html.Column(side.name, look.colour, side.result.config.prompt, pairs.continuation(side))
            for side, look in zip((one, other), looks, strict=True)
        ]
    )


def compared(one: Side, other: Side) -> list[Any]:
    """Verdict, table and panels on two sides."""
    drawn = comparison(one, other)
    places = [part for panel in drawn for part in (f"### {panel.title}\n{panel.sentence}", panel.figures[0])]
    table = paired(differences(one, other), one.name, other.name)
    wrote = f"### {FIGURES['generated'].title}\n{pairs.say_generated(one, other)}"
    return [
        pairs.verdict(one, other),
        table,
        settings_table(one, other),
        wrote,
        texts(one, other),
        *places,
    ]


def paired(rows: list[Difference], one: str, other: str) -> Styler:
    """Both sides and their difference with its paired 95 % interval, each figure in its own format."""
    names = ["Figure", one, other if other != one else f"{other} (again)", "Difference (95 %)"]
    values = [[row.figure, row.one, row.other, row.difference] for row in rows]
    frame = pd.DataFrame(values, columns=names)
    frame[names[1:]] = frame[names[1:]].astype(float)
    styler: Styler = frame.style
    for place, row in enumerate(rows):
        shown: Any = _SHOWN.get(row.kind, _count)
        styler = styler.format(shown, subset=pd.IndexSlice[[place], names[1:3]])
        styler = styler.format(partial(_apart, row=row), subset=pd.IndexSlice[[place], names[3:]])
    return styler


def _apart(value: float, row: Difference) -> str:
    """A difference and the ends of its interval, where there is one."""
    spell: Any = _points if row.kind == "share" else _SHOWN.get(row.kind, _count)
    if row.low is None or row.high is None:
        return str(spell(value))
    low, high = (spell(end).partition(" point")[0] for end in (row.low, row.high))
    return f"{spell(value)} ({low} to {high})"


def _points(value: float) -> str:
    return fmt.points(value) if math.isfinite(value) else fmt.NONE


def _count(value: float) -> str:
    return fmt.count(int(value)) if math.isfinite(value) else fmt.NONE
