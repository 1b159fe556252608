"""The best scaling of each channel by least squares."""

from ghostlab.recovery.base import WEIGHTED, BlockFit, FitData, Operator, RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """d_c - 1 = <x_c, D_c> / <x_c, x_c>."""
    from ghostlab.model.replacement import AffineMap
    from ghostlab.recovery.linear import block_fit
    from ghostlab.recovery.scaling import channel_ratios

    moments = data.moments().all()
    excess, note = channel_ratios(moments.cross.diagonal(), moments.gram.diagonal())
    return block_fit(data, AffineMap(diagonal=excess), details=note)


OPERATOR = Operator(
    name="diag_ls",
    title="Diagonal, least squares",
    summary="Scales every channel by the number with the least squared error.",
    formula=r"\hat y = x\,\mathrm{diag}(d),\quad"
    r" d_c = \frac{\langle x_c, y_c\rangle}{\langle x_c, x_c\rangle}",
    expresses="a scaling of each channel, the best one",
    source="Least squares on LinearPatch's diagonal form",
    group="constrained",
    fit=fit,
    adds="C",
    options=WEIGHTED,
)
