"""The best symmetric map: everything that LinearPatch and every scaling could reach by least squares."""

from ghostlab.recovery.base import LEAST_SQUARES, BlockFit, FitData, Operator, RecoverySpec


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """The symmetric M of least error, with a ridge validated for symmetric maps."""
    from ghostlab.calibration.moments import total
    from ghostlab.calibration.solve import best_symmetric, choose_ridge, symmetric_errors
    from ghostlab.recovery.linear import fit_matrix

    folds = data.moments().folds()
    ridge = choose_ridge(spec.ridge, folds, centre=False, errors=symmetric_errors)
    seen = total(folds)
    return fit_matrix(data, spec, best_symmetric(seen.gram, seen.cross, ridge.added), seen, ridge)


OPERATOR = Operator(
    name="symmetric",
    title="Best symmetric map",
    summary="The symmetric matrix with the least squared error; shows what leaving symmetry is worth.",
    formula=r"\hat y = x + xM,\quad M = M^\top,\quad (G + \lambda I)M + M(G + \lambda I) = R + R^\top",
    expresses="any symmetric matrix: scalings along any orthogonal axes",
    source="Lyapunov equation of symmetric least squares",
    group="constrained",
    fit=fit,
    options=LEAST_SQUARES,
)
