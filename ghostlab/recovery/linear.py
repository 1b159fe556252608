"""The fit that ``ghost`` and ``affine`` share: ridge least squares on the whole residual stream."""

from __future__ import annotations

from ghostlab.calibration.moments import BlockMoments, total
from ghostlab.model.standin import AffineMap
from ghostlab.recovery.base import BlockFit
from ghostlab.recovery.lowrank import truncated_svd
from ghostlab.recovery.solve import choose_ridge, solve
from ghostlab.spec import RecoverySpec


def fit_linear(data: BlockMoments, spec: RecoverySpec, *, bias: bool) -> BlockFit:
    """Fit x -> x + x M (+ b) on all calibration tokens.

    The bias is not penalised: M is fitted to centred moments and b = mean(D) - mean(X) M. With a rank, M is
    truncated first and b follows from what is left of it.
    """
    folds = data.folds()
    moments = total(folds)
    ridge = choose_ridge(spec.ridge, folds, centre=bias)
    seen = moments.centred() if bias else moments
    matrix = solve(seen.gram, seen.cross, ridge.added)
    factors = None
    if spec.rank is not None:
        factors = truncated_svd(matrix, spec.rank)
        matrix = factors[0] @ factors[1]
    offset = (moments.change - moments.x @ matrix) / moments.count if bias else None
    gap = moments.total
    return BlockFit(
        AffineMap(None if factors else matrix, factors=factors, bias=offset),
        ridge=ridge.relative,
        explained_train=1 - moments.residual(matrix, offset) / gap if gap else 0.0,
        details={"ridge_curve": list(ridge.curve)} if ridge.curve else {},
        warnings=(*_scarcity(moments.count, moments.width), *((ridge.warning,) if ridge.warning else ())),
    )


def _scarcity(tokens: float, width: int) -> tuple[str, ...]:
    if tokens >= 2 * width:
        return ()
    return (
        f"Only {tokens:,.0f} calibration tokens for a width of {width}: below {2 * width:,} the fit follows "
        "the ridge more than the text. Use more sequences.",
    )
