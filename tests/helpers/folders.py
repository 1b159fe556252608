"""Tiny model folders as Transformers saves them."""

import json
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedConfig

from tests.helpers.tokenizers import tiny_tokenizer


def tiny_config(**changes: Any) -> LlamaConfig:
    sizes = {
        "vocab_size": 400,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    }
    return LlamaConfig(**{**sizes, **changes})


def save_folder(folder: Path, config: PreTrainedConfig | None = None) -> Path:
    """A random model with a tokenizer, in safetensors."""
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config or tiny_config()).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def change_config(folder: Path, **changes: Any) -> None:
    """Overwrite entries of config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
