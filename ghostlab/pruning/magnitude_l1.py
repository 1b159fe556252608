"""Weight magnitude, l1: the layers with the smallest weights go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostlab.pruning.base import Criterion, CriterionScores, Options, score_layers
from ghostlab.pruning.weights import magnitudes

if TYPE_CHECKING:
    from ghostlab.calibration.calibrate import Calibration
    from ghostlab.progress import Progress


def score(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """Sum of |w|^1 over all parameters of each layer."""
    return score_layers(magnitudes(calib.model, 1, progress), count, "sum over the layer's parameters")


CRITERION = Criterion(
    name="magnitude_l1",
    title="Magnitude, l1",
    summary="Drops the layers with the smallest weights by the sum of their sizes (l1).",
    formula=r"\sum_{W \in l} \sum_{ij} |W_{ij}|",
    unit="layer",
    reads="weights",
    cost="none",
    source="Shortened LLaMA (2402.02834)",
    score=score,
)
