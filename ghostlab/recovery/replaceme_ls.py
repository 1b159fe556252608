"""ReplaceMe by least squares: the MLP before the block makes up for it; nothing is added."""

from ghostlab.recovery.base import RIDGE, WEIGHTED, BlockFit, FitData, Operator, RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """T = I + (M'M + ridge I)^-1 M'D; ``ridge=0`` is as published."""
    from ghostlab.calibration.solve import fit_affine
    from ghostlab.recovery.linear import curve_of, warnings_of
    from ghostlab.recovery.mlp import MlpBefore, explained

    before = MlpBefore(data, "replaceme_ls")
    folds, plain = before.moments(data.weighting, data.progress)
    change, _, ridge = fit_affine(folds, spec.ridge, bias=False)
    return BlockFit(
        before.replacement(change),
        ridge=ridge.relative,
        explained_train=explained(plain, change),
        details=curve_of(ridge),
        warnings=warnings_of(data.calib.tokens, data.model.width, ridge),
    )


OPERATOR = Operator(
    name="replaceme_ls",
    title="ReplaceMe, least squares",
    summary="Transforms the MLP output of the layer before the block; merged into its weights, adds nothing.",
    formula=r"W_{down}' = W_{down} T,\quad T = (M^\top M + \lambda I)^{-1} M^\top (x_e - x_s + M)",
    expresses="any linear map of the last MLP's output; nothing of the residual stream beside it",
    source="ReplaceMe (2505.02819), LS",
    group="merged",
    fit=fit,
    adds="0",
    options={"ridge": RIDGE, **WEIGHTED},
)
