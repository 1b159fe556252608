"""A figure as one object: what it is called, how it is to be read, how it is drawn, what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.rows import Row, Rows


@dataclass(frozen=True)
class Figure:
    """A figure, for someone who sees it for the first time too.

    ``draw``, ``beside`` and ``say`` get the rows that ``select`` returns; where it returns none, there is a
    reason in place of plot and sentence. Figures of an atlas take the atlas instead.

    Attributes:
        words: How to read it: one short paragraph, in Markdown.
        formula: What is drawn, in LaTeX that KaTeX sets.
        reference: Where it comes from.
        say: One sentence on what this result shows, computed from its numbers.
        draw: Draws the plot; ``None`` for what is no plot.
        nothing: Why there is nothing to show. The plot has room for its first sentence alone.
        beside: Draws a second plot that belongs beside the first.
        compare: The sentence on both sides of a comparison, whatever one of them lacks.
        heading: Of a figure on a single recovery: its heading among several, ``{}`` being the name.
    """

    name: str
    title: str
    words: str
    formula: str
    reference: str
    say: Callable[..., str]
    draw: Callable[..., go.Figure] | None = None
    select: Callable[[Rows], Rows] = list
    nothing: str | Callable[[Rows], str] = "Nothing was recorded."
    beside: Callable[..., go.Figure] | None = None
    compare: Callable[[Rows], str] | None = None
    heading: str = ""

    @property
    def plots(self) -> list[Callable[..., go.Figure]]:
        """What draws its plots, from left to right."""
        return [draw for draw in (self.draw, self.beside) if draw]

    def figures(self, rows: Rows) -> list[go.Figure]:
        """Its plots; empty ones with the reason if there is nothing to show."""
        known = self.select(rows)
        if known:
            return [draw(known) for draw in self.plots]
        reason = self._reason(rows).partition(". ")[0].removesuffix(".") + "."
        return [style.empty(reason) for _ in self.plots]

    def sentence(self, rows: Rows) -> str:
        """Its sentence, or why there is nothing to show."""
        known = self.select(rows)
        return self.say(known) if known else self._reason(rows)

    def comparison(self, rows: Rows) -> str:
        """The sentence on two sides, or why there is nothing to compare."""
        compare = self.compare or self.say
        return compare(rows) if self.select(rows) else self._reason(rows)

    def _reason(self, rows: Rows) -> str:
        return self.nothing if isinstance(self.nothing, str) else self.nothing(rows)


def of_each(lead: str, phrase: Callable[[Row], str], absent: str = "unknown") -> Callable[[Rows], str]:
    """A sentence that says the same of every row: ``lead: ghost 3; affine 4.``

    ``absent`` stands where ``phrase`` has nothing to say.
    """
    return lambda rows: f"{lead}: {'; '.join(f'{row.name} {phrase(row) or absent}' for row in rows)}."
