"""What the Compare tab does. The visitor's browser holds the list of runs, as ids; the store the results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, Literal

import gradio as gr
from gradio.components import Component

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, GhostlabError, ResultError
from ghostlab.results.compare import ORIGINAL, Side, best_first, sides
from ghostlab.results.run import RunResult
from ghostlab.ui.page import user_errors
from ghostlab.ui.service.downloads import Outbox
from ghostlab.ui.service.service import Service
from ghostlab.ui.tabs.compare.entries import MOST, Entry, entries, named, plain, to_store
from ghostlab.ui.tabs.compare.runs import listed, table
from ghostlab.ui.tabs.compare.view import Comparing, compared
from ghostlab.ui.tabs.overview.files import MAKING, link_query

Row = tuple[str, Side]


class Compared:
    """Handlers of the Compare tab; they hold no state of any user."""

    def __init__(self, service: Service, parts: Comparing, outbox: Outbox) -> None:
        self.service = service
        self.parts = parts
        self.outbox = outbox

    def bind(self, tab: gr.Tab, drawn: Component, quiet: dict[str, Any]) -> None:
        """Wire the tab.

        Args:
            tab: The tab itself: nothing is drawn before it is opened.
            drawn: Holds the id of the run whose figures are shown; each new one enters the list.
            quiet: Settings of an event that shows no progress.
        """
        parts = self.parts
        chosen = [parts.kept, parts.first, parts.second]
        listing = [parts.table, parts.gone, parts.first, parts.second, parts.chosen]
        show: dict[str, Any] = {
            "fn": self.show,
            "inputs": chosen,
            "outputs": [*listing, *parts.compared],
            **quiet,
        }
        tab.select(**show)
        drawn.change(self.add, [parts.kept, drawn], parts.kept, **quiet).then(**show)
        parts.remove.click(self.remove, [parts.kept, parts.chosen], parts.kept, **quiet).success(**show)
        renaming = [parts.kept, parts.chosen, parts.name]
        for event in (parts.rename.click, parts.name.submit):
            event(self.rename, renaming, [parts.kept, parts.name], **quiet).success(**show)
        gr.on(
            [parts.first.input, parts.second.input], self.compare, chosen, parts.compared,
            trigger_mode="always_last", **quiet,
        )  # fmt: skip
        taken = parts.table.select(self.take, chosen, [parts.first, parts.second], **quiet)
        taken.then(self.compare, chosen, parts.compared, **quiet)
        kinds: tuple[tuple[gr.Button, Literal["csv", "json"]], ...] = (
            (parts.as_csv, "csv"), (parts.as_json, "json"),
        )  # fmt: skip
        for button, kind in kinds:
            made = button.click(partial(self.export, kind), parts.kept, parts.ready, **MAKING)
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
        with user_errors():
            runs = entries(stored)
            gone = named(runs, name)
            if len(runs) == 1:
                raise ConfigError(f"'{gone.name}' is the last run of the list.", "Add another one first.")
            return to_store([run for run in runs if run is not gone])

    def rename(self, stored: Any, name: str | None, asked: str) -> tuple[list[dict[str, str]], str]:
        """The list with a run under another name, and an empty field."""
        with user_errors():
            runs, new = entries(stored), plain(asked)
            old = named(runs, name)
            if not new:
                raise ConfigError("The new name is empty.", "Write one.")
            if any(run.name == new for run in runs if run is not old):
                raise ConfigError(f"There is a run named '{new}' already.", "Write another name.")
            return to_store([replace(run, name=new) if run is old else run for run in runs]), ""

    # -- what is shown -----------------------------------------------------------------------------------

    def rows(self, stored: Any) -> dict[str, Row]:
        """What a row is called in the lists -> name of its run and recovery, for all that are still here."""
        found: dict[str, Row] = {}
        for run in entries(stored):
            result = self.service.find(run.id, RunResult)
            for side in () if result is None else sides(result):
                found[f"{run.name}: {side.name}"] = (run.name, side)
        return found

    def show(self, stored: Any, first: str | None, second: str | None) -> list[Any]:
        """Table, what is gone, the choices, and the two that are compared."""
        rows, runs = self.rows(stored), entries(stored)
        names, best = list(rows), _best(rows)
        first, second = (
            asked if asked in names else default for asked, default in zip((first, second), best, strict=True)
        )
        words = self.gone(runs)
        here = [run.name for run in runs]
        return [
            listed(table(rows.values())) if rows else None,
            gr.Markdown(value=words, visible=bool(words)),
            gr.Dropdown(choices=names, value=first),
            gr.Dropdown(choices=names, value=second),
            gr.Dropdown(choices=here, value=here[-1] if here else None),
            *self.compare(stored, first, second),
        ]

    def gone(self, runs: list[Entry]) -> str:
        """Which runs of the list are no longer here, why, and how to have them again."""
        return "\n\n".join(
            f"**{escape(run.name)}**: {self.service.gone(run.id)}{_again(run.query)}"
            for run in runs
            if self.service.find(run.id, RunResult) is None
        )

    def compare(self, stored: Any, first: str | None, second: str | None) -> list[Any]:
        """Everything on two rows; nothing when one is missing or both are one."""
        rows = self.rows(stored)
        if first is None or second is None or first == second or not {first, second} <= set(rows):
            words = "Choose two different rows." if rows else "There is no run to compare yet: press **Run**."
            return [words, None, "", *("" if i % 2 == 0 else None for i in range(len(self.parts.places) - 1))]
        with user_errors():
            return compared(*_named_apart(first, second, rows))

    def take(
        self, stored: Any, first: str | None, second: str | None, event: gr.SelectData
    ) -> tuple[str | None, str | None]:
        """The two that are compared after a click on a row: the second becomes the first."""
        row = event.row_value or []
        names = list(self.rows(stored))
        try:
            name = names[int(row[0]) - 1]
        except (IndexError, TypeError, ValueError):
            return first, second
        return (first, second) if name in (first, second) else (second, name)

    def export(self, kind: Literal["csv", "json"], stored: Any) -> str:
        """The path of a file with all rows, numbers at full precision."""
        with user_errors():
            rows = list(self.rows(stored).values())
            if not rows:
                raise ResultError("There is no run to export.", "Press Run first.")
            return str(self.outbox.make(_writer(kind, rows)))


def _writer(kind: Literal["csv", "json"], rows: list[Row]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path, frame = folder / f"ghostlab-runs.{kind}", table(rows)
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


def _best(rows: dict[str, Row]) -> tuple[str | None, str | None]:
    """The two best rows, the better first: recoveries, then plain dropping, then the original."""
    sides_of = {name: side for name, (_, side) in rows.items()}
    ranked = best_first(sides_of, lambda name: sides_of[name].run)
    ordered = sorted(ranked, key=lambda name: _LAST.get(sides_of[name].run.method, 0))
    return (ordered[0], ordered[1]) if len(ordered) > 1 else (None, None)


def _named_apart(first: str, second: str, rows: dict[str, Row]) -> tuple[Side, Side]:
    """The two sides, under short names where they are of one run."""
    (run, one), (other_run, other) = rows[first], rows[second]
    if run == other_run:
        return one, other
    return replace(one, name=first), replace(other, name=second)


def _again(query: str) -> str:
    """A link that fills in the settings; the query comes from a browser, so it is read and written anew."""
    try:
        again = link_query(RunConfig.from_query(query)) if query else ""
        return f" [Fill in its settings](?{again})." if again else ""
    except GhostlabError:
        return ""
