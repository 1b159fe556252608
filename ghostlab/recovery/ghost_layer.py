"""One layer of the block is kept and refitted together with a linear map beside it."""

from __future__ import annotations

from ghostlab.recovery.base import BlockFit, Method
from ghostlab.recovery.data import FitData
from ghostlab.recovery.keep import OPTIONS, fit_kept_layer
from ghostlab.spec import RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """Refit the layer that leaves the least error, with an affine map of the block's input in both solves."""
    return fit_kept_layer(data, spec, beside=True)


METHOD = Method(
    name="ghost_layer",
    title="Refitted layer with a map beside it",
    summary="Keeps one layer, refits it, and adds an affine map of the block's input to its output.",
    formula=r"\hat y = \mathrm{layer}_j(x;\, W_o, W_d) + xM + b",
    source="Ghostlab",
    group="layer",
    fit=fit,
    adds="the kept layer + C² + 2C",
    options=OPTIONS,
)
