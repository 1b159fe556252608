"""One layer of the block is kept and refitted; nothing else is added: an ordinary, shorter checkpoint."""

from __future__ import annotations

from ghostlab.recovery.base import BlockFit, Method
from ghostlab.recovery.data import FitData
from ghostlab.recovery.keep import OPTIONS, fit_kept_layer
from ghostlab.spec import RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """Refit the output projections of the layer that leaves the least error."""
    return fit_kept_layer(data, spec, beside=False)


METHOD = Method(
    name="refit_layer",
    title="Refitted layer",
    summary="Keeps one layer of the block and refits its output projections in closed form.",
    formula=r"\hat y = \mathrm{layer}_j(x;\, W_o, W_d),\quad W_o, W_d \text{ by least squares}",
    source="Ghostlab (the closed form of LLM-Streamline's trained layer, 2403.19135)",
    group="layer",
    fit=fit,
    adds="the kept layer",
    options=OPTIONS,
)
