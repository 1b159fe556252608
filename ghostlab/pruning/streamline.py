"""LLM-Streamline: the contiguous block whose input and output point the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostlab.pruning.base import (
    Criterion,
    CriterionScores,
    Options,
    convention_of,
    convention_option,
    in_words,
    score_blocks,
)

if TYPE_CHECKING:
    from ghostlab.calibration.calibrate import Calibration
    from ghostlab.progress import Progress


def score(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """1 - mean cosine between boundaries s and s + count, for every start s, the last included."""
    convention = convention_of(options)
    cosine = calib.similarity(progress).cosine(convention)
    values = (1 - cosine.diagonal(offset=count)).tolist()
    return score_blocks(values, count, in_words(convention, "cosine"))


CRITERION = Criterion(
    name="streamline",
    title="LLM-Streamline",
    summary="Drops the contiguous block whose input and output states are most alike.",
    formula=r"1 - \mathbb{E}_t \cos(x_{s,t},\, x_{s+n,t})",
    unit="block",
    reads="states at all boundaries",
    cost="1 forward",
    source="LLM-Streamline (2403.19135)",
    score=score,
    options={"convention": convention_option("token")},
)
