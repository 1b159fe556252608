"""What Ghostlab's speed is measured against: the same results, written down straight from the papers.

A forward pass of the whole model with ``output_hidden_states``, both N x C matrices kept, one solve in
float64; a full forward pass and full logits for every variant. No part of Ghostlab is used here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@torch.no_grad()
def fit_ghost(hf: PreTrainedModel, ids: Tensor, start: int, stop: int, batch: int = 8) -> Tensor:
    """M = (X'X + 1e-6 I)^-1 X'(Y - X), [C, C], with X and Y the states before and after layers start:stop.

    Only for ``stop`` below the number of layers: the last of ``hidden_states`` is taken after the final norm.
    """
    before, after = [], []
    for part in ids.split(batch):
        states = hf(part, output_hidden_states=True, use_cache=False).hidden_states
        before.append(states[start].flatten(0, 1))
        after.append(states[stop].flatten(0, 1))
    x, y = torch.cat(before).double(), torch.cat(after).double()
    gram = x.T @ x + 1e-6 * torch.eye(x.shape[1], dtype=x.dtype)
    return torch.linalg.solve(gram, x.T @ (y - x))


@torch.no_grad()
def perplexities(models: Sequence[PreTrainedModel], ids: Tensor, batch: int = 8) -> list[float]:
    """exp of the mean negative log-likelihood of each model, by a full forward pass each."""
    found = []
    for hf in models:
        total = 0.0
        for part in ids.split(batch):
            logits = hf(part, use_cache=False).logits[:, :-1].float()
            loss = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), part[:, 1:].flatten(), reduction="sum"
            )
            total += float(loss)
        found.append(math.exp(total / (ids.shape[0] * (ids.shape[1] - 1))))
    return found
