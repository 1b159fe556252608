"""What is said of one block of an atlas: its figures, each with its unit, in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from ghostlab.plots.formats import fold, number, percent
from ghostlab.results.atlas import Atlas, AtlasBlock


@dataclass(frozen=True)
class Figure:
    """One figure of a block that the map can show.

    Attributes:
        of: Takes it from a block; ``None`` where it was not measured.
        spell: Says a value, with its unit.
        bar: Title of the colour bar.
        most: What the outlined block of a length has.
        low: Whether less is better.
    """

    of: Callable[[AtlasBlock], float | None]
    spell: Callable[[float], str]
    bar: str
    most: str
    low: bool = True


def gain(block: AtlasBlock) -> float | None:
    """How many times the error of ``ghost_sink`` the map that was fitted on all tokens leaves."""
    return block.ghost / block.ghost_sink if block.ghost_sink > 0 else None


def _error(name: str, title: str) -> Figure:
    return Figure(
        attrgetter(name),
        percent,
        f"error {title}, ‖Y′ − Y‖ / ‖Y‖",
        f"the least error {title} on ordinary held-out tokens",
    )


FIGURES = {
    "Error after ghost_sink": _error("ghost_sink", "after ghost_sink"),
    "Error after ghost": _error("ghost", "after ghost"),
    "Error after symmetric": _error("symmetric", "after symmetric"),
    "Error after scalar": _error("scalar", "after scalar"),
    "Error of plain dropping": _error("gap", "of plain dropping"),
    "What ghost_sink gains over ghost": Figure(
        gain, fold, "error of ghost over that of ghost_sink", "the most to gain from ghost_sink", False
    ),
    "Cosine": Figure(
        attrgetter("cosine"), number, "mean cosine of states before and after", "the highest cosine", False
    ),
    "Angular distance": Figure(
        attrgetter("angle"), number, "mean angle of the last token, in units of π", "the smallest angle"
    ),
    "Effective rank": Figure(
        attrgetter("effective_rank"), number, "effective rank of the correction, directions",
        "the correction of lowest rank",
    ),
    "KL after ghost_sink": Figure(
        attrgetter("kl"), number, "KL after ghost_sink, nats per token",
        "its KL measured (nats per token), being the one with the least error after ghost_sink",
    ),
}  # fmt: skip
"""What can be shown, by name; the first is shown first."""
FIRST = next(iter(FIGURES))
OPERATORS = {"plain dropping": "gap", "ghost": "ghost", "ghost_sink": "ghost_sink", "symmetric": "symmetric",
             "scalar": "scalar"}  # fmt: skip
"""Name for people -> attribute of a block."""


def best(atlas: Atlas, of: Callable[[AtlasBlock], float | None], low: bool = True) -> list[AtlasBlock]:
    """The block of each length whose figure is lowest, or highest; lengths that lack it are left out."""
    found: dict[int, tuple[float, AtlasBlock]] = {}
    for block in atlas.blocks:
        value = of(block)
        if value is None or not math.isfinite(value):
            continue
        rank = value if low else -value
        if block.length not in found or rank < found[block.length][0]:
            found[block.length] = (rank, block)
    return [found[length][1] for length in sorted(found)]


def label(block: AtlasBlock) -> str:
    """``20:25``."""
    return f"{block.start}:{block.stop}"


def words(atlas: Atlas, block: AtlasBlock) -> list[str]:
    """A title and all figures of a block, in words with their units."""
    last = "" if block.length == 1 else f"\N{EN DASH}{block.stop - 1}"
    errors = [f"{name}: {percent(getattr(block, field))}" for name, field in OPERATORS.items()]
    noun = "Layers" if last else "Layer"
    return [
        f"{noun} {block.start}{last} ({block.length} of {atlas.layers}), block {label(block)}",
        "Error of the state after it, ordinary held-out tokens",
        *errors,
        "Before against after",
        f"mean cosine: {number(block.cosine)}",
        f"angle, last token: {number(block.angle)} π",
        "Correction of ghost_sink",
        f"effective rank: {number(block.effective_rank)} directions",
        "KL: not measured" if block.kl is None else f"KL: {number(block.kl)} nats per token",
    ]
