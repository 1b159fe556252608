"""Configurations of the catalogue's models, and the writer of the sizes that it stores of them.

``python -m tests.helpers.catalog`` writes the sizes in ``ghostlab/model/catalog.json`` anew.
"""

from __future__ import annotations

import json
from typing import Any

from transformers import CONFIG_MAPPING

from ghostlab.model.catalog import CATALOG, STORED, Outline
from ghostlab.model.preflight import measure

_NAMES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
)


def _sizes(*values: int, **more: Any) -> dict[str, Any]:
    return {**dict(zip(_NAMES, values, strict=True)), **more}


_TIED = {"tie_word_embeddings": True}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "embedded": ("llama", _sizes(49152, 576, 1536, 30, 9, 3, **_TIED)),
    "HuggingFaceTB/SmolLM2-360M": ("llama", _sizes(49152, 960, 2560, 32, 15, 5, **_TIED)),
    "Qwen/Qwen2.5-0.5B": ("qwen2", _sizes(151936, 896, 4864, 24, 14, 2, **_TIED)),
    "Qwen/Qwen3-0.6B": ("qwen3", _sizes(151936, 1024, 3072, 28, 16, 8, head_dim=128, **_TIED)),
    "google/gemma-3-1b-pt": ("gemma3_text", _sizes(262144, 1152, 6912, 26, 4, 1, head_dim=256)),
    "meta-llama/Llama-3.2-1B": ("llama", _sizes(128256, 2048, 8192, 16, 32, 8, head_dim=64, **_TIED)),
    "openai-community/gpt2": ("gpt2", {}),
    "EleutherAI/pythia-410m": ("gpt_neox", _sizes(50304, 1024, 4096, 24, 16, 16)),
    "microsoft/Phi-3-mini-4k-instruct": ("phi3", _sizes(32064, 3072, 8192, 32, 32, 32)),
    "mistralai/Mistral-7B-v0.3": ("mistral", _sizes(32768, 4096, 14336, 32, 32, 8, sliding_window=None)),
}
"""Family and what differs from its defaults."""


def measured() -> dict[str, Outline]:
    """The outline of every model of the catalogue, counted."""
    return {
        entry.source: measure(CONFIG_MAPPING[family](**values), entry.title)
        for entry in CATALOG
        for family, values in [CONFIGS[entry.source]]
    }


def _stored(outline: Outline) -> dict[str, Any]:
    """The sizes as ``catalog.json`` keeps them: one number for all blocks."""
    (block,), (attention,) = set(outline.blocks), set(outline.attention)
    first = {"layers": outline.layers, "width": outline.width, "layer_types": outline.layer_types}
    return first | {"block": block, "attention": attention, "head": outline.head, "total": outline.total}


if __name__ == "__main__":
    entries = json.loads(STORED.read_text(encoding="utf-8"))
    sizes = measured()
    lines = [json.dumps({**entry, "sizes": _stored(sizes[entry["source"]])}) for entry in entries]
    STORED.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
