"""Angular distance: the contiguous block that turns the last token's state by the smallest angle."""

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
    """Mean of arccos(cos(x_s, x_{s+count})) / pi, for every start s, the last included."""
    convention = convention_of(options)
    angle = calib.similarity(progress).angle(convention)
    return score_blocks(angle.diagonal(offset=count).tolist(), count, in_words(convention, "angle"))


CRITERION = Criterion(
    name="angular",
    title="Angular distance",
    summary="Drops the contiguous block that turns the last token's state by the smallest angle.",
    formula=r"\mathbb{E}\, \tfrac{1}{\pi} \arccos \cos(x_{s,T},\, x_{s+n,T})",
    unit="block",
    reads="states at all boundaries",
    cost="1 forward",
    source="The Unreasonable Ineffectiveness of the Deeper Layers (2403.17887)",
    score=score,
    options={"convention": convention_option("last")},
)
