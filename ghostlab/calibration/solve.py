"""Least squares from second moments: ridge, minimum norm, and a ridge chosen by cross-validation.

All of it is float64 and works on C x C matrices only. With G = X'X, R = X'D and one eigendecomposition
G = V diag(g) V', the whole ridge path M(l) = V diag(1 / (g + l)) V'R is at hand, and its squared error on
other tokens with moments G', R', t' is t' - 2 <M, R'> + <M, G'M>, which in that basis costs C^2 per ridge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ghostlab.calibration.moments import Moments, total
from ghostlab.errors import NumericsError
from ghostlab.spec import parse_ridge

RELATIVE_RIDGES = tuple(10.0 ** (exponent / 2) for exponent in range(-16, 1))
"""Candidates of the cross-validation, relative to the mean diagonal of G: 1e-8 to 1."""

UNVALIDATED_RIDGE = 1e-4
"""Used when there is one fold only and nothing can be left out."""


@dataclass(frozen=True)
class Ridge:
    """A chosen ridge.

    Attributes:
        added: What is added to the diagonal of G, in squared units of the state.
        relative: The same over the mean diagonal tr(G) / C.
        curve: Cross-validated explained share per candidate of :data:`RELATIVE_RIDGES`, if validated.
        warning: What the user should know about the choice, or nothing.
    """

    added: float
    relative: float
    curve: tuple[float, ...] = ()
    warning: str = ""


HeldOutErrors = Callable[[Moments, Moments], Tensor]
"""Squared error on the second moments of the fit to the first, for every candidate ridge; [ridges]."""


class RidgePath:
    """Every candidate ridge at once, from one eigendecomposition G = V diag(g) V' that any R can use.

    M(l) = V diag(1 / (g + l)) P with P = V'R; l runs over :data:`RELATIVE_RIDGES` x tr(G) / C.

    ``values`` are g [C], not below 0; ``vectors`` V [C, C]; ``weights`` 1 / (g + l), [ridges, C].
    """

    vectors: Tensor

    def __init__(self, gram: Tensor) -> None:
        values, self.vectors = torch.linalg.eigh(gram)
        self.values: Tensor = values.clamp(min=0)
        ridges = torch.tensor(RELATIVE_RIDGES, dtype=gram.dtype, device=gram.device)
        scale = gram.trace() / len(gram)
        self.weights: Tensor = 1 / (self.values + ridges[:, None] * scale)

    def project(self, cross: Tensor) -> Tensor:
        """P = V'R, [C, K]."""
        return self.vectors.T @ cross

    def turn(self, matrix: Tensor) -> Tensor:
        """V'AV, [C, C]."""
        return self.vectors.T @ matrix @ self.vectors

    def errors(
        self, projected: Tensor, overlap: Tensor, gram: Tensor, cross: Tensor, total: Tensor | float
    ) -> Tensor:
        """||X M(l) - D||^2 of every candidate on other tokens, C^2 each; [ridges].

        ``projected`` is P, ``overlap`` P P'. Of the other tokens, ``gram`` is G by :meth:`turn`, ``cross`` R
        by :meth:`project`, and ``total`` ||D||^2.
        """
        linear = (projected * cross).sum(1)
        quadratic = gram * overlap
        return total - 2 * self.weights @ linear + ((self.weights @ quadratic) * self.weights).sum(1)

    def map(self, projected: Tensor, candidate: int) -> Tensor:
        """M(l) of one candidate, [C, K]."""
        return self.vectors @ (self.weights[candidate][:, None] * projected)


def held_out_errors(train: Moments, test: Moments) -> Tensor:
    """||X M(l) - D||^2 on ``test`` for every candidate l, fitted on ``train``; [ridges]."""
    path = RidgePath(train.gram)
    projected = path.project(train.cross)
    overlap = projected @ projected.T
    return path.errors(projected, overlap, path.turn(test.gram), path.project(test.cross), test.total)


def choose_ridge(
    setting: str,
    folds: Sequence[Moments],
    *,
    centre: bool,
    errors: HeldOutErrors = held_out_errors,
    validations: int | None = None,
) -> Ridge:
    """Read a ridge setting (see :class:`~ghostlab.spec.RecoverySpec`); cross-validate when it is ``auto``.

    Args:
        setting: ``auto``, a relative number, or ``abs:NUMBER``.
        centre: Whether an unpenalised bias is fitted along, so that G is taken about the mean.
        errors: Those of the family to be fitted; default those of the unconstrained map.
        validations: How many folds are left out in turn; default all of them.
    """
    kind, value = parse_ridge(setting)
    moments = total(folds)
    gram = moments.centred().gram if centre else moments.gram
    scale = float(gram.trace()) / moments.width
    if kind == "absolute":
        return Ridge(value, value / scale if scale else 0.0)
    if kind == "relative":
        return Ridge(value * scale, value)
    if len(folds) < 2:
        return Ridge(
            UNVALIDATED_RIDGE * scale,
            UNVALIDATED_RIDGE,
            warning="One calibration sequence leaves nothing to validate the ridge on; it is fixed at 1e-4.",
        )
    error, gap = torch.zeros(len(RELATIVE_RIDGES), dtype=gram.dtype, device=gram.device), 0.0
    for train, test in _left_out(folds, folds[:validations], centre=centre):
        error += errors(train, test)
        gap += test.total
    best = RELATIVE_RIDGES[int(error.argmin())]
    explained = tuple((1 - error / gap).tolist()) if gap else ()
    return Ridge(best * scale, best, explained)


