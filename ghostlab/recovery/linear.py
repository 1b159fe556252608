"""Maps on the residual stream: the ridge fit that several operators share, and what all of them report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ghostlab.calibration.moments import BlockMoments, Moments, total
from ghostlab.calibration.solve import Ridge, best_bias, fit_affine
from ghostlab.model.replacement import AffineMap, Replacement
from ghostlab.recovery.base import BlockFit
from ghostlab.recovery.data import FitData
from ghostlab.recovery.lowrank import Factors, factor
from ghostlab.spec import RecoverySpec


@dataclass(frozen=True)
class LinearFit:
    """A fitted map in float64: M [C, C] and, if a rank was asked for, its factors; b [C] if there is one."""

    matrix: Tensor
    factors: Factors | None
    bias: Tensor | None
    ridge: Ridge


def fit_linear(data: FitData, spec: RecoverySpec, *, bias: bool, first_apart: bool = False) -> BlockFit:
    """Fit x -> x + x M (+ b) on the calibration tokens.

    Args:
        data: The block's data.
        spec: Options of :data:`~ghostlab.recovery.base.LEAST_SQUARES`.
        bias: Whether there is a b.
        first_apart: Fit on all tokens but the first of each window; those get their own mean change.
    """
    moments = data.moments()
    found = least_squares(moments.folds(first=not first_apart), spec, bias=bias)
    fitted = AffineMap(
        None if found.factors else found.matrix,
        factors=found.factors,
        bias=found.bias,
        first=moments.first_change() if first_apart else None,
    )
    return block_fit(data, fitted, found.ridge, first_apart=first_apart)


def least_squares(
    folds: Sequence[Moments], spec: RecoverySpec, *, bias: bool, factoring: str = "reduced_rank"
) -> LinearFit:
    """Ridge least squares from moments per fold, at the rank of the spec; the bias is that of the factored M.

    Args:
        folds: Moments per fold of documents.
        spec: Options of :data:`~ghostlab.recovery.base.LEAST_SQUARES`.
        bias: Whether there is a b.
        factoring: How a rank is taken if the spec does not say.
    """
    matrix, offset, ridge = fit_affine(folds, spec.ridge, bias=bias)
    if spec.rank is None:
        return LinearFit(matrix, None, offset, ridge)
    whole = total(folds)
    factors = factor(spec, matrix, (whole.centred() if bias else whole).cross, factoring)
    matrix = factors[0] @ factors[1]
    return LinearFit(matrix, factors, best_bias(whole, matrix) if bias else None, ridge)


def fit_matrix(
    data: FitData,
    spec: RecoverySpec,
    matrix: Tensor,
    seen: Moments,
    ridge: Ridge | None = None,
    *,
    free: bool = False,
    details: Mapping[str, Any] | None = None,
) -> BlockFit:
    """The report of a matrix M [C, C] that was fitted elsewhere, at the rank of the spec.

    Reduced rank is M V V' with the V of least error, top eigenvectors of M'R + R'M - M'GM: for a
    least-squares M, where GM = R, that is reduced-rank regression. (Of a symmetric M it is not symmetric,
    and may have less error than the whole.)

    Args:
        data: The block's data.
        spec: Read for its rank.
        matrix: M, float64.
        seen: Moments of the tokens it was fitted on.
        ridge, free, details: As :func:`block_fit` takes them.
    """
    factors = None if spec.rank is None else factor(spec, matrix, 2 * seen.cross - seen.gram @ matrix)
    fitted = AffineMap(None if factors else matrix, factors=factors)
    return block_fit(data, fitted, ridge, free=free, details=details)


def block_fit(
    data: FitData,
    fitted: AffineMap,
    ridge: Ridge | None = None,
    *,
    first_apart: bool = False,
    free: bool = False,
    details: Mapping[str, Any] | None = None,
) -> BlockFit:
    """What is reported of a map that stands alone: its ridge, its training error, warnings.

    Args:
        data: The block's data.
        fitted: The map.
        ridge: How its ridge was chosen, if it has one.
        first_apart: As in :class:`~ghostlab.recovery.base.BlockFit`.
        free: Whether it has as many free numbers as a matrix though no ridge is reported here.
        details: Figures of the operator.
    """
    return BlockFit(
        Replacement(fitted),
        ridge=ridge.relative if ridge else None,
        explained_train=explained(data.moments("none"), fitted),
        first_apart=first_apart,
        details={**(curve_of(ridge) if ridge else {}), **(details or {})},
        warnings=warnings_of(data.calib.tokens, fitted.width, ridge) if ridge or free else (),
    )


def curve_of(ridge: Ridge) -> dict[str, Any]:
    """The cross-validation curve for the details of a fit, if the ridge was validated."""
    return {"ridge_curve": list(ridge.curve)} if ridge.curve else {}


def warnings_of(tokens: float, width: int, ridge: Ridge | None = None) -> tuple[str, ...]:
    """What the user should know of a fit with as many free numbers as a matrix."""
    return (
        *scarcity(tokens, width),
        *((ridge.warning,) if ridge and ridge.warning else ()),
    )


def explained(moments: BlockMoments, replacement: AffineMap) -> float:
    """Share of the gap ||Y - X||^2 that a map explains on the tokens of unweighted ``moments``."""
    gap = moments.all().total
    apart = replacement.first is not None
    bias = None if replacement.bias is None else replacement.bias.double()
    error = moments.all(first=not apart).residual(replacement.matrix(), bias)
    if replacement.first is not None:
        error += float((moments.first_changes().double() - replacement.first).square().sum())
    return 1 - error / gap if gap else 0.0


def scarcity(tokens: float, width: int) -> tuple[str, ...]:
    """A warning if there are fewer than 2 C tokens: below that a fit follows the ridge more than the text."""
    if tokens >= 2 * width:
        return ()
    return (
        f"Only {tokens:,.0f} calibration tokens for a width of {width}: below {2 * width:,} the fit follows "
        "the ridge more than the text. Use more sequences.",
    )
