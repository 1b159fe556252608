"""One direct affine map over the whole block, with an unpenalised bias."""

from ghostlab.recovery.base import LEAST_SQUARES, BlockFit, FitData, Operator, RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """M from centred moments, b = mean(D) - mean(X) M."""
    from ghostlab.recovery.linear import fit_linear

    return fit_linear(data, spec, bias=True)


OPERATOR = Operator(
    name="affine",
    title="Affine map",
    summary="The ghost layer with a bias: the best affine map in squared error.",
    formula=r"\hat y = x + xM + b,\quad M = (G_c + \lambda I)^{-1} R_c,\; b = \bar\Delta - \bar x M",
    expresses="any affine map, the best one",
    source="SHIFT-LLM's adapter (direct fit, bias not penalised)",
    group="map",
    fit=fit,
    adds="C² + C",
    options=LEAST_SQUARES,
)
