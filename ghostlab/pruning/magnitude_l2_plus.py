"""Weight magnitude, l2, that keeps the first four and the last two layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostlab.pruning.base import Criterion, CriterionScores, Options, check_spared, score_layers
from ghostlab.pruning.weights import magnitudes, spared_by_plus

if TYPE_CHECKING:
    from ghostlab.calibration.calibrate import Calibration
    from ghostlab.progress import Progress


def score(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """Sum of |w|^2 over all parameters of each layer; some layers never go."""
    spared = spared_by_plus(calib.model.depth)
    check_spared(calib.model.depth, count, spared)
    values = magnitudes(calib.model, 2, progress)
    return score_layers(values, count, "sum over the layer's parameters", spared=spared)


CRITERION = Criterion(
    name="magnitude_l2_plus",
    title="Magnitude+, l2",
    summary="As magnitude_l2 (sum of squares), but never the first four or the last two layers.",
    formula=r"\sum_{W \in l} \sum_{ij} W_{ij}^2, \quad l \notin \{0, 1, 2, 3, L-2, L-1\}",
    unit="layer",
    reads="weights",
    cost="none",
    source="Shortened LLaMA (2402.02834), Mag+",
    score=score,
)
