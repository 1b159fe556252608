"""Taylor: the layers whose removal changes the loss the least to first order, weight by weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostlab.pruning.base import Criterion, CriterionScores, Options, score_layers, windows_option
from ghostlab.pruning.gradients import taylor

if TYPE_CHECKING:
    from ghostlab.calibration.calibrate import Calibration
    from ghostlab.progress import Progress


def score(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """Sum of |w * dL/dw| over all parameters of each layer."""
    values = taylor(calib, int(options["windows"]), progress)
    return score_layers(values, count, "gradients summed over windows, then |w g| over parameters")


CRITERION = Criterion(
    name="taylor",
    title="Taylor",
    summary="Drops the layers whose weights matter least for the loss, to first order.",
    formula=r"\sum_{W \in l} \sum_{ij} \bigl| W_{ij}\, \partial \mathcal{L} / \partial W_{ij} \bigr|",
    unit="layer",
    reads="weights and gradients",
    cost="2 forward + 1 backward",
    source="Shortened LLaMA (2402.02834)",
    score=score,
    options={"windows": windows_option(16)},
)
