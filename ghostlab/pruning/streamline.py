"""LLM-Streamline: the contiguous block whose input and output point the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostlab.cut import Block, Cut
from ghostlab.pruning.base import Criterion, Scores, lowest

if TYPE_CHECKING:
    from ghostlab.calibration.calibrate import Calibration
    from ghostlab.progress import Progress


def score(calib: Calibration, count: int, progress: Progress) -> Scores:
    """1 - mean per-token cosine between boundaries s and s + count, for every start s, the last included."""
    cosine = calib.similarity(progress).mean_cosine()
    starts = range(calib.model.depth - count + 1)
    values = tuple(1 - float(cosine[start, start + count]) for start in starts)
    blocks = tuple(Block(start, start + count) for start in starts)
    (best,) = lowest(values, 1)
    return Scores(blocks, values, "cosine per token, averaged over tokens", Cut((blocks[best],)))


CRITERION = Criterion(
    name="streamline",
    title="LLM-Streamline",
    summary="Drops the contiguous block whose input and output states are most alike.",
    formula=r"s^* = \arg\max_s \, \mathbb{E}_t \cos(x_{s,t},\, x_{s+n,t})",
    source="LLM-Streamline (2403.19135)",
    score=score,
)
