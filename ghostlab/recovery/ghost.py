"""The ghost layer: the unconstrained least-squares map of Ghosted Layers (arXiv 2605.15491)."""

from __future__ import annotations

from ghostlab.recovery.base import LEAST_SQUARES, BlockFit, Method
from ghostlab.recovery.data import FitData
from ghostlab.recovery.linear import fit_linear
from ghostlab.spec import RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """M = (G + ridge I)^-1 R; G^+ R with ridge 0."""
    return fit_linear(data, spec, bias=False)


METHOD = Method(
    name="ghost",
    title="Ghost layer",
    summary="The linear map with the least squared error at the boundary; symmetric or not.",
    formula=r"\hat y = x + xM,\quad M = (X^\top X + \lambda I)^{-1} X^\top (Y - X)",
    source="Ghosted Layers (2605.15491)",
    group="map",
    fit=fit,
    options=LEAST_SQUARES,
)
