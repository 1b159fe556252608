"""Save a variant to a folder; :mod:`ghostlab.model.restore` reads it back, bit for bit.

The folder is a plain transformers checkpoint of the variant without its maps (config, tokenizer, safetensors;
rewritten layers included) with two files beside it: ``ghostlab.json`` (what was cut) and
``operators.safetensors`` (the maps). Plain transformers reads the checkpoint; Ghostlab puts the maps back in.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from safetensors.torch import save_file

from ghostlab.cut import Block, Cut, parse_cut
from ghostlab.errors import CutError, ResultError
from ghostlab.model.standin import AffineMap, StandIn
from ghostlab.model.surgery import without_maps

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MANIFEST = "ghostlab.json"
OPERATORS = "operators.safetensors"
_WEIGHT = "weight:"


class Saveable(Protocol):
    """What is saved: a :class:`~ghostlab.model.lm.Model`, seen from below."""

    hf: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    name: str
    note: str
    cut: Cut | None
    standins: dict[Block, StandIn]
    full_depth: int


def pack(standins: Mapping[Block, StandIn], prefix: str = "") -> dict[str, Tensor]:
    """Stand-ins as one flat dictionary of tensors: ``<prefix>20:25/dense`` and so on."""
    packed: dict[str, Tensor] = {}
    for block, standin in standins.items():
        parts = {} if standin.map is None else standin.map.tensors()
        if standin.layer is not None:
            parts["layer"] = torch.tensor(standin.layer)
        parts |= {f"{_WEIGHT}{path}": value.detach().cpu().clone() for path, value in standin.weights.items()}
        packed |= {f"{prefix}{block}/{name}": tensor for name, tensor in parts.items()}
    return packed


def unpack(tensors: Mapping[str, Tensor], prefix: str = "") -> dict[Block, StandIn]:
    """Read what :func:`pack` wrote; names without ``prefix`` are left alone.

    Raises:
        ResultError: If a tensor is missing, unknown or of the wrong shape.
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
    return {block: _standin(group) for block, group in groups.items()}


def _standin(parts: dict[str, Tensor]) -> StandIn:
    weights = {k.removeprefix(_WEIGHT): t for k, t in parts.items() if k.startswith(_WEIGHT)}
    maps = {k: t for k, t in parts.items() if not k.startswith(_WEIGHT) and k != "layer"}
    layer = int(parts["layer"]) if "layer" in parts else None
    return StandIn(AffineMap.from_tensors(maps) if maps else None, layer, weights)


def save(model: Saveable, folder: str | Path) -> Path:
    """Write ``model`` to a new or empty folder, whole or not at all.

    Raises:
        ResultError: If the folder exists and is not empty, or cannot be written.
    """
    target = Path(folder)
    if target.exists() and any(target.iterdir()):
        raise ResultError(f"'{target}' is not empty.", "Name a new folder.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise ResultError(f"'{target}' cannot be written: {error.strerror}.") from error
    try:
        without_maps(model.hf).save_pretrained(partial)
        model.tokenizer.save_pretrained(partial)
        # rewritten weights are in the checkpoint; only the maps need a place of their own
        bare = {block: replace(standin, weights={}) for block, standin in model.standins.items()}
        if bare:
            save_file(pack(bare), partial / OPERATORS)
        (partial / MANIFEST).write_text(json.dumps(_manifest(model), indent=1), encoding="utf-8")
        partial.chmod(0o755)  # mkdtemp makes it private
        if target.exists():
            target.rmdir()
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _manifest(model: Saveable) -> dict[str, Any]:
    return {
        "schema": 1,
        "name": model.name,
        "note": model.note,
        "full_depth": model.full_depth,
        "cut": "" if model.cut is None else str(model.cut),
        "operators": [str(block) for block in model.standins],
    }
