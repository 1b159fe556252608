"""The mean change of the block, added to every state: a bias and nothing else."""

from __future__ import annotations

from ghostlab.model.replacement import AffineMap
from ghostlab.recovery.base import WEIGHTED, BlockFit, Method
from ghostlab.recovery.data import FitData
from ghostlab.recovery.linear import block_fit
from ghostlab.spec import RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """b = mean(D): the least-squares fit with M = 0."""
    moments = data.moments().all()
    return block_fit(data, AffineMap(bias=moments.change / moments.count))


METHOD = Method(
    name="mean_shift",
    title="Mean shift",
    summary="Adds the mean change of the block: a bias alone.",
    formula=r"\hat y = x + \bar\Delta",
    source="Least squares with M = 0; a common baseline",
    group="baseline",
    fit=fit,
    adds="C",
    options=WEIGHTED,
)
