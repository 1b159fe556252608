"""The two places before a block that a map of the residual stream can be merged into, see :mod:`.stock`."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedModel

from ghostlab.errors import UnsupportedModelError
from ghostlab.model.decoder import Decoder
from ghostlab.model.model import Model
from ghostlab.model.projections import find_projections
from ghostlab.model.replacement import AffineMap
from ghostlab.model.surgery import trim_config

_SWITCHES = ("mlp_bias", "use_bias", "bias", "attention_bias")
"""Fields of a config that give projections a bias."""

_PARALLEL = {"cohere"}
"""Families whose attention has a switch for its bias, and writes to the stream where the MLP does."""

_SAME = 0.01
"""Relative difference below which two states count as equal: above the rounding of bfloat16."""


# -- a block that starts at layer 0 ----------------------------------------------------------------------


def embeddings_reason(variant: Model, *, shift_only: bool) -> str | None:
    """Why a map cannot go into the token embeddings; ``None`` if it can.

    Args:
        variant: A model whose first block was dropped.
        shift_only: M = 0; such a map may go there even where positions are added to the embeddings.
    """
    scale = embedding_scale(variant)
    if scale is None:
        return "What this model's first layer receives is not linear in its token embeddings."
    if shift_only or _equal(_entering(variant), scale * _rows(variant)):
        return None
    return "This model adds positions to its token embeddings, and the map would have to reach both."


def embedding_scale(variant: Model) -> float | None:
    """c, if the state that the first block receives is c E[token] plus what does not depend on the token."""
    state, rows = _entering(variant), _rows(variant)
    if state.shape != rows.shape:
        return None
    change, expected = state[1:] - state[:1], rows[1:] - rows[:1]
    scale = float((change * expected).sum() / expected.square().sum())
    return scale if _equal(change, scale * expected) else None


def into_embeddings(hf: PreTrainedModel, fitted: AffineMap, scale: float) -> None:
    """E becomes E + E M + b / scale; the head keeps the old E if it shared it."""
    table, head = hf.get_input_embeddings(), hf.get_output_embeddings()
    old = table.weight
    if head is not None and head.weight is old:
        hf.config.tie_word_embeddings = False
        head.weight = nn.Parameter(old.detach().clone(), requires_grad=False)
    rows = old.detach().float()
    local = fitted.twin().to(rows.device)
    change = local.change(rows)
    if local.bias is not None:
        change = change + local.bias * (1 / scale - 1)
    table.weight = nn.Parameter((rows + change).to(old.dtype), requires_grad=False)


def _probe_ids(variant: Model) -> Tensor:
    """A few tokens [8, 1], each at the first position."""
    return torch.linspace(3, variant.hf.config.vocab_size - 1, 8).long()[:, None]


def _rows(variant: Model) -> Tensor:
    weight: Tensor = variant.hf.get_input_embeddings().weight
    return weight[_probe_ids(variant)[:, 0].to(weight.device)].float()


def _entering(variant: Model) -> Tensor:
    """What the first block (or a map before it) receives for tokens at position 0, [N, C]."""
    return variant.decoder.trace(_probe_ids(variant), {0}).states[0][:, 0].float()


def _equal(state: Tensor, other: Tensor) -> bool:
    return float((state - other).norm()) <= _SAME * float(state.norm())


# -- a shift after the layer before the block -----------------------------------------------------------


def bias_reason(variant: Model) -> str | None:
    """Why no layer can add a constant to what it hands on; ``None`` if one can."""
    try:
        path = _shifted(variant)
    except UnsupportedModelError as error:
        return error.message
    if _bias(variant.decoder.blocks[0], path) is not None or _wider(variant, path, [0]) is not None:
        return None
    family = variant.hf.config.model_type
    return f"A '{family}' layer has no bias where the mean change would have to be added."


def into_bias(variant: Model, hf: PreTrainedModel, layer: int, shift: Tensor) -> None:
    """Let ``layer`` of ``hf`` add ``shift`` [C] to the state that it hands on.

    Args:
        variant: What ``hf`` is a copy of; tells where its layers write.
        hf: The model that is changed. If biases must be switched on for it, all but this one are zero.
        layer: Index of the layer.
        shift: b.
    """
    path = _shifted(variant)
    block = Decoder(hf).blocks[layer]
    if _bias(block, path) is None:
        _widen(hf, _wider(variant, path, range(variant.decoder.depth)))
    old = block.get_parameter(f"{path}.bias").detach()
    shifted = old.float() + shift.to(old.device) / find_projections(variant).scale
    block.get_submodule(path).bias = nn.Parameter(shifted.to(old.dtype), requires_grad=False)


def _shifted(variant: Model) -> str:
    """Path of the projection whose bias is added to what a layer hands on."""
    projections = find_projections(variant)
    return projections.attention if variant.hf.config.model_type in _PARALLEL else projections.mlp


def _bias(block: nn.Module, path: str) -> Tensor | None:
    return getattr(block.get_submodule(path), "bias", None)


def _wider(variant: Model, path: str, kept: Sequence[int]) -> Any:
    """These layers on the meta device with a config that gives the projection a bias, if there is one."""
    for switch in _SWITCHES:
        if getattr(variant.hf.config, switch, None) is False:
            config = deepcopy(variant.hf.config)
            setattr(config, switch, True)
            trim_config(config, kept, variant.decoder.depth)
            with torch.device("meta"):
                wider = AutoModelForCausalLM.from_config(config)
            if _bias(Decoder(wider).blocks[0], path) is not None:
                return wider
    return None


def _widen(hf: PreTrainedModel, wider: Any) -> None:
    """Give ``hf`` the switches of ``wider``, and zeros for every bias that it lacks."""
    own = {name for name, _ in hf.named_parameters(remove_duplicate=False)}
    like = next(hf.parameters())
    for name, parameter in wider.named_parameters():
        if name not in own:
            owner, _, last = name.rpartition(".")
            zeros = torch.zeros(parameter.shape, dtype=like.dtype, device=like.device)
            setattr(hf.get_submodule(owner), last, nn.Parameter(zeros, requires_grad=False))
    for switch in _SWITCHES:
        if hasattr(wider.config, switch):
            setattr(hf.config, switch, getattr(wider.config, switch))
