"""Keep a rank of a fitted map: factors of 2 C r numbers instead of C^2."""

from __future__ import annotations

import torch
from torch import Tensor

from ghostlab.errors import ConfigError


def truncated_svd(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """The best rank-r approximation of M in the Frobenius norm, as in SHIFT-LLM: ``down [C, r] @ up [r, C]``.

    Raises:
        ConfigError: If the rank exceeds the width.
    """
    width = matrix.shape[0]
    if rank > width:
        raise ConfigError(f"Rank {rank} exceeds the model's width.", f"Use at most {width}.")
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    root = values[:rank].sqrt()  # shared between the factors, so that both have the same scale
    return left[:, :rank] * root, root[:, None] * right[:rank]
