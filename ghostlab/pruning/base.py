"""What every selection criterion is: scores for all blocks or layers, and a choice that follows from them.

This module and the files of the criteria load no torch: a criterion imports what it computes with inside its
``score``, so that all of them can be listed at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from ghostlab.cut import Block, Cut
from ghostlab.errors import CutError, NumericsError
from ghostlab.progress import Progress
from ghostlab.spec import Option, check_options

if TYPE_CHECKING:
    from ghostlab.calibration import calibrate

__all__ = [
    "Block",
    "Calibration",
    "Criterion",
    "CriterionScores",
    "Cut",
    "Option",
    "Options",
    "Progress",
    "check_finite",
    "check_spared",
    "layers",
    "lowest",
    "score_blocks",
    "score_layers",
    "starts",
    "windows_option",
]

Calibration: TypeAlias = "calibrate.Calibration"
"""The class, for annotations; its module loads torch."""
Options = Mapping[str, str]
"""Every option of a criterion with its value, defaults filled in."""


@dataclass(frozen=True)
class CriterionScores:
    """Scores of candidate blocks; those with the lowest are dropped first.

    Attributes:
        candidates: Single layers, or contiguous blocks of the requested length: all of them.
        values: One score per candidate; NaN where a criterion did not look at one.
        convention: What was averaged over and which layers were spared, in words.
        cut: What the criterion drops.
    """

    candidates: tuple[Block, ...]
    values: tuple[float, ...]
    convention: str
    cut: Cut


@dataclass(frozen=True)
class Criterion:
    """One entry of the registry.

    Attributes:
        name: Registry name, as in ``--select NAME``.
        title: Name for people.
        summary: One sentence on what it does.
        formula: The same in LaTeX; lower is dropped first.
        unit: Whether it scores single layers, or contiguous blocks of the requested length.
        reads: What it looks at.
        cost: Rough cost on ``w`` windows of a model of L layers, in passes over them.
        source: Where it comes from.
        score: Called with calibration, count, options and progress.
        options: Its options by name.
    """

    name: str
    title: str
    summary: str
    formula: str
    unit: Literal["layer", "block"]
    reads: str
    cost: str
    source: str
    score: Callable[[Calibration, int, Options, Progress], CriterionScores]
    options: Mapping[str, Option] = field(default_factory=dict)

    def settle(self, given: Mapping[str, str]) -> Options:
        """The options given, checked, and the defaults of all others.

        Raises:
            ConfigError: If an option is unknown or does not take that value.
        """
        check_options(self.name, self.options, given)
        return {name: given.get(name, option.default) for name, option in self.options.items()}


def windows_option(default: int) -> Option:
    """How much calibration text an expensive criterion reads."""
    return Option("calibration windows that are read, spread evenly", default=str(default), least=1)


def score_layers(
    values: Sequence[float], count: int, convention: str, *, spared: Collection[int] = ()
) -> CriterionScores:
    """Scores of single layers: the lowest ``count`` that are not ``spared`` go, wherever they are.

    Raises:
        CutError: If fewer than ``count`` layers may go.
        NumericsError: If a score is not a number.
    """
    check_spared(len(values), count, spared)
    check_finite(values)
    free = [layer for layer in range(len(values)) if layer not in spared]
    cut = Cut.of_layers(free[index] for index in lowest([values[layer] for layer in free], count))
    if spared:
        convention += f"; never drops layers {', '.join(map(str, sorted(spared)))}"
    return CriterionScores(layers(len(values)), tuple(values), convention, cut)


def check_spared(depth: int, count: int, spared: Collection[int]) -> None:
    """Raise CutError if sparing these layers leaves fewer than ``count``."""
    free = depth - len(spared)
    if free < count:
        raise CutError(
            f"{count} of {depth} layers cannot be dropped: this criterion spares {len(spared)} of them.",
            f"Choose a count of at most {free}." if free > 0 else "Use a criterion that spares none.",
        )


def score_blocks(values: Sequence[float], count: int, convention: str) -> CriterionScores:
    """Scores of contiguous blocks of ``count`` layers by their start: the lowest goes.

    Raises:
        NumericsError: If a score is not a number.
    """
    check_finite(values)
    blocks = tuple(Block(start, start + count) for start in range(len(values)))
    (best,) = lowest(values, 1)
    return CriterionScores(blocks, tuple(values), convention, Cut((blocks[best],)))


def layers(depth: int) -> tuple[Block, ...]:
    """Every single layer as a block."""
    return tuple(Block(layer, layer + 1) for layer in range(depth))


def starts(depth: int, count: int) -> range:
    """Where a contiguous block of ``count`` layers can start; the last one ends with the model."""
    return range(depth - count + 1)


def lowest(values: Sequence[float], count: int) -> list[int]:
    """Indices of the ``count`` lowest values; ties go to the earlier index."""
    return sorted(range(len(values)), key=lambda index: (values[index], index))[:count]


def check_finite(values: Sequence[float]) -> None:
    """Raise NumericsError if a score is not a number."""
    if not all(map(math.isfinite, values)):
        raise NumericsError("The scores of the criterion hold NaN or infinity.", "Load the model in float32.")
