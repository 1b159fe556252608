"""Sums over the parameters of a layer, and the layers that the "plus" criteria never drop."""

from __future__ import annotations

import torch
from torch import nn

from ghostlab.model.device import exact
from ghostlab.model.model import Model
from ghostlab.progress import Progress


def spared_by_plus(depth: int) -> set[int]:
    """The first four and the last two layers, which Taylor+ and Mag+ keep (Shortened LLaMA)."""
    return {0, 1, 2, 3, depth - 2, depth - 1} & set(range(depth))


def magnitudes(model: Model, power: int, progress: Progress) -> list[float]:
    """Sum of |w|^power over all parameters of each layer, in float64."""
    blocks = progress.each(list(model.decoder.blocks), "Summing the weights")
    return [_magnitude(block, power) for block in blocks]


@torch.no_grad()
def _magnitude(block: nn.Module, power: int) -> float:
    norms = [exact(torch.linalg.vector_norm(p.float(), ord=power)) ** power for p in block.parameters()]
    return float(sum(norm.cpu() for norm in norms))
