"""What an explanation of a figure consists of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """What a figure is called and how it is to be read.

    Attributes:
        title: Its heading, the same in the app and in the report.
        words: One short paragraph, in Markdown.
        formula: What is drawn, in LaTeX that KaTeX sets.
        reference: Where it comes from.
    """

    title: str
    words: str
    formula: str
    reference: str
