"""Operator: what the fitted map is. Its symmetric and antisymmetric part, and its eigenvalues."""

from __future__ import annotations

from ghostlab.plots.catalog import OPERATOR
from ghostlab.plots.figures.directions import description
from ghostlab.plots.rows import Rows, operators
from ghostlab.results.operator import Excitement
from ghostlab.ui.page import Page, Tab
from ghostlab.ui.tabs import panels
from ghostlab.ui.tabs.operator import switches


def _directions(rows: Rows) -> str:
    """Each direction with its channels and tokens."""
    told = [description(one, _quoted) for _, report in operators(rows) for one in report.directions]
    return "\n" + "".join(f"\n{number}. {words}" for number, words in enumerate(told, start=1))


def _quoted(token: Excitement) -> str:
    """The token in its context, as code, so that nothing of it is read as Markdown."""
    before, own = (part.replace("`", "'").replace("\n", "⏎") for part in (token.before, token.token))
    mark = " (massive)" if token.massive else ""
    own = own if own.strip() else "␣"
    return f"`{before}`**`{own}`**{mark}" if before.strip() else f"**`{own}`**{mark}"


def build(page: Page) -> Tab:
    """Figures on one recovery's map, and switches that put a part of it into the model."""
    more = {"directions": _directions}
    shown = panels.build(
        page, "operator", OPERATOR, by_run=True, by_block=True, first=switches.best, more=more
    )
    tried = switches.build(page, shown.figures.components[0])
    return Tab(shown.figures + tried.figures, tried.words)
