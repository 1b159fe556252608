"""What symmetry costs: a fitted map against the best one that equals its transpose.

LinearPatch and every scaling are symmetric maps. The share of ||M||_F that is antisymmetric says little about
what they miss, because S and A may cancel on the few directions that hold most of the activations; the error
of the best symmetric map says it exactly.
"""

from __future__ import annotations

from torch import Tensor

from ghostlab.calibration.moments import Moments
from ghostlab.calibration.solve import best_bias, best_symmetric
from ghostlab.results.operator import SymmetrySplit


def split(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Symmetric and antisymmetric part of M."""
    return (matrix + matrix.T) / 2, (matrix - matrix.T) / 2


def symmetry_split(
    matrix: Tensor, bias: Tensor | None, train: Moments, held_out: Moments, ridge: float
) -> SymmetrySplit:
    """Energies of both parts of M, and held-out errors of M and of the best symmetric map at the same ridge.

    Args:
        matrix: M, [C, C], float64.
        bias: b, [C]; given, the symmetric competitor has a bias too.
        train: Moments that M was fitted on.
        held_out: Moments that errors are measured on.
        ridge: Added to the diagonal of G in both fits.
    """
    symmetric, antisymmetric = split(matrix)
    seen = train if bias is None else train.centred()
    rival = best_symmetric(seen.gram, seen.cross, ridge)
    rival_bias = None if bias is None else best_bias(train, rival)
    own_error = held_out.residual(matrix, bias)
    rival_error = held_out.residual(rival, rival_bias)
    norm = float(matrix.square().sum())
    moved = _moved(train.gram, matrix)
    return SymmetrySplit(
        frobenius={
            "symmetric": _ratio(float(symmetric.square().sum()), norm),
            "antisymmetric": _ratio(float(antisymmetric.square().sum()), norm),
        },
        activation={
            "symmetric": _ratio(_moved(train.gram, symmetric), moved),
            "antisymmetric": _ratio(_moved(train.gram, antisymmetric), moved),
        },
        explained=1 - _ratio(own_error, held_out.total),
        explained_symmetric=1 - _ratio(rival_error, held_out.total),
        relative_error=_ratio(own_error, held_out.state_power) ** 0.5,
        relative_error_symmetric=_ratio(rival_error, held_out.state_power) ** 0.5,
    )


def _moved(gram: Tensor, matrix: Tensor) -> float:
    """||X M||_F^2 = <M, G M>."""
    return max(float(((gram @ matrix) * matrix).sum()), 0.0)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
