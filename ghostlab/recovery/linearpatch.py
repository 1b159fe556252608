"""LinearPatch (LP-R): channels scaled in a Hadamard-rotated basis, fused to one symmetric matrix."""

from __future__ import annotations

import torch

from ghostlab.recovery.base import LOW_RANK, BlockFit, Method
from ghostlab.recovery.data import FitData
from ghostlab.recovery.hadamard import rotation
from ghostlab.recovery.linear import fit_matrix
from ghostlab.recovery.scaling import absolute_ratios, rotated
from ghostlab.spec import RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """M = Q diag(d) Q' - I, with d from rotated states."""
    seen = data.moments().all()
    turn, made = rotation(seen.width)
    scale, note = absolute_ratios(data, turn)
    matrix = rotated((scale - 1).to(seen.gram.device), turn.to(seen.gram.device))
    details = {"rotation": made, "scale_mean": float(scale.mean()), "scale_spread": _spread(scale)}
    return fit_matrix(data, spec, matrix, seen, details={**details, **note})


def _spread(scale: torch.Tensor) -> float:
    """Standard deviation over mean: near 0, the operator is little more than a scalar."""
    return float(scale.std() / scale.mean())


METHOD = Method(
    name="linearpatch",
    title="LinearPatch",
    summary="Scales channels by ratios of mean magnitudes in a Hadamard-rotated basis, fused to one matrix.",
    formula=r"\hat y = xP,\quad P = Q\,\mathrm{diag}(d)\,Q^\top,\quad"
    r" d_c = \frac1K\sum_k \frac{\sum_t \lvert (y^{(k)}Q)_{tc}\rvert}{\sum_t \lvert (x^{(k)}Q)_{tc}\rvert}",
    source="LinearPatch (2505.24680), LP-R",
    group="baseline",
    fit=fit,
    options=LOW_RANK,
)
