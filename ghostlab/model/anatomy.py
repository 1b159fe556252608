"""Count what a model's blocks hold from its configuration, on the meta device, which allocates nothing."""

from __future__ import annotations

import torch
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedConfig

from ghostlab.errors import UnsupportedModelError
from ghostlab.model.families import find_layout
from ghostlab.model.outline import Outline

_ATTENTION = {"attn", "self_attn", "attention", "self_attention"}


def measure(config: PreTrainedConfig, name: str) -> Outline:
    """The outline of the causal language model that ``config`` describes.

    Raises:
        UnsupportedModelError: If it cannot be built, or its blocks cannot be told or cut exactly.
    """
    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    except Exception as error:  # sizes that contradict each other fail anywhere in a model's code
        raise UnsupportedModelError(
            f"config.json of {name} describes no model ({type(error).__name__}).", "Check its sizes."
        ) from error
    blocks = list(model.get_submodule(find_layout(model).blocks))
    types = tuple(getattr(config, "layer_types", None) or ())
    return Outline(
        name=name,
        layers=len(blocks),
        width=int(config.hidden_size),
        layer_types=types if len(set(types)) > 1 else (),
        blocks=tuple(map(_count, blocks)),
        attention=tuple(_attention(block) for block in blocks),
        head=model.get_output_embeddings().weight.numel(),
        total=_count(model),
    )


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _attention(block: nn.Module) -> int:
    return sum(_count(part) for name, part in block.named_children() if name in _ATTENTION)
