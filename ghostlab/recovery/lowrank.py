"""Keep a rank of a map, as factors of 2 C r numbers instead of C^2; the leading directions of a wide map.

Decompositions of a whole [C, C] matrix cost C^3: seconds on a CPU up to some 2,000 channels, minutes at twice
that. What only describes a map of more than :data:`WIDE` channels takes its leading directions alone, by
scikit-learn's randomised iteration and by SciPy's Lanczos method; what is fitted is always exact.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ghostlab.errors import ConfigError
from ghostlab.spec import RecoverySpec

Factors = tuple[Tensor, Tensor]

WIDE = 2048
"""The most channels of which everything is computed."""
LEADING = 256
"""Directions that are computed of a wider map."""


def is_wide(width: int) -> bool:
    """Whether a map of this many channels is described by its leading directions only."""
    return width > WIDE


def factor(spec: RecoverySpec, matrix: Tensor, cross: Tensor, default: str = "reduced_rank") -> Factors:
    """The factors of the rank that a spec names.

    Args:
        spec: Read for its rank and its option ``factor``.
        matrix: M, [C, C].
        cross: R for a least-squares fit; see :func:`reduced_rank`.
        default: How, if the spec does not say.
    """
    assert spec.rank is not None
    if spec.option("factor", default) == "truncated_svd":
        return truncated_svd(matrix, spec.rank)
    return reduced_rank(matrix, cross, spec.rank)


def truncated_svd(matrix: Tensor, rank: int, *, quick: bool = False) -> Factors:
    """The best rank-r approximation of M in the Frobenius norm, as in SHIFT-LLM: ``down [C, r] @ up [r, C]``.

    Args:
        matrix: M, [C, C].
        rank: r.
        quick: Iterate where M is wide.

    Raises:
        ConfigError: If the rank exceeds the width.
    """
    _check(rank, matrix)
    left, values, right = singular(matrix, rank if quick else None)
    root = values[:rank].sqrt()  # shared between the factors, so that both have the same scale
    return left[:, :rank] * root, root[:, None] * right[:rank]


def reduced_rank(matrix: Tensor, cross: Tensor, rank: int, *, quick: bool = False) -> Factors:
    """The best rank-r map for the activations, from the full solution M of H M = R with H = G + ridge I.

    Reduced-rank regression (Izenman 1975): M_r = M V V', V the top r eigenvectors of M' H M = R' M. Its loss
    exceeds that of M by the eigenvalues left out, and no rank-r map has a lower one. For any other M, pass
    2 R - G M as ``cross``. ``quick`` and errors are as for :func:`truncated_svd`.
    """
    _check(rank, matrix)
    directions = output_directions(matrix, cross, rank if quick else None)[:, :rank]
    return matrix @ directions, directions.T.clone()


def singular(matrix: Tensor, leading: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """U [C, k], values [k], V' [k, C] of M, float64, greatest first.

    Args:
        matrix: M.
        leading: How many are needed at least, if a wide M may be left at those; k is C else.
    """
    if _whole(matrix, leading):
        left, values, right = torch.linalg.svd(matrix)
        return left, values, right
    from sklearn.utils.extmath import randomized_svd

    found = randomized_svd(matrix.cpu().numpy(), leading, random_state=0)
    left, values, right = (torch.from_numpy(part.copy()).to(matrix.device) for part in found)
    return left, values, right


def output_directions(matrix: Tensor, cross: Tensor, leading: int | None = None) -> Tensor:
    """Orthonormal output directions [C, k] in the order in which they lower the loss most.

    Eigenvectors of M'R + R'M; ``leading`` as for :func:`singular`.
    """
    gain = cross.T @ matrix
    gain = (gain + gain.T) / 2
    if _whole(matrix, leading):
        vectors: Tensor = torch.linalg.eigh(gain)[1]
        return vectors.flip(1)
    from scipy.sparse.linalg import eigsh

    start = torch.ones(len(gain), dtype=gain.dtype).numpy()
    found = eigsh(gain.cpu().numpy(), leading, which="LA", v0=start)[1]
    return torch.from_numpy(found.copy()).to(matrix.device).flip(1)


def _whole(matrix: Tensor, leading: int | None) -> bool:
    return leading is None or not is_wide(len(matrix)) or 4 * leading > len(matrix)


def _check(rank: int, matrix: Tensor) -> None:
    if rank > len(matrix):
        raise ConfigError(f"Rank {rank} exceeds the model's width.", f"Use at most {len(matrix)}.")
