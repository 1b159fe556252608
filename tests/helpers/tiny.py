"""Tiny random models of every supported family: 6 blocks, width 32, seconds to run."""

from __future__ import annotations

from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PreTrainedModel

DEPTH = 6
WIDTH = 32
VOCAB = 96

_COMMON: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": WIDTH,
    "intermediate_size": 64,
    "num_hidden_layers": DEPTH,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_HEADS_OF_8: dict[str, Any] = {"head_dim": 8}
_WINDOWED: dict[str, Any] = {
    "head_dim": 8,
    "sliding_window": 16,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * 2,
}
"""A period of 3: whichever block is cut, a list that is left as it was names the wrong kinds."""

FAMILY_OPTIONS: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"sliding_window": 16},
    "qwen2": {},
    "qwen3": _HEADS_OF_8,
    "gemma": _HEADS_OF_8,
    "gemma2": _WINDOWED,
    "gemma3_text": _WINDOWED,
    "phi": {},
    "phi3": {},
    "gpt2": {},
    "gptj": {"rotary_dim": 8},
    "gpt_neox": {},
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": WIDTH},
    "olmo2": {},
    "smollm3": {"no_rope_layers": [1, 1, 0, 1, 1, 0], "layer_types": ["full_attention"] * DEPTH},
    "granite": {"logits_scaling": 4.0, "residual_multiplier": 0.7},
    "stablelm": {},
    "starcoder2": {},
    "falcon": {},
    "bloom": {},
    "cohere": {},
}


def tiny_model(
    family: str = "llama", *, seed: int = 0, dtype: torch.dtype = torch.float32, **options: Any
) -> PreTrainedModel:
    """A random model of the family, in eval mode. ``options`` override its config."""
    config_class = CONFIG_MAPPING[family]
    values = {**_COMMON, **FAMILY_OPTIONS[family], **options}
    if family in {"gpt2", "gptj", "bloom"}:
        names = {
            "num_hidden_layers": "n_layer",
            "num_attention_heads": "n_head",
            "max_position_embeddings": "n_positions",
        }
        if family != "bloom":
            names["hidden_size"] = "n_embd"
        values = {names.get(name, name): value for name, value in values.items()}
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config_class(**values), dtype=torch.float32)
    with (
        torch.no_grad()
    ):  # random models barely differ from the identity at the usual scale of initialisation
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1 and "embed" not in name and "wte" not in name:
                parameter.mul_(6.0)
    return model.to(dtype).eval().requires_grad_(False)


def tiny_ids(batch: int = 3, length: int = 20, *, seed: int = 1) -> torch.Tensor:
    """Token ids [batch, length] without special tokens."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCAB, (batch, length), generator=generator)
