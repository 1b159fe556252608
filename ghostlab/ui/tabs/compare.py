"""Compare: all runs of a visitor in one table, and any two of their variants figure by figure.

The browser keeps the list of runs, as ids and names; the server keeps the results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

import gradio as gr

from ghostlab.config import RunConfig, differing
from ghostlab.errors import ConfigError, GhostlabError, ResultError
from ghostlab.plots.catalog import FIGURES, comparison
from ghostlab.plots.figures import pairs
from ghostlab.results.compare import ORIGINAL, Side, best_first, differences, sides
from ghostlab.results.run import RunResult
from ghostlab.ui import explain, html
from ghostlab.ui.page import QUIET, Page, Tab, Update, on, user_errors
from ghostlab.ui.tabs import panels, tables
from ghostlab.ui.tabs.downloads import link_query, offer

MOST = 40
"""Runs in the list of one visitor; the oldest gives way."""
_LONGEST_NAME = 24
_LONGEST_VALUE = 160
"""Characters of a value in the table of settings; a pasted text is longer."""
_MARKUP = str.maketrans(dict.fromkeys("<>&`*[]|\\$"))
"""Characters that sentences and figures would take for markup."""
_INTRO = (
    "### All runs\nEvery run that you finished, opened by its link or loaded from a file, with one row for "
    "plain dropping and one for each recovery. Held-out figures: *perplexity* with its 95 % interval; *gap*, "
    "the share of the lost log-likelihood that is regained; *KL* and *top-1* agreement against the original; "
    "*expl.*, the share of the gap in the state that is explained on ordinary tokens; *added*, the "
    "operator's parameters. The menu ⋮ of a column sorts. Click a row to compare it; it replaces the one "
    "chosen earlier."
)


def build(page: Page) -> Tab:
    """The tab, laid out and wired."""
    Compare(page).bind(page.tab)
    return Tab()


# -- the list of runs ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A run in the list: its id, what the visitor calls it, and the query of its configuration."""

    id: str
    name: str
    query: str = ""


def entries(stored: Any) -> list[Entry]:
    """The list as a browser keeps it; what is no entry is left out, for browsers send what they like."""
    runs = {}
    for item in stored if isinstance(stored, list) else []:
        match item:
            case {"id": str(job_id), "name": str(name), "query": str(query)}:
                runs[job_id] = Entry(job_id, plain(name), query)
    return list(runs.values())[-MOST:]


def plain(name: str) -> str:
    """A name that neither sentences nor figures take for markup, and that is not too long."""
    return " ".join(name.translate(_MARKUP).split())[:_LONGEST_NAME].strip()


def to_store(runs: Sequence[Entry]) -> list[dict[str, str]]:
    """The list as JSON values."""
    return [asdict(run) for run in runs]


def entry(runs: Sequence[Entry], name: str | None) -> Entry:
    """The run of this name.

    Raises:
        ConfigError: If there is none.
    """
    for run in runs:
        if run.name == name:
            return run
    raise ConfigError("No run is chosen.", "Choose one from the list.")


class Row(NamedTuple):
    """A variant of a run of the list."""

    run: str
    side: Side


Rows = Mapping[str, Row]
"""Rows of all runs that are still here, by what they are called in the two choices."""


# -- the tab ---------------------------------------------------------------------------------------------


