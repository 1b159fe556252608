"""Save a variant to a folder; :mod:`ghostlab.export.restore` reads it back, bit for bit.

The folder is a plain transformers checkpoint of the variant without its maps (config, tokenizer, safetensors;
rewritten layers included) with files beside it: ``ghostlab.json`` (what was cut, and which module each map
belongs to), ``operators.safetensors`` (the maps) and ``modeling_ghostlab.py``, with which plain Transformers
puts the maps in if it is told to trust the folder's code. Without that it reads the pruned model.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file

from ghostlab.cut import Block, parse_cut
from ghostlab.errors import CutError, ResultError
from ghostlab.export import modeling_ghostlab
from ghostlab.export.card import model_card
from ghostlab.export.checkpoint import whole_folder, write_checkpoint
from ghostlab.export.stock import plain, stock_model
from ghostlab.model.model import SHARD, Model
from ghostlab.model.preflight import AUTO_CLASS
from ghostlab.model.replacement import AffineMap, Replacement, check_numbers
from ghostlab.model.surgery import place_of
from ghostlab.storage import file_sha256

if TYPE_CHECKING:
    from torch import Tensor

SCHEMA = 2
MANIFEST = "ghostlab.json"
OPERATORS = "operators.safetensors"
MODELLING = "modeling_ghostlab.py"
_WEIGHT = "weight:"


def pack(replacements: Mapping[Block, Replacement], prefix: str = "") -> dict[str, Tensor]:
    """Replacements as one flat dictionary of tensors: ``<prefix>20:25/dense`` and so on."""
    packed: dict[str, Tensor] = {}
    for block, replacement in replacements.items():
        parts = {} if replacement.map is None else replacement.map.tensors()
        if replacement.layer is not None:
            parts["layer"] = torch.tensor(replacement.layer)
        parts |= {
            f"{_WEIGHT}{path}": value.detach().cpu().clone() for path, value in replacement.weights.items()
        }
        packed |= {f"{prefix}{block}/{name}": tensor for name, tensor in parts.items()}
    return packed


def unpack(tensors: Mapping[str, Tensor], prefix: str = "") -> dict[Block, Replacement]:
    """Read what :func:`pack` wrote; names without ``prefix`` are left alone.

    Raises:
        ResultError: If a tensor is missing, unknown, of the wrong shape or without finite numbers.
    """
    groups: dict[Block, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if not key.startswith(prefix):
            continue
        where, _, name = key.removeprefix(prefix).partition("/")
        try:
            (block,) = parse_cut(where)
        except (CutError, ValueError) as error:
            raise ResultError(f"'{key}' is no operator of a block.") from error
        groups.setdefault(block, {})[name] = tensor
    return {block: _replacement(block, group) for block, group in groups.items()}


def _replacement(block: Block, parts: dict[str, Tensor]) -> Replacement:
    weights = {k.removeprefix(_WEIGHT): t for k, t in parts.items() if k.startswith(_WEIGHT)}
    check_numbers(weights)
    maps = {k: t for k, t in parts.items() if not k.startswith(_WEIGHT) and k != "layer"}
    layer = _layer(block, parts["layer"]) if "layer" in parts else None
    return Replacement(AffineMap.from_tensors(maps) if maps else None, layer, weights)


def _layer(block: Block, stored: Tensor) -> int:
    """The layer that an operator rewrites: one of its block's, or the one before."""
    candidates = range(max(0, block.start - 1), block.stop)
    if stored.ndim or stored.dtype != torch.int64 or int(stored) not in candidates:
        raise ResultError(
            f"The operator of {block} is damaged: it has no layer {stored.tolist()} to rewrite."
        )
    return int(stored)


def save(model: Model, folder: str | Path, *, card: str = "", shard: str = SHARD) -> Path:
    """Write ``model`` to a new or empty folder, whole or not at all.

    Args:
        model: The model or variant.
        folder: Where to.
        card: Its README.md; default what :func:`~ghostlab.export.card.model_card` can say without figures.
        shard: Largest weight file, for example ``5GB``.

    Raises:
        ResultError: If the folder exists and is not empty, or cannot be written.
    """
    hf = plain(model.hf)
    # rewritten weights are in the checkpoint; only the maps need a place of their own
    bare = {block: replace(replacement, weights={}) for block, replacement in model.replacements.items()}
    manifest = _manifest(model)
    with whole_folder(folder) as partial:
        if bare:
            save_file(pack(bare), partial / OPERATORS)
            (partial / OPERATORS).chmod(0o644)  # safetensors makes files private
            manifest["operators_sha256"] = file_sha256(partial / OPERATORS)
        if manifest["places"]:
            shutil.copyfile(Path(modeling_ghostlab.__file__), partial / MODELLING)
            hf.config.auto_map = {"AutoModelForCausalLM": AUTO_CLASS}
        write_checkpoint(hf, model.tokenizer, partial, card=card or model_card(model), shard=shard)
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    return Path(folder)


def save_stock(model: Model, folder: str | Path, *, card: str = "", shard: str = SHARD) -> Path:
    """Write ``model`` as an ordinary checkpoint, which needs no code and no Ghostlab; else as :func:`save`.

    Raises:
        ResultError: As :func:`save`.
        StockError: If it cannot be one, saying why.
    """
    hf = stock_model(model)
    with whole_folder(folder) as partial:
        write_checkpoint(
            hf, model.tokenizer, partial, card=card or model_card(model, stock=True), shard=shard
        )
    return Path(folder)


def _manifest(model: Model) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "name": model.name,
        "note": model.note,
        "full_depth": model.full_depth,
        "cut": "" if model.cut is None else str(model.cut),
        "operators": [str(block) for block in model.replacements],
        "operators_sha256": "",
        "stack": model.decoder.layout.stack,
        "places": places(model),
    }


def places(model: Model) -> dict[str, dict[str, Any]]:
    """The maps of ``model`` by block, for code that knows no families: where they are, and their parts."""
    return {str(block): _place(model, block, s.map) for block, s in model.replacements.items() if s.map}


def _place(model: Model, block: Block, replacement_map: AffineMap) -> dict[str, Any]:
    """The module that a map belongs to, whether it works beside it, and what it is made of."""
    index, beside = place_of(block, model.replacements[block], model.kept)
    layout = model.decoder.layout
    host = f"{layout.blocks}.{index}" if index < model.decoder.depth else layout.tail[0]
    return {"host": host, "beside": beside, "parts": sorted(replacement_map.tensors())}
