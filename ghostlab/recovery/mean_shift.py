"""The mean change of the block, added to every state: a bias and nothing else."""

from ghostlab.recovery.base import WEIGHTED, BlockFit, FitData, Operator, RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """b = mean(D): the least-squares fit with M = 0."""
    from ghostlab.model.replacement import AffineMap
    from ghostlab.recovery.linear import block_fit

    moments = data.moments().all()
    return block_fit(data, AffineMap(bias=moments.change / moments.count))


OPERATOR = Operator(
    name="mean_shift",
    title="Mean shift",
    summary="Adds the mean change of the block: a bias alone.",
    formula=r"\hat y = x + \bar\Delta",
    expresses="one shift, the same for all tokens",
    source="Least squares with M = 0; a common baseline",
    group="baseline",
    fit=fit,
    adds="C",
    options=WEIGHTED,
)
