"""Leading singular and eigenvectors: all of them where that is quick, else some by iteration.

Decompositions of a whole [C, C] matrix cost C^3: seconds on a CPU up to some 2,000 channels, minutes at twice
that. Above :data:`WIDE` only leading directions are computed, by scikit-learn's randomised iteration and by
SciPy's Lanczos method.
"""

from __future__ import annotations

import torch
from scipy.sparse.linalg import eigsh
from sklearn.utils.extmath import randomized_svd
from torch import Tensor

WIDE = 2048
"""The most channels of which everything is computed."""
LEADING = 256
"""Directions that are computed of a wider map."""


def is_wide(width: int) -> bool:
    """Whether a map of this many channels is described by its leading directions only."""
    return width > WIDE


def singular(matrix: Tensor, leading: int) -> tuple[Tensor, Tensor, Tensor]:
    """U [C, k], values [k], V' [k, C] of M, float64, greatest first; k is C unless M is wide.

    Args:
        matrix: M.
        leading: How many directions are needed at least.
    """
    if not is_wide(len(matrix)) or 4 * leading > len(matrix):
        left, values, right = torch.linalg.svd(matrix)
        return left, values, right
    found = randomized_svd(matrix.cpu().numpy(), leading, random_state=0)
    left, values, right = (torch.from_numpy(part.copy()).to(matrix.device) for part in found)
    return left, values, right


def output_directions(matrix: Tensor, cross: Tensor, leading: int) -> Tensor:
    """Orthonormal output directions [C, k] in the order in which they lower the loss most.

    As :func:`ghostlab.recovery.lowrank.output_directions`: eigenvectors of M'R + R'M, but of a wide M the
    leading ones alone.
    """
    gain = cross.T @ matrix
    gain = (gain + gain.T) / 2
    if not is_wide(len(matrix)) or 4 * leading > len(matrix):
        vectors: Tensor = torch.linalg.eigh(gain)[1]
        return vectors.flip(1)
    start = torch.ones(len(gain), dtype=gain.dtype).numpy()
    found = eigsh(gain.cpu().numpy(), leading, which="LA", v0=start)[1]
    return torch.from_numpy(found.copy()).to(matrix.device).flip(1)
