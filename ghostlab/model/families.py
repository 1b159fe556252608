"""Which architectures can be cut exactly, and where their parts are.

The stack of decoder blocks is found by structure (the one ModuleList of length ``num_hidden_layers``), what
follows it by name. Families are listed, because a stack that merely looks right may carry state between its
blocks (recurrent caches, routers, per-layer embeddings) and would be cut silently wrong. Every listed family
passes the same tests: replay of any span equals the ordinary forward, cached equals uncached generation after
dropping first, middle and last blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
)

from ghostlab.errors import UnsupportedModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

FAMILIES: dict[str, str] = {
    "bloom": "BLOOM",
    "cohere": "Command R",
    "falcon": "Falcon",
    "gemma": "Gemma",
    "gemma2": "Gemma 2",
    "gemma3_text": "Gemma 3",
    "gpt2": "GPT-2",
    "gpt_neox": "GPT-NeoX, Pythia",
    "gptj": "GPT-J",
    "granite": "Granite",
    "llama": "Llama, SmolLM2, Vicuna",
    "mistral": "Mistral",
    "olmo2": "OLMo 2",
    "opt": "OPT",
    "phi": "Phi-1.5, Phi-2",
    "phi3": "Phi-3",
    "qwen2": "Qwen 1.5, Qwen 2, Qwen 2.5",
    "qwen3": "Qwen 3",
    "smollm3": "SmolLM3",
    "stablelm": "StableLM",
    "starcoder2": "StarCoder2",
}
"""``config.model_type`` -> the names people know it by."""

_AFTER_BLOCKS = ("norm", "ln_f", "final_layer_norm", "final_layernorm", "project_out")
"""Modules applied to the last block's output, in this order, before the head."""

_RECURRENT = ("mamba", "ssm", "state_size", "conv_kernel", "conv_L_cache", "conv1d_width", "linear_", "rnn")
"""How names of settings begin that only models with recurrent or convolutional layers have."""

_RECURRENT_TYPES = {"rwkv", "xlstm"}
_EXPERT_TYPES = {"dbrx"}
_REMEDIES = {"gemma3": "Of Gemma 3, use the sizes without images, 270m or 1b (gemma3_text)."}
"""What to use instead, where that is more than the list of families."""


@dataclass(frozen=True)
class Layout:
    """Module paths inside a causal language model.

    Attributes:
        stack: The module that owns the blocks and turns token ids into the state before the head.
        blocks: The ModuleList of decoder blocks.
        tail: What follows the last block, in order; never empty.
    """

    stack: str
    blocks: str
    tail: tuple[str, ...]


def check_family(family: str, settings: Mapping[str, Any]) -> None:
    """Refuse a model whose config, of type ``family``, says that it cannot be cut exactly.

    Raises:
        UnsupportedModelError: If the family is not listed, with the kind of model if that is why; or if this
            member of it does something that depends on a layer's position.
    """
    if family not in FAMILIES:
        raise UnsupportedModelError(
            f"Models of type '{family}' are not supported{_why(family, settings)}.",
            _REMEDIES.get(family, f"Supported are: {', '.join(sorted(FAMILIES))}."),
        )
    if settings.get("scale_attn_by_inverse_layer_idx"):
        raise UnsupportedModelError(
            f"This '{family}' model scales attention by its layer's position.",
            "Dropping layers would change the ones that stay; use a model without "
            "scale_attn_by_inverse_layer_idx.",
        )


def _why(family: str, settings: Mapping[str, Any]) -> str:
    """What kind of model this is, if that is what speaks against cutting it, as the end of a sentence."""
    # private settings of experts are in every config
    names = {name for name in settings if not name.startswith("_")}
    if settings.get("is_encoder_decoder"):
        return ": it is an encoder-decoder, whose decoder also reads the encoder's states"
    if family in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES:
        return ": it is multimodal, a language model inside a model that also reads images"
    if family in _RECURRENT_TYPES or any(name.startswith(_RECURRENT) for name in names):
        return ": it has recurrent or state-space layers, which keep a state of their own from token to token"
    if family in _EXPERT_TYPES or any("expert" in name for name in names):
        return ": it is a mixture of experts, whose layers send each token another way"
    return "" if family in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES else ": it is not a causal language model"


def find_layout(hf: PreTrainedModel) -> Layout:
    """Find where the blocks of ``hf`` are.

    Raises:
        UnsupportedModelError: As :func:`check_family`; or if there is not one stack with a norm after it.
    """
    config = hf.config
    family = str(getattr(config, "model_type", type(hf).__name__))
    check_family(family, vars(config))
    stacks = [
        name
        for name, module in hf.named_modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == config.num_hidden_layers
    ]
    # inside a block there may be lists of the same length, of a norm per head for instance
    stacks = [name for name in stacks if not any(name.startswith(f"{other}.") for other in stacks)]
    if len(stacks) != 1:
        raise UnsupportedModelError(
            f"This '{family}' model has {len(stacks)} stacks of {config.num_hidden_layers} layers.",
            "Ghostlab cuts decoder-only models with one stack.",
        )
    owner = stacks[0].rpartition(".")[0]
    children = dict(hf.get_submodule(owner).named_children())
    tail = tuple(f"{owner}.{name}" for name in _AFTER_BLOCKS if children.get(name) is not None)
    if not tail:
        raise UnsupportedModelError(f"This '{family}' model has no final norm after its layers.")
    return Layout(owner, stacks[0], tail)
