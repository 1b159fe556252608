"""How alike the states at two boundaries are, under each convention that the field uses.

The convention changes which blocks are chosen, so all three are accumulated in one pass:
``token`` averages over tokens, ``last`` over the last tokens of the windows, ``flat`` takes one cosine of
whole matrices (dominated by massive tokens).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Convention = Literal["token", "last", "flat"]
_CHUNK = 512


@dataclass
class _Pairs:
    """Cosines and angles (arccos / pi) of all pairs of boundaries, summed over ``count`` tokens, float64."""

    cosine: Tensor
    angle: Tensor
    count: int = 0

    def add(self, states: Tensor) -> None:
        """Take in the states [N, L + 1, C] of some tokens."""
        unit = torch.nn.functional.normalize(states, dim=-1)
        cosine = (unit @ unit.transpose(1, 2)).clamp(-1, 1)
        self.cosine += cosine.sum(0).cpu().double()
        self.angle += (cosine.arccos() / torch.pi).sum(0).cpu().double()
        self.count += len(states)


class Similarity:
    """Similarities between all pairs of the ``depth`` + 1 boundaries of a model."""

    def __init__(self, depth: int) -> None:
        zeros = torch.zeros(depth + 1, depth + 1, dtype=torch.float64)
        self._pairs = {name: _Pairs(zeros.clone(), zeros.clone()) for name in ("token", "last")}
        self._inner = zeros.clone()

    def add(self, states: Mapping[int, Tensor]) -> None:
        """Take in the states [B, T, C] of a batch at boundaries 0 .. L."""
        boundaries = range(len(states))
        for start in range(0, states[0].shape[0] * states[0].shape[1], _CHUNK):
            chunk = torch.stack(
                [states[b].flatten(0, 1)[start : start + _CHUNK].float() for b in boundaries], dim=1
            )
            self._inner += torch.einsum("nic,njc->ij", chunk, chunk).cpu().double()
            self._pairs["token"].add(chunk)
        self._pairs["last"].add(torch.stack([states[b][:, -1].float() for b in boundaries], dim=1))

    def cosine(self, convention: Convention) -> Tensor:
        """Mean cosine of x_i and x_j, [L + 1, L + 1]; ``flat``: <X_i, X_j>_F / (||X_i||_F ||X_j||_F)."""
        if convention == "flat":
            norm = self._inner.diagonal().sqrt()
            return (self._inner / torch.outer(norm, norm)).clamp(-1, 1)
        pairs = self._pairs[convention]
        return pairs.cosine / pairs.count

    def angle(self, convention: Convention) -> Tensor:
        """Mean of arccos(cos(x_i, x_j)) / pi, [L + 1, L + 1]; ``flat``: that of the one cosine."""
        if convention == "flat":
            return self.cosine("flat").arccos() / torch.pi
        pairs = self._pairs[convention]
        return pairs.angle / pairs.count
