"""ShortGPT: the layers with the lowest Block Influence, wherever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostlab.pruning.base import (
    Criterion,
    CriterionScores,
    Options,
    convention_of,
    convention_option,
    in_words,
    score_layers,
)

if TYPE_CHECKING:
    from ghostlab.calibration.calibrate import Calibration
    from ghostlab.progress import Progress


def score(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """BI_l = 1 - E_t cos(x_l, x_{l+1}) for every layer, first and last included."""
    convention = convention_of(options)
    cosine = calib.similarity(progress).cosine(convention)
    values = (1 - cosine.diagonal(offset=1)).tolist()
    return score_layers(values, count, in_words(convention, "cosine"))


CRITERION = Criterion(
    name="shortgpt",
    title="ShortGPT (Block Influence)",
    summary="Drops the layers that turn their input the least, wherever they are.",
    formula=r"\mathrm{BI}_l = 1 - \mathbb{E}_t \cos(x_{l,t},\, x_{l+1,t})",
    unit="layer",
    reads="states at all boundaries",
    cost="1 forward",
    source="ShortGPT (2403.03853)",
    score=score,
    options={"convention": convention_option("token")},
)