def cross_validate(folds: Sequence[Moments], tests: Sequence[Moments], *, centre: bool) -> Tensor:
    """Squared error on ``tests[k]`` of the fit on all ``folds`` but the k-th, summed over the tests.

    There are at least two folds. A test is the fold left out, or some of its tokens. With ``centre`` an
    unpenalised bias is fitted along. One sum per candidate of :data:`RELATIVE_RIDGES`.
    """
    return torch.stack([held_out_errors(*pair) for pair in _left_out(folds, tests, centre=centre)]).sum(0)


def _left_out(
    folds: Sequence[Moments], tests: Sequence[Moments], *, centre: bool
) -> Iterator[tuple[Moments, Moments]]:
    """For each of ``tests`` the moments of all folds but the one that it belongs to, and its own.

    With a bias fitted along, both are seen from the training mean, where that bias is zero.
    """
    whole = total(folds)
    for fold, test in zip(folds, tests, strict=False):
        train = whole - fold
        x, change = train.x / train.count, train.change / train.count
        yield (train.about(x, change), test.about(x, change)) if centre else (train, test)


def solve(gram: Tensor, cross: Tensor, ridge: float) -> Tensor:
    """M = (G + ridge I)^-1 R, or the minimum-norm least-squares solution G^+ R when ``ridge`` is 0.

    G [C, C] is symmetric positive semidefinite, R [C, K]; both float64.

    Raises:
        NumericsError: If the moments hold NaN or infinity.
    """
    if not (torch.isfinite(gram).all() and torch.isfinite(cross).all()):
        raise NumericsError("The calibration moments hold NaN or infinity.", "Load the model in float32.")
    if ridge > 0:
        shifted = gram + ridge * torch.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
        factor, failed = torch.linalg.cholesky_ex(shifted)
        if not failed:
            return torch.cholesky_solve(cross, factor)
    values, vectors = torch.linalg.eigh(gram)
    # eigenvalues below rounding error of the largest are zero: directions that no token has
    floor = values[-1].clamp(min=0) * gram.shape[0] * torch.finfo(gram.dtype).eps
    inverse = torch.where(values > floor, 1 / (values + ridge), torch.zeros_like(values))
    least: Tensor = vectors @ (inverse[:, None] * (vectors.T @ cross))
    return least


class AffineFit(NamedTuple):
    """x -> x M + b in float64, its bias (if there is one) and its ridge."""

    matrix: Tensor
    bias: Tensor | None
    ridge: Ridge


def fit_affine(
    folds: Sequence[Moments], setting: str = "auto", *, bias: bool, validations: int | None = None
) -> AffineFit:
    """Ridge least squares of D on X. With a ``bias``, which is not penalised, moments are centred first.

    Other arguments are those of :func:`choose_ridge`.
    """
    whole = total(folds)
    ridge = choose_ridge(setting, folds, centre=bias, validations=validations)
    seen = whole.centred() if bias else whole
    matrix = solve(seen.gram, seen.cross, ridge.added)
    return AffineFit(matrix, best_bias(whole, matrix) if bias else None, ridge)


def best_bias(seen: Moments, matrix: Tensor) -> Tensor:
    """The b of least error beside M: mean(D) - mean(X) M, [K]."""
    return (seen.change - seen.x @ matrix) / seen.count


def best_symmetric(gram: Tensor, cross: Tensor, ridge: float = 0.0) -> Tensor:
    """The best symmetric map: argmin ||X M - D||^2 + ridge ||M||^2 over M = M'.

    It solves the Lyapunov equation H M + M H = R + R' with H = G + ridge I. In the eigenbasis of G that
    decouples to M_ij = (R + R')_ij / (h_i + h_j). Directions without tokens get 0.
    """
    values, vectors = torch.linalg.eigh(gram)
    right = vectors.T @ (cross + cross.T) @ vectors
    best: Tensor = vectors @ in_eigenbasis(values, right, ridge) @ vectors.T
    return best


def symmetric_errors(train: Moments, test: Moments) -> Tensor:
    """||X M(l) - D||^2 on ``test`` for every candidate ridge, M(l) the best symmetric on ``train``."""
    values, vectors = torch.linalg.eigh(train.gram)
    right = vectors.T @ (train.cross + train.cross.T) @ vectors
    cross, gram = vectors.T @ test.cross @ vectors, vectors.T @ test.gram @ vectors
    scale = float(train.gram.trace()) / train.width
    errors = []
    for ridge in RELATIVE_RIDGES:
        inner = in_eigenbasis(values, right, ridge * scale)
        errors.append(test.total + ((gram @ inner - 2 * cross) * inner).sum())
    return torch.stack(errors)


def in_eigenbasis(values: Tensor, right: Tensor, ridge: float) -> Tensor:
    """The best symmetric M as V'MV, from the eigenvalues of G = V diag(values) V' and right = V'(R + R')V."""
    values = values.clamp(min=0) + ridge
    sums = values[:, None] + values[None, :]
    floor = float(values.max()) * len(values) * torch.finfo(values.dtype).eps
    return torch.where(sums > 2 * floor, right / sums, torch.zeros_like(right))
