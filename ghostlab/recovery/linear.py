"""Ridge least squares on the residual stream: the fit that ``ghost``, ``affine`` and ``ghost_sink`` share."""

from __future__ import annotations

from typing import cast

from torch import Tensor

from ghostlab.calibration.moments import BlockMoments, Moments, Weighting, total
from ghostlab.calibration.solve import choose_ridge, solve
from ghostlab.model.standin import AffineMap, StandIn
from ghostlab.recovery.base import BlockFit
from ghostlab.recovery.data import FitData
from ghostlab.recovery.lowrank import Factors, reduced_rank, truncated_svd
from ghostlab.spec import RecoverySpec


def fit_linear(data: FitData, spec: RecoverySpec, *, bias: bool, first_apart: bool = False) -> BlockFit:
    """Fit x -> x + x M (+ b) on the calibration tokens.

    The bias is not penalised: M is fitted to centred moments and b = mean(D) - mean(X) M. With a rank, M is
    factored first and b follows from what is left of it.

    Args:
        data: The block's data.
        spec: Options of :data:`~ghostlab.recovery.base.LEAST_SQUARES`.
        bias: Whether there is a b.
        first_apart: Fit on all tokens but the first of each window; those get their own mean change.
    """
    weighting = cast("Weighting", spec.option("weight", "none"))
    moments = data.moments(weighting)
    folds = moments.folds(first=not first_apart)
    whole = total(folds)
    ridge = choose_ridge(spec.ridge, folds, centre=bias)
    seen = whole.centred() if bias else whole
    matrix = solve(seen.gram, seen.cross, ridge.added)
    factors = _factors(spec, matrix, seen)
    kept = matrix if factors is None else factors[0] @ factors[1]
    fitted = AffineMap(
        matrix if factors is None else None,
        factors=factors,
        bias=(whole.change - whole.x @ kept) / whole.count if bias else None,
        first=moments.first_change() if first_apart else None,
    )
    return BlockFit(
        StandIn(fitted),
        ridge=ridge.relative,
        explained_train=explained(data.moments(), fitted),
        first_apart=first_apart,
        details={"ridge_curve": list(ridge.curve)} if ridge.curve else {},
        warnings=(
            *scarcity(data.calib.tokens, whole.width),
            *((ridge.warning,) if ridge.warning else ()),
        ),
    )


def explained(moments: BlockMoments, standin: AffineMap) -> float:
    """Share of the gap ||Y - X||^2 that a map explains on the tokens of unweighted ``moments``."""
    gap = moments.all().total
    apart = standin.first is not None
    bias = None if standin.bias is None else standin.bias.double()
    error = moments.all(first=not apart).residual(standin.matrix(), bias)
    if standin.first is not None:
        error += float((moments.first_changes().double() - standin.first).square().sum())
    return 1 - error / gap if gap else 0.0


def scarcity(tokens: float, width: int) -> tuple[str, ...]:
    """A warning if there are fewer than 2 C tokens: below that a fit follows the ridge more than the text."""
    if tokens >= 2 * width:
        return ()
    return (
        f"Only {tokens:,.0f} calibration tokens for a width of {width}: below {2 * width:,} the fit follows "
        "the ridge more than the text. Use more sequences.",
    )


def _factors(spec: RecoverySpec, matrix: Tensor, seen: Moments) -> Factors | None:
    if spec.rank is None:
        return None
    if spec.option("factor", "reduced_rank") == "truncated_svd":
        return truncated_svd(matrix, spec.rank)
    return reduced_rank(matrix, seen.cross, spec.rank)
