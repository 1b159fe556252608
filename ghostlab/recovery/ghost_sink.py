"""The ghost layer with first tokens apart: it also works where massive activations are born inside the block.

The first token of a sequence often carries activations a hundred times those of any other ("attention sink",
arXiv 2402.17762). If the layer where they arise is dropped, no linear map can create them for one token
without tearing the others. Which token is first is known at run time, so it gets an offset of its own and the
map is fitted to the rest, as a relative error: tokens count by 1 / mean-square(y), because the few massive
ones that are not first would decide the ridge alone.
"""

from ghostlab.recovery.base import LEAST_SQUARES, WEIGHT, BlockFit, FitData, Operator, Option, RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """Affine least squares on all tokens but the first; x + mean(D) on first tokens."""
    from ghostlab.recovery.linear import fit_linear

    return fit_linear(data, spec, bias=True, first_apart=True)


OPERATOR = Operator(
    name="ghost_sink",
    title="Ghost layer, first token apart",
    summary="An affine map for ordinary tokens and a fixed offset for the first token of a sequence.",
    formula=r"\hat y_t = x_t + x_t M + b \;(t > 0), \quad \hat y_0 = x_0 + \bar\Delta_0",
    expresses="any affine map for ordinary tokens, one shift for first tokens: also where "
    "massive activations arise inside the block",
    source="Ghostlab",
    group="map",
    fit=fit,
    adds="C² + 2C",
    options={**LEAST_SQUARES, "weight": Option(WEIGHT.help, ("relative", "none"))},
)
