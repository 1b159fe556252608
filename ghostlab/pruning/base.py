"""What every selection criterion is: scores for all blocks or layers, and a choice that follows from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ghostlab.cut import Block, Cut

if TYPE_CHECKING:
    from ghostlab.calibration.calibrate import Calibration
    from ghostlab.progress import Progress


@dataclass(frozen=True)
class Scores:
    """Scores of candidate blocks; those with the lowest are dropped first.

    Attributes:
        candidates: Single layers, or contiguous blocks of the length asked for.
        values: One score per candidate.
        convention: How tokens were averaged, in words: conventions choose different blocks.
        cut: What the criterion drops.
    """

    candidates: tuple[Block, ...]
    values: tuple[float, ...]
    convention: str
    cut: Cut


@dataclass(frozen=True)
class Criterion:
    """One entry of the registry; ``score(calibration, count, progress)`` does the work."""

    name: str
    title: str
    summary: str
    formula: str
    source: str
    score: Callable[[Calibration, int, Progress], Scores]


def lowest(values: Sequence[float], count: int) -> list[int]:
    """Indices of the ``count`` lowest values; ties go to the earlier index."""
    return sorted(range(len(values)), key=lambda index: (values[index], index))[:count]
