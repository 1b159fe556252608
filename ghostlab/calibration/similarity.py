"""How alike the states at two boundaries are, under each convention that the field uses.

The convention changes which blocks are chosen, so all three are accumulated in one pass:
``token`` averages the cosine over tokens, ``last`` looks at the last token of each window, ``flat`` takes one
cosine of whole matrices (dominated by massive tokens).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

_CHUNK = 512


@dataclass
class Similarity:
    """Sums for all pairs of the L + 1 boundaries, float64.

    Attributes:
        tokens, windows: How many were seen.
        cosine: per-token cosine, summed, [L + 1, L + 1].
        angle: arccos / pi of the last token of each window, summed.
        inner: inner products <X_i, X_j>_F.
    """

    tokens: int
    windows: int
    cosine: Tensor
    angle: Tensor
    inner: Tensor

    @classmethod
    def empty(cls, depth: int) -> Similarity:
        """Before any batch was seen."""
        zeros = torch.zeros(depth + 1, depth + 1, dtype=torch.float64)
        return cls(0, 0, zeros.clone(), zeros.clone(), zeros.clone())

    def add(self, states: Mapping[int, Tensor]) -> None:
        """Take in the states [B, T, C] of a batch at boundaries 0 .. L."""
        boundaries = range(len(states))
        for start in range(0, states[0].shape[0] * states[0].shape[1], _CHUNK):
            chunk = torch.stack(
                [states[b].flatten(0, 1)[start : start + _CHUNK].float() for b in boundaries], dim=1
            )
            self.inner += torch.einsum("nic,njc->ij", chunk, chunk).double().cpu()
            self.cosine += _pairwise_cosine(chunk).sum(0).double().cpu()
            self.tokens += chunk.shape[0]
        last = torch.stack([states[b][:, -1].float() for b in boundaries], dim=1)
        self.angle += (_pairwise_cosine(last).clamp(-1, 1).arccos() / torch.pi).sum(0).double().cpu()
        self.windows += last.shape[0]

    def mean_cosine(self) -> Tensor:
        """E_t cos(x_i, x_j), [L + 1, L + 1]."""
        return self.cosine / self.tokens

    def mean_angle(self) -> Tensor:
        """Mean angular distance of the last token, in units of pi, [L + 1, L + 1]."""
        return self.angle / self.windows

    def flat_cosine(self) -> Tensor:
        """<X_i, X_j> / (||X_i|| ||X_j||) of whole matrices, [L + 1, L + 1]."""
        norm = self.inner.diagonal().sqrt()
        return self.inner / torch.outer(norm, norm)


def _pairwise_cosine(states: Tensor) -> Tensor:
    """[N, B, C] -> cosines between boundaries, [N, B, B]."""
    unit = torch.nn.functional.normalize(states, dim=-1)
    return unit @ unit.transpose(1, 2)