class Compare:
    """The components of the tab and their handlers, which hold no state of any visitor.

    Attributes:
        gone: Says which runs of the list are no longer on the server.
        first, second: The rows that are compared.
        verdict, pair: A sentence and a table on both.
        settings: What differs between their settings.
        panels: Name of a figure -> its words and its plot.
        run: The run of the list that is renamed or removed.
        comparison: What the choice of two rows changes.
    """

    def __init__(self, page: Page) -> None:
        self.page, self.service = page, page.service
        panels.prose(_INTRO)
        self.gone = gr.Markdown(visible=False, elem_id="gone")
        self.table = panels.table(
            "All runs", "runs-table", column_widths=tables.RUN_WIDTHS, max_height=360, wrap=True
        )
        with gr.Row(elem_classes="gl-actions", equal_height=False):
            self.run = gr.Dropdown([], label="Run", interactive=True, min_width=170, elem_id="compare-run")
            self.name = gr.Textbox(
                "", label="New name", max_lines=1, max_length=40, min_width=150, elem_id="compare-name"
            )
            self.rename_button, self.remove_button, csv, json_ = (
                gr.Button(label, size="md", min_width=70, elem_id=f"compare-{label.lower()}")
                for label in ("Rename", "Remove", "CSV", "JSON")
            )
        with gr.Row():
            self.first, self.second = (
                gr.Dropdown(
                    [], label=label, interactive=True, min_width=260, elem_id=f"compare-{label.lower()}"
                )
                for label in ("First", "Second")
            )
        self.verdict = gr.Markdown(elem_classes="gl-lead", elem_id="verdict")
        self.settings = gr.HTML(elem_id="compare-settings")
        self.pair = panels.table(
            "Both, figure by figure",
            "pair-table",
            column_widths=tables.PAIR_WIDTHS,
            max_height=640,
            wrap=True,
        )
        self.texts_words = panels.prose(elem_id="compare-texts-words")
        explain.what_is_this("generated")
        self.texts = gr.HTML(elem_id="compare-texts")
        self.panels = {}
        for start in range(0, len(pairs.NAMES), 2):
            with gr.Row(equal_height=False):
                for index, name in enumerate(pairs.NAMES[start : start + 2], start):
                    with gr.Column(min_width=340):
                        self.panels[name] = panels.slot(FIGURES[name], f"compare-{index}")
        self.comparison = [self.verdict, self.pair, self.settings, self.texts_words, self.texts]
        self.comparison += [place for places in self.panels.values() for place in places]
        offer({"csv": csv, "json": json_}, self.export, page.runs, "compare-ready")

    def bind(self, tab: gr.Tab) -> None:
        """Wire the tab; nothing is drawn before it is opened, and each run that is drawn enters the list."""
        runs, drawn = self.page.runs, self.page.drawn
        pair = [runs, self.first, self.second]
        listing = [self.table, self.gone, self.first, self.second, self.run, *self.comparison]
        on(tab.select, self.show, pair, listing)
        renames = [self.rename_button.click, self.name.submit]
        for change in (
            on(drawn.change, self.add, [runs, drawn], runs),
            on(self.remove_button.click, self.remove, [runs, self.run], runs),
            on(renames, self.rename, [runs, self.run, self.name], [runs, self.name]),
        ):
            change.success(user_errors()(self.show), pair, listing, **QUIET)
        choices = [self.first.input, self.second.input]
        on(choices, self.compare, pair, self.comparison, trigger_mode="always_last")
        on(self.table.select, self.take, pair, [self.first, self.second, *self.comparison])

    # -- changes of the list -----------------------------------------------------------------------------

    def add(self, stored: Any, drawn: str) -> list[dict[str, str]]:
        """The list with the run that is drawn now."""
        runs = entries(stored)
        result = self.service.find(drawn, RunResult)
        if drawn and result is not None and all(run.id != drawn for run in runs):
            used = {run.name for run in runs}
            name = next(name for n in range(1, MOST + 2) if (name := f"Run {n}") not in used)
            runs = [*runs, Entry(drawn, name, link_query(result.config))][-MOST:]
        return to_store(runs)

    def remove(self, stored: Any, name: str | None) -> list[dict[str, str]]:
        """The list without a run."""
        runs = entries(stored)
        gone = entry(runs, name)
        if len(runs) == 1:
            raise ConfigError(f"'{gone.name}' is the only run in the list.", "Add another one first.")
        return to_store([run for run in runs if run is not gone])

    def rename(self, stored: Any, name: str | None, text: str) -> tuple[list[dict[str, str]], str]:
        """The list with a run under another name, and an empty field."""
        runs, new = entries(stored), plain(text)
        old = entry(runs, name)
        if not new:
            raise ConfigError("The new name is empty.", "Enter a name.")
        if any(run.name == new for run in runs if run is not old):
            raise ConfigError(f"There is already a run named '{new}'.", "Enter another name.")
        return to_store([replace(run, name=new) if run is old else run for run in runs]), ""

    # -- what the tab shows ------------------------------------------------------------------------------

    def rows(self, stored: Any) -> Rows:
        """All rows of the list."""
        results = [(run.name, self.service.find(run.id, RunResult)) for run in entries(stored)]
        return {
            f"{name}: {side.name}": Row(name, side)
            for name, result in results
            if result is not None
            for side in sides(result)
        }

    def show(self, stored: Any, first: str | None, second: str | None) -> Update:
        """Table, what is gone, the choices, and the two that are compared."""
        rows, runs = self.rows(stored), entries(stored)
        labels, names = list(rows), [run.name for run in runs]
        first, second = (
            label if label in rows else default
            for label, default in zip((first, second), _best(rows), strict=True)
        )
        gone = self.missing(runs)
        return {
            self.table: tables.runs(tables.run_frame(rows.values())) if rows else None,
            self.gone: gr.Markdown(value=gone, visible=bool(gone)),
            self.first: gr.Dropdown(choices=labels, value=first),
            self.second: gr.Dropdown(choices=labels, value=second),
            self.run: gr.Dropdown(choices=names, value=names[-1] if names else None),
            **self._compare(rows, first, second),
        }

    def missing(self, runs: Sequence[Entry]) -> str:
        """Which runs of the list are no longer here, why, and how to have them again."""
        return "\n\n".join(
            f"**{escape(run.name)}**: {self.service.gone(run.id)}{_again(run.query)}"
            for run in runs
            if self.service.find(run.id, RunResult) is None
        )

    def compare(self, stored: Any, first: str | None, second: str | None) -> Update:
        """Everything on two rows."""
        return self._compare(self.rows(stored), first, second)

    def _compare(self, rows: Rows, first: str | None, second: str | None) -> Update:
        """Everything on two rows; a sentence when one is missing or both are one."""
        update: Update = dict.fromkeys(self.comparison)
        if not rows:
            return {**update, self.verdict: "There is no run to compare yet: press **Run**."}
        if first is None or second is None or first == second or not {first, second} <= set(rows):
            return {**update, self.verdict: "Choose two different rows."}
        one, other = rows[first].side, rows[second].side
        if rows[first].run != rows[second].run:
            one, other = replace(one, name=first), replace(other, name=second)
        update |= {
            self.verdict: pairs.verdict(one, other),
            self.pair: tables.pair(differences(one, other), one.name, other.name),
            self.settings: settings_table(one, other),
            self.texts_words: panels.heading(FIGURES["generated"].title, pairs.say_generated(one, other)),
            self.texts: texts(one, other),
        }
        for panel in comparison(one, other):
            words, plot = self.panels[panel.name]
            update |= {words: panels.heading(panel.title, panel.sentence), plot: panel.figures[0]}
        return update

    def take(self, stored: Any, first: str | None, second: str | None, event: gr.SelectData) -> Update:
        """The two that are compared after a click on a row: the second becomes the first."""
        rows = self.rows(stored)
        try:
            name = list(rows)[int((event.row_value or [])[0]) - 1]
        except (IndexError, TypeError, ValueError):
            name = ""
        if name in ("", first, second):
            return {self.first: gr.skip()}
        return {self.first: second, self.second: name, **self._compare(rows, second, name)}

    def export(self, kind: str, stored: Any) -> str:
        """The path of a CSV or JSON file with all rows, numbers at full precision."""
        rows = list(self.rows(stored).values())
        if not rows:
            raise ResultError("There is no run to export.", "Press Run first.")
        return str(self.page.files.make(partial(_write, kind, rows)))


