"""LinearPatch without its rotation (LP-D): each channel scaled by a ratio of mean magnitudes."""

from __future__ import annotations

from ghostlab.model.replacement import AffineMap
from ghostlab.recovery.base import BlockFit, Method
from ghostlab.recovery.data import FitData
from ghostlab.recovery.linear import block_fit
from ghostlab.recovery.scaling import absolute_ratios
from ghostlab.spec import RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """M = diag(d) - I."""
    scale, note = absolute_ratios(data)
    return block_fit(data, AffineMap(diagonal=scale - 1), details=note)


METHOD = Method(
    name="linearpatch_diag",
    title="LinearPatch, diagonal",
    summary="Scales every channel by its mean magnitude after the block over that before it.",
    formula=r"\hat y = x\,\mathrm{diag}(d),\quad"
    r" d_c = \frac1K\sum_k \frac{\sum_t \lvert y^{(k)}_{tc}\rvert}{\sum_t \lvert x^{(k)}_{tc}\rvert}",
    source="LinearPatch (2505.24680), LP-D",
    group="baseline",
    fit=fit,
    adds="C",
)
