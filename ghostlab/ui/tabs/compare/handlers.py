"""What the Compare tab does. The browser keeps the list of runs, as ids and names; the server the results."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gradio as gr

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, GhostlabError, ResultError
from ghostlab.results.compare import ORIGINAL, Side, best_first, sides
from ghostlab.results.run import RunResult
from ghostlab.ui.page import QUIET, Page, Tab, Update, on, user_errors
from ghostlab.ui.tabs.compare import view
from ghostlab.ui.tabs.overview.files import MAKING, link_query

MOST = 40
"""Runs in the list of one visitor; the oldest gives way."""
_LONGEST_NAME = 24
_MARKUP = str.maketrans(dict.fromkeys("<>&`*[]|\\$"))
"""Characters that sentences and figures would take for markup."""


@dataclass(frozen=True)
class Entry:
    """A run in the list: its id, what the visitor calls it, and the query of its configuration."""

    id: str
    name: str
    query: str = ""


def entries(stored: Any) -> list[Entry]:
    """The list as a browser keeps it; what is no entry is left out, for browsers send what they like."""
    read = [_read(item) for item in stored if isinstance(item, dict)] if isinstance(stored, list) else []
    return list({run.id: run for run in read if run is not None}.values())[-MOST:]


def _read(item: dict[Any, Any]) -> Entry | None:
    job_id, name, query = (item.get(key) for key in ("id", "name", "query"))
    if isinstance(job_id, str) and isinstance(name, str) and isinstance(query, str):
        return Entry(job_id, plain(name), query)
    return None


def plain(name: str) -> str:
    """A name that neither sentences nor figures take for markup, and that is not too long."""
    return " ".join(name.translate(_MARKUP).split())[:_LONGEST_NAME].strip()


def to_store(runs: list[Entry]) -> list[dict[str, str]]:
    """The list as JSON values."""
    return [{"id": run.id, "name": run.name, "query": run.query} for run in runs]


def entry(runs: list[Entry], name: str | None) -> Entry:
    """The run of this name.

    Raises:
        ConfigError: If there is none.
    """
    for run in runs:
        if run.name == name:
            return run
    raise ConfigError("No run is chosen.", "Choose one from the list.")


class Row(NamedTuple):
    """A recovery of a run of the list."""

    run: str
    side: Side


Rows = Mapping[str, Row]
"""Rows of all runs that are still here, by what they are called in the two choices."""


def build(page: Page) -> Tab:
    """The tab, laid out and wired."""
    Compare(page, view.build()).bind(page.tab)
    return Tab()


class Compare:
    """Handlers of the tab; they hold no state of any user."""

    def __init__(self, page: Page, parts: view.Parts) -> None:
        self.page = page
        self.service = page.service
        self.parts = parts

    def bind(self, tab: gr.Tab) -> None:
        """Wire the tab; nothing is drawn before it is opened, and each run that is drawn enters the list."""
        parts, runs = self.parts, self.page.runs
        chosen = [runs, parts.first, parts.second]
        listing = [parts.table, parts.gone, parts.first, parts.second, parts.chosen, *parts.comparison]
        on(tab.select, self.show, chosen, listing)
        changes = [
            on(self.page.drawn.change, self.add, [runs, self.page.drawn], runs),
            on(parts.remove.click, self.remove, [runs, parts.chosen], runs),
            on([parts.rename.click, parts.name.submit], self.rename, [runs, parts.chosen, parts.name],
               [runs, parts.name]),
        ]  # fmt: skip
        for change in changes:
            change.success(user_errors()(self.show), chosen, listing, **QUIET)
        inputs = [parts.first.input, parts.second.input]
        on(inputs, self.compare, chosen, parts.comparison, trigger_mode="always_last")
        on(parts.table.select, self.take, chosen, [parts.first, parts.second, *parts.comparison])
        kinds: dict[Literal["csv", "json"], gr.Button] = {"csv": parts.as_csv, "json": parts.as_json}
        for kind, button in kinds.items():
            made = on(button.click, partial(self.export, kind), runs, parts.ready, **MAKING)
            made.success(None, parts.ready, None, js="ghostlab.saveFile")

    # -- the list ----------------------------------------------------------------------------------------

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

    def rename(self, stored: Any, name: str | None, asked: str) -> tuple[list[dict[str, str]], str]:
        """The list with a run under another name, and an empty field."""
        runs, new = entries(stored), plain(asked)
        old = entry(runs, name)
        if not new:
            raise ConfigError("The new name is empty.", "Enter a name.")
        if any(run.name == new for run in runs if run is not old):
            raise ConfigError(f"There is already a run named '{new}'.", "Enter another name.")
        return to_store([replace(run, name=new) if run is old else run for run in runs]), ""

    # -- what is shown -----------------------------------------------------------------------------------

    def rows(self, stored: Any) -> Rows:
        """All rows of the list."""
        found: dict[str, Row] = {}
        for run in entries(stored):
            result = self.service.find(run.id, RunResult)
            for side in () if result is None else sides(result):
                found[f"{run.name}: {side.name}"] = Row(run.name, side)
        return found

    def show(self, stored: Any, first: str | None, second: str | None) -> Update:
        """Table, what is gone, the choices, and the two that are compared."""
        parts, rows, runs = self.parts, self.rows(stored), entries(stored)
        names, best = list(rows), _best(rows)
        first, second = (
            asked if asked in names else default for asked, default in zip((first, second), best, strict=True)
        )
        words = self.gone(runs)
        here = [run.name for run in runs]
        return {
            parts.table: view.listed(view.table(rows.values())) if rows else None,
            parts.gone: gr.Markdown(value=words, visible=bool(words)),
            parts.first: gr.Dropdown(choices=names, value=first),
            parts.second: gr.Dropdown(choices=names, value=second),
            parts.chosen: gr.Dropdown(choices=here, value=here[-1] if here else None),
            **self._comparison(rows, first, second),
        }

    def gone(self, runs: Sequence[Entry]) -> str:
        """Which runs of the list are no longer here, why, and how to have them again."""
        return "\n\n".join(
            f"**{escape(run.name)}**: {self.service.gone(run.id)}{_again(run.query)}"
            for run in runs
            if self.service.find(run.id, RunResult) is None
        )

    def compare(self, stored: Any, first: str | None, second: str | None) -> Update:
        """Everything on two rows."""
        return self._comparison(self.rows(stored), first, second)

    def _comparison(self, rows: Rows, first: str | None, second: str | None) -> Update:
        """Everything on two rows; a sentence when one is missing or both are one."""
        if not rows:
            return view.nothing(self.parts, "There is no run to compare yet: press **Run**.")
        if first is None or second is None or first == second or not {first, second} <= set(rows):
            return view.nothing(self.parts, "Choose two different rows.")
        one, other = rows[first], rows[second]
        if one.run == other.run:
            return view.comparison(self.parts, one.side, other.side)
        named = replace(one.side, name=first), replace(other.side, name=second)
        return view.comparison(self.parts, *named)

    def take(self, stored: Any, first: str | None, second: str | None, event: gr.SelectData) -> Update:
        """The two that are compared after a click on a row: the second becomes the first."""
        rows = self.rows(stored)
        try:
            name = list(rows)[int((event.row_value or [])[0]) - 1]
        except (IndexError, TypeError, ValueError):
            name = ""
        if name in ("", first, second):
            return {self.parts.first: gr.skip()}
        chosen = {self.parts.first: second, self.parts.second: name}
        return {**chosen, **self._comparison(rows, second, name)}

    def export(self, kind: Literal["csv", "json"], stored: Any) -> str:
        """The path of a file with all rows, numbers at full precision."""
        rows = list(self.rows(stored).values())
        if not rows:
            raise ResultError("There is no run to export.", "Press Run first.")
        return str(self.page.files.make(_writer(kind, rows)))


def _writer(kind: Literal["csv", "json"], rows: Sequence[Row]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path, frame = folder / f"ghostlab-runs.{kind}", view.table(rows)
        if kind == "csv":
            frame.to_csv(path, index=False)
            return path
        items = json.loads(frame.to_json(orient="records", double_precision=15))
        for item, (_, side) in zip(items, rows, strict=True):
            item["config"] = side.result.config.to_dict()
        path.write_text(json.dumps(items, indent=1), encoding="utf-8")
        return path

    return write


_LAST = {"drop": 1, ORIGINAL: 2}


def _best(rows: Rows) -> tuple[str | None, str | None]:
    """The two best rows, the better first: recoveries, then plain dropping, then the original."""
    sides_of = {name: side for name, (_, side) in rows.items()}
    ranked = best_first(sides_of, lambda name: sides_of[name].run)
    ordered = sorted(ranked, key=lambda name: _LAST.get(sides_of[name].run.method, 0))
    return (ordered[0], ordered[1]) if len(ordered) > 1 else (None, None)


def _again(query: str) -> str:
    """A link that fills in the settings; the query comes from a browser, so it is read and written anew."""
    try:
        again = link_query(RunConfig.from_query(query)) if query else ""
        return f" [Fill in its settings](?{again})." if again else ""
    except GhostlabError:
        return ""
