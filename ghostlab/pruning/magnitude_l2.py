"""Weight magnitude, l2: the layers with the smallest weights go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostlab.pruning.base import Criterion, CriterionScores, Options, score_layers
from ghostlab.pruning.weights import magnitudes

if TYPE_CHECKING:
    from ghostlab.calibration.calibrate import Calibration
    from ghostlab.progress import Progress


def score(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """Sum of |w|^2 over all parameters of each layer."""
    return score_layers(magnitudes(calib.model, 2, progress), count, "sum over the layer's parameters")


CRITERION = Criterion(
    name="magnitude_l2",
    title="Magnitude, l2",
    summary="Drops the layers with the smallest weights by the sum of their squares (l2).",
    formula=r"\sum_{W \in l} \sum_{ij} W_{ij}^2",
    unit="layer",
    reads="weights",
    cost="none",
    source="Shortened LLaMA (2402.02834)",
    score=score,
)
