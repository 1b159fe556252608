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
    told = FIGURES[figure]
    summary = f'<summary>What is this?<span class="gl-unseen"> {told.title}</span></summary>'
    parts = [summary, told.words, f"$${told.formula}$$", f"*Reference:* {told.reference}.", "</details>"]
    return "<details>" + "\n\n".join(parts)


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
    return f"{_head(entry)}{entry.summary}\n\n{_formula(entry)}\n\n{_facts(entry)}.{_options(entry)}"


def named(entry: Operator | Criterion, label: str = "") -> str:
    """Title and registry name, as both are written wherever there is room: ``Ghost layer (ghost)``.

    Args:
        entry: An operator or a criterion.
        label: What stands for the name: the name with its options.
    """
    return f"{entry.title} ({label or entry.name})"


def _entry(entry: Operator | Criterion, facts: str) -> str:
    return f"{_head(entry)}{entry.summary}\n\n{_formula(entry)}\n\n{facts}. {entry.source}.{_options(entry)}"


def _head(entry: Operator | Criterion) -> str:
    return f"**{entry.title}** `{entry.name}`  \n"


def _formula(entry: Operator | Criterion) -> str:
    return f"$${entry.formula}$$"


def _facts(entry: Criterion) -> str:
    passes = "No pass over text" if entry.cost == "none" else f"Cost: {entry.cost}"
    return f"Scores every {entry.unit}. {passes}"


def _options(entry: Operator | Criterion) -> str:
    """The options that can be written after its name."""
    if not entry.options:
        return ""
    named = [f"`{name}={'/'.join(each.choices) or '…'}`" for name, each in entry.options.items()]
    return f"  \nOptions: {', '.join(named)}"
