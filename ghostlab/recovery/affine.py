"""One direct affine map over the whole block, with an unpenalised bias."""

from __future__ import annotations

from ghostlab.recovery.base import LEAST_SQUARES, BlockFit, Method
from ghostlab.recovery.data import FitData
from ghostlab.recovery.linear import fit_linear
from ghostlab.spec import RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """M from centred moments, b = mean(D) - mean(X) M."""
    return fit_linear(data, spec, bias=True)


METHOD = Method(
    name="affine",
    title="Affine map",
    summary="The ghost layer with a bias: the best affine map in squared error.",
    formula=r"\hat y = x + xM + b,\quad M = (G_c + \lambda I)^{-1} R_c,\; b = \bar\Delta - \bar x M",
    source="SHIFT-LLM's adapter (direct fit, bias not penalised)",
    group="map",
    fit=fit,
    adds="C² + C",
    options=LEAST_SQUARES,
)
