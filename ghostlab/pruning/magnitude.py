"""Weight magnitude: the layers with the smallest weights go; the "plus" variants spare the ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ghostlab.pruning.base import (
    Calibration,
    Criterion,
    CriterionScores,
    Options,
    Progress,
    check_spared,
    score_layers,
)

if TYPE_CHECKING:
    from torch import nn

SPARED = r", \quad l \notin \{0, 1, 2, 3, L-2, L-1\}"
"""What :func:`ends` adds to a formula."""


def ends(depth: int) -> set[int]:
    """The first four and the last two layers, which Taylor+ and Mag+ keep (Shortened LLaMA)."""
    return {0, 1, 2, 3, depth - 2, depth - 1} & set(range(depth))


@dataclass(frozen=True)
class Magnitude:
    """Sum of |w|^power over all parameters of each layer; with ``plus`` the :func:`ends` never go."""

    power: int
    plus: bool = False

    def __call__(
        self, calib: Calibration, count: int, options: Options, progress: Progress
    ) -> CriterionScores:
        """Scores of all layers."""
        spared = ends(calib.model.depth) if self.plus else set()
        check_spared(calib.model.depth, count, spared)
        blocks = progress.each(list(calib.model.decoder.blocks), "Summing the weights")
        values = [_magnitude(block, self.power) for block in blocks]
        return score_layers(values, count, "sum over the layer's parameters", spared=spared)


def _magnitude(block: nn.Module, power: int) -> float:
    import torch

    from ghostlab.model.device import exact

    with torch.no_grad():
        norms = [exact(torch.linalg.vector_norm(p.float(), ord=power)) ** power for p in block.parameters()]
        return float(sum(norm.cpu() for norm in norms))


def _criterion(power: int, words: str, inner: str) -> tuple[Criterion, Criterion]:
    """The criterion of a power, plain and plus."""
    name, formula = f"magnitude_l{power}", rf"\sum_{{W \in l}} \sum_{{ij}} {inner}"
    plain = Criterion(
        name=name,
        title=f"Magnitude, l{power}",
        summary=f"Drops the layers with the smallest weights by the sum of their {words} (l{power}).",
        formula=formula,
        unit="layer",
        reads="weights",
        cost="none",
        source="Shortened LLaMA (2402.02834)",
        score=Magnitude(power),
    )
    plus = Criterion(
        name=f"{name}_plus",
        title=f"Magnitude+, l{power}",
        summary=f"As {name} (sum of {words}), but never the first four or the last two layers.",
        formula=formula + SPARED,
        unit="layer",
        reads="weights",
        cost="none",
        source="Shortened LLaMA (2402.02834), Mag+",
        score=Magnitude(power, plus=True),
    )
    return plain, plus


L1 = _criterion(1, "sizes", "|W_{ij}|")
L2 = _criterion(2, "squares", "W_{ij}^2")
