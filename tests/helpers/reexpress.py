"""The same trained Llama weights as models of other families, exactly."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PreTrainedModel

_SHARED = [
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "max_position_embeddings",
    "rms_norm_eps",
    "rope_parameters",
    "tie_word_embeddings",
    "hidden_act",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
]

FAMILIES: dict[str, dict[str, Any]] = {
    "qwen2": {},
    "mistral": {"sliding_window": None},
    "phi3": {},
    "granite": {"attention_multiplier": 64**-0.5},
}
"""``model_type`` -> what its config needs besides that of the Llama model."""


def reexpress(llama: PreTrainedModel, family: str) -> PreTrainedModel:
    """A model of the family that computes what ``llama`` computes; whole tensors are shared."""
    values = {name: getattr(llama.config, name) for name in _SHARED}
    config = CONFIG_MAPPING[family](**values, **FAMILIES[family])
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=llama.dtype)
    weights = llama.state_dict()
    named = {name: _tensor(name, weights, shape.shape) for name, shape in model.state_dict().items()}
    model.load_state_dict(named, assign=True)
    stack = model.get_decoder()
    stack.rotary_emb = type(stack.rotary_emb)(config)  # its frequencies are no weights
    return model.eval().requires_grad_(False)


def _tensor(name: str, weights: dict[str, Tensor], shape: torch.Size) -> Tensor:
    if name in weights:
        return weights[name]
    for fused, parts in (
        ("qkv_proj", ("q_proj", "k_proj", "v_proj")),
        ("gate_up_proj", ("gate_proj", "up_proj")),
    ):
        if fused in name:
            return torch.cat([weights[name.replace(fused, part)] for part in parts])
    assert name.endswith("bias"), name
    return torch.zeros(shape)
