"""The ghost layer: the unconstrained least-squares map of Ghosted Layers (arXiv 2605.15491)."""

from ghostlab.recovery.base import LEAST_SQUARES, BlockFit, FitData, Operator, RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """M = (G + ridge I)^-1 R; G^+ R with ridge 0."""
    from ghostlab.recovery.linear import fit_linear

    return fit_linear(data, spec, bias=False)


OPERATOR = Operator(
    name="ghost",
    title="Ghost layer",
    summary="The linear map with the least squared error at the boundary; symmetric or not.",
    formula=r"\hat y = x + xM,\quad M = (X^\top X + \lambda I)^{-1} X^\top (Y - X)",
    expresses="any linear map, the best one",
    source="Ghosted Layers (2605.15491)",
    group="map",
    fit=fit,
    options=LEAST_SQUARES,
)
