"""One layer of the block is kept and refitted; nothing else is added: an ordinary, shorter checkpoint."""

from ghostlab.recovery.base import RIDGE, BlockFit, FitData, Operator, Option, RecoverySpec

OPTIONS = {
    "layer": Option("which layer of the block is kept: auto (least error), or its index"),
    "first": Option(
        "first tokens: auto, an offset of their own, or whatever the layer makes", ("auto", "offset", "layer")
    ),
    "attention": Option(
        "the attention projection is fitted jointly with the MLP, or alone", ("joint", "alone")
    ),
    "ridge": RIDGE,
    "weight": Option("how tokens count", ("relative", "none")),
}
"""Those of every operator that keeps a layer; see :mod:`ghostlab.recovery.keep`."""


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """Refit the output projections of the layer that leaves the least error."""
    from ghostlab.recovery.keep import fit_kept_layer

    return fit_kept_layer(data, spec, beside=False)


OPERATOR = Operator(
    name="refit_layer",
    title="Refitted layer",
    summary="Keeps one layer of the block and refits its output projections in closed form.",
    formula=r"\hat y = \mathrm{layer}_j(x;\, W_o, W_d),\quad W_o, W_d \text{ by least squares}",
    expresses="one decoder layer with new output projections: looks at other tokens, not linear",
    source="Ghostlab (the closed form of LLM-Streamline's trained layer, 2403.19135)",
    group="layer",
    fit=fit,
    adds="the kept layer",
    options=OPTIONS,
)