def _write(kind: str, rows: Sequence[Row], folder: Path) -> Path:
    path, frame = folder / f"ghostlab-runs.{kind}", tables.run_frame(rows)
    if kind == "csv":
        frame.to_csv(path, index=False)
        return path
    items = json.loads(frame.to_json(orient="records", double_precision=15))
    for item, (_, side) in zip(items, rows, strict=True):
        item["config"] = side.result.config.to_dict()
    path.write_text(json.dumps(items, indent=1), encoding="utf-8")
    return path


_LAST = {"drop": 1, ORIGINAL: 2}


def _best(rows: Rows) -> tuple[str | None, str | None]:
    """The two best rows, the better first: recoveries, then plain dropping, then the original."""
    ranked = best_first(rows, lambda name: rows[name].side.run)
    ordered = sorted(ranked, key=lambda name: _LAST.get(rows[name].side.run.method, 0))
    return (ordered[0], ordered[1]) if len(ordered) > 1 else (None, None)


def _again(query: str) -> str:
    """A link that fills in the settings; the query comes from a browser, so it is read and written anew."""
    try:
        again = link_query(RunConfig.from_query(query)) if query else ""
        return f" [Fill in its settings](?{again})." if again else ""
    except GhostlabError:
        return ""


def settings_table(one: Side, other: Side) -> str:
    """A short table of the settings in which both runs differ."""
    if one.result is other.result:
        return html.piece("no_differences", "Both are of one run, with the same settings.")
    rows = differing(one.result.config, other.result.config)
    if not rows:
        return html.piece("no_differences", "Both runs have the same settings.")
    short = partial(shorten, width=_LONGEST_VALUE, placeholder="…")
    return html.piece(
        "differences", ["Setting", one.name, other.name], [(name, short(a), short(b)) for name, a, b in rows]
    )


def texts(one: Side, other: Side) -> str:
    """What both wrote, side by side."""
    return html.columns(
        [
            html.Column(side.name, look.colour, side.result.config.prompt, pairs.continuation(side))
            for side, look in zip((one, other), pairs.looks(one, other), strict=True)
        ]
    )
