"""One layer of the block is kept and refitted together with a linear map beside it."""

from ghostlab.recovery.base import BlockFit, FitData, Operator, RecoverySpec
from ghostlab.recovery.refit_layer import OPTIONS


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """Refit the layer that leaves the least error, with an affine map of the block's input in both solves."""
    from ghostlab.recovery.keep import fit_kept_layer

    return fit_kept_layer(data, spec, beside=True)


OPERATOR = Operator(
    name="ghost_layer",
    title="Refitted layer with a map beside it",
    summary="Keeps one layer, refits it, and adds an affine map of the block's input to its output.",
    formula=r"\hat y = \mathrm{layer}_j(x;\, W_o, W_d) + xM + b",
    expresses="such a layer and an affine map beside it, with a shift for first tokens",
    source="Ghostlab",
    group="layer",
    fit=fit,
    adds="the kept layer + C² + 2C",
    options=OPTIONS,
)
