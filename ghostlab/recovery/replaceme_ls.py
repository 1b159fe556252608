"""ReplaceMe by least squares: the MLP before the block makes up for it; nothing is added."""

from __future__ import annotations

from ghostlab.calibration.moments import total
from ghostlab.calibration.solve import choose_ridge, solve
from ghostlab.recovery.base import RIDGE, WEIGHTED, BlockFit, Method
from ghostlab.recovery.data import FitData
from ghostlab.recovery.linear import scarcity
from ghostlab.recovery.merged_mlp import MlpBefore, explained
from ghostlab.spec import RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """T = I + (M'M + ridge I)^-1 M'D; ``ridge=0`` is as published."""
    before = MlpBefore(data, "replaceme_ls")
    folds, plain = before.moments(data.weighting, data.progress)
    ridge = choose_ridge(spec.ridge, folds, centre=False)
    seen = total(folds)
    change = solve(seen.gram, seen.cross, ridge.added)
    return BlockFit(
        before.replacement(change),
        ridge=ridge.relative,
        explained_train=explained(plain, change),
        details={"ridge_curve": list(ridge.curve)} if ridge.curve else {},
        warnings=(
            *scarcity(data.calib.tokens, seen.width),
            *((ridge.warning,) if ridge.warning else ()),
        ),
    )


METHOD = Method(
    name="replaceme_ls",
    title="ReplaceMe, least squares",
    summary="Transforms the MLP output of the layer before the block; merged into its weights, adds nothing.",
    formula=r"W_{down}' = W_{down} T,\quad T = (M^\top M + \lambda I)^{-1} M^\top (x_e - x_s + M)",
    source="ReplaceMe (2505.02819), LS",
    group="merged",
    fit=fit,
    adds="0",
    options={"ridge": RIDGE, **WEIGHTED},
)
