"""What an operator or a criterion is, in Markdown: one sentence, its formula, what it costs, its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ghostlab.spec import GROUPS, Group, Option

LATEX = [{"left": "$$", "right": "$$", "display": True}]
"""Formulas stand on lines of their own: a narrow sidebar can scroll one without breaking it."""


class Entry(Protocol):
    """What every registry entry tells people."""

    @property
    def name(self) -> str:
        """Registry name."""

    @property
    def title(self) -> str:
        """Name for people."""

    @property
    def summary(self) -> str:
        """One sentence."""

    @property
    def formula(self) -> str:
        """The same in LaTeX."""

    @property
    def source(self) -> str:
        """Where it comes from."""

    @property
    def options(self) -> Mapping[str, Option]:
        """What can be asked of it."""


class Operator(Entry, Protocol):
    """A recovery method."""

    @property
    def group(self) -> Group:
        """Which kind of recovery it is."""

    @property
    def adds(self) -> str:
        """Parameters added."""


class Criterion(Entry, Protocol):
    """A selection criterion."""

    @property
    def unit(self) -> str:
        """Whether it scores layers or blocks."""

    @property
    def cost(self) -> str:
        """Passes over the calibration text."""


def operators(entries: Iterable[Operator]) -> str:
    """All operators, under the headings of their groups."""
    known = list(entries)
    parts = []
    for group, title in GROUPS.items():
        parts.append(f"#### {title}")
        parts += [_entry(each, f"Adds {each.adds} parameters") for each in known if each.group == group]
    return "\n\n".join(parts)


def criteria(entries: Iterable[Criterion]) -> str:
    """All criteria, in order."""
    return "\n\n".join(_entry(each, _facts(each)) for each in entries)


def criterion(entry: Criterion) -> str:
    """The chosen criterion: its sentence, formula, unit and cost."""
    return f"{entry.summary}\n\n{_formula(entry)}\n\n{_facts(entry)}.{_options(entry)}"


def _entry(entry: Entry, facts: str) -> str:
    head = f"**{entry.title}** `{entry.name}`"
    return f"{head}  \n{entry.summary}\n\n{_formula(entry)}\n\n{facts}. {entry.source}.{_options(entry)}"


def _formula(entry: Entry) -> str:
    return f"$${entry.formula}$$"


def _facts(entry: Criterion) -> str:
    passes = "No pass over text" if entry.cost == "none" else f"Cost: {entry.cost}"
    return f"Scores every {entry.unit}. {passes}"


def _options(entry: Entry) -> str:
    """The options that can be written behind its name."""
    if not entry.options:
        return ""
    named = [f"`{name}={'/'.join(each.choices) or '…'}`" for name, each in entry.options.items()]
    return f"  \nOptions: {', '.join(named)}"
