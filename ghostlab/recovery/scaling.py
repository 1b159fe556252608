"""Scalings of channels, in the state's own basis or in a rotated one; shared by several operators."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ghostlab.model.device import exact
from ghostlab.recovery.data import FitData

EMPTY = 1e-10
"""Share of the mean channel's energy below which a channel holds rounding errors and no signal."""


def ratio(part: Tensor, whole: Tensor, default: float) -> Tensor:
    """``part / whole`` where there is anything in ``whole``, else ``default``."""
    return torch.where(whole > 0, part / whole, torch.full_like(part, default))


def channel_ratios(part: Tensor, energy: Tensor) -> tuple[Tensor, dict[str, Any]]:
    """``part / energy`` of each channel, [C], 0 for empty ones; and what the result says of those.

    LayerNormed embeddings have mean 0, which leaves the constant channel of a Hadamard rotation empty: a
    ratio of its rounding errors can be anything.
    """
    held = _held(energy)
    return ratio(part, energy * held, 0.0), _note(~held)


def absolute_ratios(data: FitData, rotation: Tensor | None = None) -> tuple[Tensor, dict[str, Any]]:
    """LinearPatch's scale of each channel, [C], float64; and what the result says of empty channels.

    For each window the mean |y| over its tokens over the mean |x|, both *after* the rotation; then the mean
    over windows. (A mean of ratios, so that every window counts alike. Taking it from states that are not
    rotated, as one public code base does, fits another operator.) Channels that a window leaves empty
    count as 1 there.

    Args:
        data: The block's data.
        rotation: Q, [C, C], or ``None`` for the state's own basis.
    """
    collected: list[Tensor] = []
    empty: list[Tensor] = []
    for _, states in data.batches({data.block.start, data.block.stop}):
        x, y = (_mean_absolute(states[b], rotation) for b in (data.block.start, data.block.stop))
        held = _held(x.square())
        collected.append(ratio(y, x * held, 1.0))
        empty.append(~held)
    return torch.cat(collected).mean(0), _note(torch.cat(empty).any(0))


def rotated(scale: Tensor, rotation: Tensor) -> Tensor:
    """Q diag(scale) Q', symmetric."""
    matrix: Tensor = (rotation * scale) @ rotation.T
    return matrix


def _held(energy: Tensor) -> Tensor:
    """Which channels hold a signal, by their energies [..., C]."""
    return energy > EMPTY * energy.mean(-1, keepdim=True)


def _note(empty: Tensor) -> dict[str, Any]:
    return {"empty_channels": empty.nonzero().flatten().tolist()} if empty.any() else {}


def _mean_absolute(state: Tensor, rotation: Tensor | None) -> Tensor:
    """Mean |.| over the tokens of each window, [B, C], float64."""
    turned = state.float() if rotation is None else state.float() @ rotation.to(state.device, torch.float32)
    return exact(turned.abs()).mean(1)
