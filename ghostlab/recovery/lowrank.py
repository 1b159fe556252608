"""Keep a rank of a fitted map: factors of 2 C r numbers instead of C^2."""

from __future__ import annotations

import torch
from torch import Tensor

from ghostlab.errors import ConfigError
from ghostlab.spec import RecoverySpec

Factors = tuple[Tensor, Tensor]


def truncated_svd(matrix: Tensor, rank: int) -> Factors:
    """The best rank-r approximation of M in the Frobenius norm, as in SHIFT-LLM: ``down [C, r] @ up [r, C]``.

    Raises:
        ConfigError: If the rank exceeds the width.
    """
    check_rank(rank, matrix.shape[0])
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    root = values[:rank].sqrt()  # shared between the factors, so that both have the same scale
    return left[:, :rank] * root, root[:, None] * right[:rank]


def reduced_rank(matrix: Tensor, cross: Tensor, rank: int) -> Factors:
    """The best rank-r map for the activations, from the full solution M of H M = R with H = G + ridge I.

    Reduced-rank regression (Izenman 1975): M_r = M V V', V the top r eigenvectors of M' H M = R' M. Its loss
    exceeds that of M by the eigenvalues left out, and no rank-r map has a lower one.

    Raises:
        ConfigError: If the rank exceeds the width.
    """
    check_rank(rank, matrix.shape[0])
    directions = output_directions(matrix, cross)[:, :rank]
    return matrix @ directions, directions.T


def factor(
    spec: RecoverySpec, matrix: Tensor, cross: Tensor, default: str = "reduced_rank"
) -> Factors | None:
    """The factors that a spec asks for, or ``None`` if it asks for no rank.

    Args:
        spec: Read for its rank and its option ``factor``.
        matrix: M, [C, C].
        cross: R for a least-squares fit; see :func:`reduced_rank`.
        default: How, if the spec does not say.
    """
    if spec.rank is None:
        return None
    if spec.option("factor", default) == "truncated_svd":
        return truncated_svd(matrix, spec.rank)
    return reduced_rank(matrix, cross, spec.rank)


def output_directions(matrix: Tensor, cross: Tensor) -> Tensor:
    """Orthonormal output directions [C, C] in the order in which they lower the loss most."""
    gain = cross.T @ matrix
    _, vectors = torch.linalg.eigh((gain + gain.T) / 2)
    ordered: Tensor = vectors.flip(1)
    return ordered


def check_rank(rank: int, width: int) -> None:
    """Raise ConfigError unless a map of this width can have this rank."""
    if rank > width:
        raise ConfigError(f"Rank {rank} exceeds the model's width.", f"Use at most {width}.")
