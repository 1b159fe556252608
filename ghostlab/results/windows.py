"""What was read, and how it was cut into windows: a perplexity means nothing without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BosPlace = Literal["every window", "start of the text", "nowhere"]
Order = Literal["shuffled sections", "consecutive", "random documents"]

PUBLISHED_LENGTH = 2048
"""Tokens per window in most papers' tables."""

_ORDERS: dict[Order, str] = {
    "shuffled sections": "from shuffled sections of its documents",
    "consecutive": "one after the other",
    "random documents": "from random places of random documents",
}
_STARTS: dict[BosPlace, str] = {
    "every window": "each begins with the start token",
    "start of the text": "the start token is only where a text begins",
    "nowhere": "no start token",
}
_JOINS = {"\n\n": ", documents joined by an empty line", " ": ", documents joined by a space"}


@dataclass(frozen=True)
class WindowRule:
    """How the evaluation text was cut into windows.

    Attributes:
        protocol: Whose rules they are; empty for Ghostlab's own.
        join: What is between documents; ``None`` if no window reaches over two of them.
        bos: Where BOS is: in ``every window``, at the ``start of the text``, or ``nowhere``.
        order: ``shuffled sections``, ``consecutive`` windows of the text, or spans of ``random documents``.
    """

    protocol: str = ""
    join: str | None = "\n\n"
    bos: BosPlace = "nowhere"
    order: Order = "shuffled sections"


def describe(rule: WindowRule, count: int, length: int) -> str:
    """``count`` windows of ``length`` tokens and how they were cut, as a part of a sentence."""
    plural = "" if count == 1 else "s"
    papers = f" as the papers do ({rule.protocol}){_JOINS.get(rule.join or '', '')}" if rule.protocol else ""
    size = f"{count:,} window{plural} of {length:,} tokens"
    return f"{size} {_ORDERS[rule.order]}{papers}; {_STARTS[rule.bos]}"


def comparable(rule: WindowRule, length: int, *, complete: bool) -> str:
    """A sentence on what perplexities of such windows may be compared with.

    Args:
        rule: How they were cut.
        length: Tokens of each.
        complete: Whether they are all that the protocol takes.
    """
    if not rule.protocol:
        return "Perplexities are comparable with each other, not with published tables."
    if rule.bos == "every window":
        return (
            "The text is that of the papers, but each window begins with a start token, which most published "
            "tables do not have: perplexities are comparable with each other."
        )
    if not complete:
        return (
            "The windows are some of the papers': perplexities come near published ones at "
            f"{length:,} tokens, and all windows (held_out: all) are needed to compare them."
        )
    other = "" if length == PUBLISHED_LENGTH else f"; most tables have {PUBLISHED_LENGTH:,}"
    return f"The windows are all of the papers', as for published perplexities at {length:,} tokens{other}."


@dataclass(frozen=True)
class TextInfo:
    """What was read. ``bos`` and ``rule`` are of held-out windows, ``calibration_bos`` of those fitted on."""

    calibration: str
    held_out: str
    licence: str
    calibration_tokens: int
    held_out_tokens: int
    length: int
    bos: bool
    folds: int
    rule: WindowRule
    calibration_bos: BosPlace

    @property
    def windows(self) -> str:
        """The held-out windows in words: how many, how long, and how they were cut."""
        count = self.held_out_tokens // self.length if self.length else 0
        return describe(self.rule, count, self.length)
