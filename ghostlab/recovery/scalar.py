"""One number that makes up for the difference in magnitude, as in Prune&Comp.

That paper's exact estimator is not public; three natural ones are offered, and the one used is reported.
"""

from ghostlab.errors import ConfigError
from ghostlab.recovery.base import WEIGHTED, BlockFit, FitData, Operator, Option, RecoverySpec

ESTIMATOR = Option(
    "ls: least squares <X, Y> / <X, X>; norm: mean norm after the block over mean norm before it; "
    "ratio: mean of each token's own ratio of norms",
    ("ls", "norm", "ratio"),
)


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """M = (a - 1) I.

    Raises:
        ConfigError: If a weight is asked for with an estimator that is not least squares.
    """
    from ghostlab.model.replacement import AffineMap
    from ghostlab.recovery.linear import block_fit

    estimator = spec.option("estimator", "ls")
    if estimator != "ls" and data.weighting != "none":
        raise ConfigError(
            f"Estimator '{estimator}' weighs all tokens alike.", "Use estimator=ls with weight=relative."
        )
    excess = _least_squares(data) if estimator == "ls" else _norms(data, estimator) - 1
    sums = data.moments().all().x
    diagonal = sums.new_full(sums.shape, excess)
    details = {"estimator": estimator, "alpha": 1 + excess}
    return block_fit(data, AffineMap(diagonal=diagonal), details=details)


def _least_squares(data: FitData) -> float:
    """a - 1 = <X, D> / <X, X>."""
    moments = data.moments().all()
    power = float(moments.gram.trace())
    return float(moments.cross.trace()) / power if power else 0.0


def _norms(data: FitData, estimator: str) -> float:
    from ghostlab.model.device import exact
    from ghostlab.recovery.scaling import ratio

    before, after, ratios, count = 0.0, 0.0, 0.0, 0
    for _, states in data.batches({data.block.start, data.block.stop}):
        x, y = (exact(states[b].float().norm(dim=-1)) for b in (data.block.start, data.block.stop))
        before, after = before + float(x.sum()), after + float(y.sum())
        ratios, count = ratios + float(ratio(y, x, 1.0).sum()), count + x.numel()
    return after / before if estimator == "norm" else ratios / count


OPERATOR = Operator(
    name="scalar",
    title="Scalar",
    summary="Multiplies the state by one number, by least squares or by the ratio of norms (an option).",
    formula=r"\hat y = \alpha x,\quad \alpha = \frac{\langle X, Y\rangle}{\langle X, X\rangle}"
    r" \;\text{or}\; \frac{\overline{\lVert y\rVert}}{\overline{\lVert x\rVert}}",
    expresses="one magnification",
    source="Prune&Comp (2507.18212)",
    group="baseline",
    fit=fit,
    adds="C",
    options={"estimator": ESTIMATOR, **WEIGHTED},
)
