"""The best scaling of each channel by least squares."""

from __future__ import annotations

from ghostlab.model.replacement import AffineMap
from ghostlab.recovery.base import WEIGHTED, BlockFit, Method
from ghostlab.recovery.data import FitData
from ghostlab.recovery.linear import block_fit
from ghostlab.recovery.scaling import channel_ratios
from ghostlab.spec import RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """d_c - 1 = <x_c, D_c> / <x_c, x_c>."""
    moments = data.moments().all()
    excess, note = channel_ratios(moments.cross.diagonal(), moments.gram.diagonal())
    return block_fit(data, AffineMap(diagonal=excess), details=note)


METHOD = Method(
    name="diag_ls",
    title="Diagonal, least squares",
    summary="Scales every channel by the number with the least squared error.",
    formula=r"\hat y = x\,\mathrm{diag}(d),\quad"
    r" d_c = \frac{\langle x_c, y_c\rangle}{\langle x_c, x_c\rangle}",
    source="Least squares on LinearPatch's diagonal form",
    group="constrained",
    fit=fit,
    adds="C",
    options=WEIGHTED,
)
