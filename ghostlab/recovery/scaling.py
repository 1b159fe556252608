"""Scalings of channels, in the state's own basis or in a rotated one; shared by several methods."""

from __future__ import annotations

import torch
from torch import Tensor

from ghostlab.model.device import exact
from ghostlab.recovery.data import FitData


def ratio(part: Tensor, whole: Tensor, default: float) -> Tensor:
    """``part / whole`` where there is anything in ``whole``, else ``default``."""
    return torch.where(whole > 0, part / whole, torch.full_like(part, default))


def absolute_ratios(data: FitData, rotation: Tensor | None = None) -> Tensor:
    """LinearPatch's scale of each channel, [C], float64.

    For each window the mean |y| over its tokens over the mean |x|, both *after* the rotation; then the mean
    over windows. (A mean of ratios, so that every window counts alike. Taking it from states that are not
    rotated, as one public code base does, fits another operator.) Channels that a window leaves at zero
    count as 1.

    Args:
        data: The block's data.
        rotation: Q, [C, C], or ``None`` for the state's own basis.
    """
    collected: list[Tensor] = []
    for _, states in data.batches({data.block.start, data.block.stop}):
        x, y = (_mean_absolute(states[b], rotation) for b in (data.block.start, data.block.stop))
        collected.append(ratio(y, x, 1.0))
    mean: Tensor = torch.cat(collected).mean(0)
    return mean


def rotated(scale: Tensor, rotation: Tensor) -> Tensor:
    """Q diag(scale) Q', symmetric."""
    matrix: Tensor = (rotation * scale) @ rotation.T
    return matrix


def _mean_absolute(state: Tensor, rotation: Tensor | None) -> Tensor:
    """Mean |.| over the tokens of each window, [B, C], float64."""
    turned = state.float() if rotation is None else state.float() @ rotation.to(state.device, torch.float32)
    return exact(turned.abs()).mean(1)
