"""Taylor that keeps the first four and the last two layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostlab.pruning.base import (
    Criterion,
    CriterionScores,
    Options,
    check_spared,
    score_layers,
    windows_option,
)
from ghostlab.pruning.gradients import taylor
from ghostlab.pruning.weights import spared_by_plus

if TYPE_CHECKING:
    from ghostlab.calibration.calibrate import Calibration
    from ghostlab.progress import Progress


def score(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """Sum of |w * dL/dw| over all parameters of each layer; some layers never go."""
    spared = spared_by_plus(calib.model.depth)
    check_spared(calib.model.depth, count, spared)
    values = taylor(calib, int(options["windows"]), progress)
    words = "gradients summed over windows, then |w g| over parameters"
    return score_layers(values, count, words, spared=spared)


CRITERION = Criterion(
    name="taylor_plus",
    title="Taylor+",
    summary="Taylor that never drops the first four or the last two layers.",
    formula=r"\sum_{W \in l} \sum_{ij} \bigl| W_{ij}\, \partial \mathcal{L} / \partial W_{ij} \bigr|,"
    r" \quad l \notin \{0, 1, 2, 3, L-2, L-1\}",
    unit="layer",
    reads="weights and gradients",
    cost="2 forward + 1 backward",
    source="Shortened LLaMA (2402.02834), Taylor+",
    score=score,
    options={"windows": windows_option(16)},
)
