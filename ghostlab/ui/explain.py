"""What an operator, a criterion or a figure is, in Markdown: words, formula, cost, source."""

from __future__ import annotations

from collections.abc import Iterable

import gradio as gr

from ghostlab.plots.catalog import FIGURES
from ghostlab.pruning.base import Criterion
from ghostlab.recovery.base import Operator
from ghostlab.spec import GROUPS

LATEX = [{"left": "$$", "right": "$$", "display": True}]
"""Formulas stand on lines of their own: a narrow sidebar can scroll one without breaking it."""


def what_is_this(figure: str) -> gr.Markdown:
    """The explanation of a figure, folded; to be called inside ``gr.Blocks``.

    One component without a value from the server: it stays open while the figure changes.
    """
    return gr.Markdown(
        of_figure(figure),
        elem_classes=["gl-explained", "gl-what"],
        latex_delimiters=LATEX,
        sanitize_html=False,  # all of it is ours
    )


def of_figure(figure: str) -> str:
    """The explanation of a figure of :data:`ghostlab.plots.catalog.FIGURES`."""
    entry = FIGURES[figure]
    summary = f'<summary>What is this?<span class="gl-unseen"> {entry.title}</span></summary>'
    parts = [summary, entry.words, f"$${entry.formula}$$", f"*Reference:* {entry.reference}.", "</details>"]
    return "<details>" + "\n\n".join(parts)


def operators(entries: Iterable[Operator]) -> str:
    """All operators, under the headings of their groups."""
    known = list(entries)
    parts = []
    for group, title in GROUPS.items():
        own = [entry for entry in known if entry.group == group]
        parts += [f"#### {title}", *(_entry(entry, f"Adds {entry.adds} parameters") for entry in own)]
    return "\n\n".join(parts)


def criteria(entries: Iterable[Criterion]) -> str:
    """All criteria, in order."""
    return "\n\n".join(map(criterion, entries))


def criterion(entry: Criterion) -> str:
    """One criterion: its sentence, formula, unit, cost and source."""
    passes = "No pass over text" if entry.cost == "none" else f"Cost: {entry.cost}"
    return _entry(entry, f"Scores every {entry.unit}. {passes}")


def full_name(entry: Operator | Criterion, label: str = "") -> str:
    """Title and registry name, or a label with options in its place: ``Ghost layer (ghost)``."""
    return f"{entry.title} ({label or entry.name})"


def _entry(entry: Operator | Criterion, facts: str) -> str:
    options = [f"`{name}={'/'.join(option.choices) or '…'}`" for name, option in entry.options.items()]
    last = f"  \nOptions: {', '.join(options)}" if options else ""
    return (
        f"**{entry.title}** `{entry.name}`  \n{entry.summary}\n\n$${entry.formula}$$\n\n"
        f"{facts}. {entry.source}.{last}"
    )
