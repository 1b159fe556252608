"""Compare: all runs of a visitor in one table, and any two recoveries figure by figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
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
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.catalog import comparison as panels_of
from ghostlab.plots.figures import pairs
from ghostlab.results.compare import Difference, Kind, Side, differences
from ghostlab.results.records import Metric
from ghostlab.ui import explain, html
from ghostlab.ui.page import Update

_LEGEND = (
    "### All runs\nEvery run that you finished, opened by its link or loaded from a file, with one row for "
    "plain dropping and one for each recovery. Held-out figures: *perplexity* with its 95 % interval; *gap*, "
    "the share of the lost log-likelihood that is regained; *KL* and *top-1* agreement against the original; "
    "*expl.*, the share of the gap in the state that is explained on ordinary tokens; *added*, the "
    "operator's parameters. The menu ⋮ of a column sorts. Click a row to compare it; it replaces the one "
    "chosen earlier."
)
_COLUMNS = {
    "no": "No.",
    "run": "Run",
    "cut": "Cut",
    "recovery": "Recovery",
    "perplexity": "Perplexity",
    "gap_closed": "Gap",
    "kl": "KL",
    "top1_agreement": "Top-1",
    "explained_ordinary": "Expl.",
    "parameters_added": "Added",
    "model": "Model",
}
_WIDTHS = ["44px", "88px", "104px", "132px", "152px", "68px", "64px", "74px", "68px", "74px", "168px"]
"""Of the columns. Without the last one, which only several models need, they fit beside the sidebar."""
_LONGEST = 160
"""Characters of a value in the table of settings; a pasted text is longer."""
_PAIR_WIDTHS = ["26%", "21%", "21%", "32%"]
"""Shares, so that the table fits a phone."""
_SHOWN: Mapping[Kind, Any] = {"number": fmt.number, "share": fmt.percent}


@dataclass(frozen=True)
class Parts:
    """The components of this tab.

    Attributes:
        gone: Says which runs of the list are no longer on the server.
        table: All runs.
        first, second: The rows that are compared.
        verdict, pair: A sentence and a table on both.
        settings: What differs between their settings.
        texts_words, texts: What both wrote, with words before it.
        panels: Name of a figure -> its words and its plot.
        chosen, name, rename, remove: To manage the list.
        as_csv, as_json: Buttons that export the table.
        ready: Holds the exported file.
    """

    gone: gr.Markdown
    table: gr.Dataframe
    first: gr.Dropdown
    second: gr.Dropdown
    verdict: gr.Markdown
    pair: gr.Dataframe
    settings: gr.HTML
    texts_words: gr.Markdown
    texts: gr.HTML
    panels: Mapping[str, tuple[gr.Markdown, gr.Plot]]
    chosen: gr.Dropdown
    name: gr.Textbox
    rename: gr.Button
    remove: gr.Button
    as_csv: gr.Button
    as_json: gr.Button
    ready: gr.DownloadButton

    @property
    def comparison(self) -> list[Component]:
        """What :func:`comparison` gives values for."""
        panels = [component for panel in self.panels.values() for component in panel]
        return [self.verdict, self.pair, self.settings, self.texts_words, self.texts, *panels]


def build() -> Parts:
    """Table of runs, choice of two, and everything on them."""
    gr.Markdown(_LEGEND, elem_classes="gl-figure-title")
    gone = gr.Markdown(visible=False, elem_id="gone")
    table = gr.Dataframe(
        interactive=False, show_label=False, label="All runs", column_widths=_WIDTHS, max_height=360,
        wrap=True, elem_id="runs-table",
    )  # fmt: skip
    with gr.Row(elem_classes="gl-actions", equal_height=False):
        chosen = gr.Dropdown([], label="Run", interactive=True, min_width=170, elem_id="compare-run")
        name = gr.Textbox(
            "", label="New name", max_lines=1, max_length=40, min_width=150, elem_id="compare-name"
        )
        rename = gr.Button("Rename", size="md", min_width=90, elem_id="compare-rename")
        remove = gr.Button("Remove", size="md", min_width=90, elem_id="compare-remove")
        as_csv = gr.Button("CSV", size="md", min_width=70, elem_id="compare-csv")
        as_json = gr.Button("JSON", size="md", min_width=70, elem_id="compare-json")
    with gr.Row():
        first, second = (
            gr.Dropdown([], label=label, interactive=True, min_width=260, elem_id=f"compare-{label.lower()}")
            for label in ("First", "Second")
        )
    verdict = gr.Markdown(elem_classes="gl-lead", elem_id="verdict")
    settings = gr.HTML(elem_id="compare-settings")
    pair = gr.Dataframe(
        interactive=False, show_label=False, label="Both, figure by figure", column_widths=_PAIR_WIDTHS,
        max_height=640, wrap=True, elem_id="pair-table",
    )  # fmt: skip
    texts_words = gr.Markdown(elem_classes="gl-figure-title", elem_id="compare-texts-words")
    explain.what_is_this("generated")
    texts = gr.HTML(elem_id="compare-texts")
    return Parts(
        gone, table, first, second, verdict, pair, settings, texts_words, texts, _panels(), chosen, name,
        rename, remove, as_csv, as_json, gr.DownloadButton("File", visible="hidden", elem_id="compare-ready"),
    )  # fmt: skip


def _panels() -> dict[str, tuple[gr.Markdown, gr.Plot]]:
    """Words and figures, two panels beside each other where there is room."""
    panels = {}
    for start in range(0, len(pairs.NAMES), 2):
        with gr.Row(equal_height=False):
            for index, figure in enumerate(pairs.NAMES[start : start + 2], start):
                with gr.Column(min_width=340):
                    words = gr.Markdown(elem_classes="gl-figure-title", elem_id=f"compare-{index}-words")
                    explain.what_is_this(figure)
                    plot = gr.Plot(
                        show_label=False, label=FIGURES[figure].title, container=False,
                        elem_id=f"compare-{index}",
                    )  # fmt: skip
                    panels[figure] = words, plot
    return panels


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


def comparison(parts: Parts, one: Side, other: Side) -> Update:
    """Verdict, tables, texts and panels on two sides."""
    update: Update = {
        parts.verdict: pairs.verdict(one, other),
        parts.pair: paired(differences(one, other), one.name, other.name),
        parts.settings: settings_table(one, other),
        parts.texts_words: f"### {FIGURES['generated'].title}\n{pairs.say_generated(one, other)}",
        parts.texts: texts(one, other),
    }
    for panel in panels_of(one, other):
        words, plot = parts.panels[panel.name]
        update |= {words: f"### {panel.title}\n{panel.sentence}", plot: panel.figures[0]}
    return update


def nothing(parts: Parts, why: str) -> Update:
    """A sentence in place of the comparison."""
    empty: Update = dict.fromkeys(parts.comparison)
    return {**empty, parts.verdict: why}


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
        styler = styler.format(partial(_difference, row=row), subset=pd.IndexSlice[[place], names[3:]])
    return styler


def _difference(value: float, row: Difference) -> str:
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


def table(rows: Iterable[tuple[str, Side]]) -> pd.DataFrame:
    """One row per side under the name of its run, all figures as plain numbers; numbered from 1."""
    frame: pd.DataFrame = pd.DataFrame(
        [{"no": number, "run": name, **_row(side)} for number, (name, side) in enumerate(rows, 1)]
    )
    return frame


def _row(side: Side) -> dict[str, Any]:
    result, run = side.result, side.run
    return {
        "model": result.model.name,
        "cut": ",".join(f"{start}:{stop}" for start, stop in result.cut.blocks),
        "recovery": run.label,
        "perplexity": run.perplexity.value,
        "perplexity_low": run.perplexity.low,
        "perplexity_high": run.perplexity.high,
        "gap_closed": run.gap_closed,
        "kl": run.kl.value,
        "top1_agreement": run.top1_agreement.value,
        "explained_ordinary": run.boundary.explained_ordinary,
        "parameters_added": run.parameters_added,
        "text": result.text.held_out,
        "windows": len(run.window_nll),
    }


def listed(frame: pd.DataFrame) -> Styler:
    """The table as it is shown; numbers stay numbers, so that columns sort as numbers.

    Perplexity stands with its 95 % interval, and the model only where there are several.
    """
    names = [name for name in _COLUMNS if name != "model" or frame["model"].nunique() > 1]
    styler: Styler = frame[names].rename(columns=_COLUMNS).style
    shares = dict.fromkeys(("Gap", "Top-1", "Expl."), fmt.percent)
    formats: dict[str, Any] = {"No.": str, "Cut": _spaced, "KL": fmt.number, "Added": fmt.short, **shares}
    styler = styler.format(formats)
    ends = frame[["perplexity", "perplexity_low", "perplexity_high"]].itertuples(index=False)
    for place, row in enumerate(ends):
        shown = fmt.interval(Metric(*row))
        styler = styler.format(lambda _, shown=shown: shown, subset=pd.IndexSlice[[place], ["Perplexity"]])
    return styler


def _spaced(blocks: str) -> str:
    """With room to break a line at."""
    return blocks.replace(",", ", ")
