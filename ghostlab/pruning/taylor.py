"""Taylor: the layers whose removal changes the loss the least to first order, weight by weight."""

from __future__ import annotations

from dataclasses import dataclass

from ghostlab.pruning.base import (
    Calibration,
    Criterion,
    CriterionScores,
    Options,
    Progress,
    check_spared,
    score_layers,
    windows_option,
)
from ghostlab.pruning.magnitude import SPARED, ends


@dataclass(frozen=True)
class Taylor:
    """Sum of |w * dL/dw| over all parameters of each layer; with ``plus`` the :func:`ends` never go."""

    plus: bool = False

    def __call__(
        self, calib: Calibration, count: int, options: Options, progress: Progress
    ) -> CriterionScores:
        """Scores of all layers."""
        from ghostlab.pruning.gradients import taylor

        spared = ends(calib.model.depth) if self.plus else set()
        check_spared(calib.model.depth, count, spared)
        values = taylor(calib, int(options["windows"]), progress)
        words = "gradients summed over windows, then |w g| over parameters"
        return score_layers(values, count, words, spared=spared)


FORMULA = r"\sum_{W \in l} \sum_{ij} \bigl| W_{ij}\, \partial \mathcal{L} / \partial W_{ij} \bigr|"

PLAIN = Criterion(
    name="taylor",
    title="Taylor",
    summary="Drops the layers whose weights matter least for the loss, to first order.",
    formula=FORMULA,
    unit="layer",
    reads="weights and gradients",
    cost="2 forward + 1 backward",
    source="Shortened LLaMA (2402.02834)",
    score=Taylor(),
    options={"windows": windows_option(16)},
)

PLUS = Criterion(
    name="taylor_plus",
    title="Taylor+",
    summary="Taylor that never drops the first four or the last two layers.",
    formula=FORMULA + SPARED,
    unit="layer",
    reads="weights and gradients",
    cost="2 forward + 1 backward",
    source="Shortened LLaMA (2402.02834), Taylor+",
    score=Taylor(plus=True),
    options={"windows": windows_option(16)},
)
