"""Save a variant to a folder and load it back, bit for bit.

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
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ghostlab.cut import Block, Cut, parse_cut
from ghostlab.errors import CutError, ResultError
from ghostlab.model.standin import AffineMap, StandIn
from ghostlab.model.surgery import attach, kept_blocks, without_maps

if TYPE_CHECKING:
    from torch import Tensor

    from ghostlab.model.lm import Model

MANIFEST = "ghostlab.json"
OPERATORS = "operators.safetensors"
_WEIGHT = "weight:"


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


def save(model: Model, folder: str | Path) -> Path:
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


def restore(model: Model, folder: Path) -> Model:
    """Put the maps of a saved folder back into the pruned model loaded from it.

    Raises:
        ResultError: If manifest and operators are missing, damaged or do not fit the model.
    """
    manifest = _read_manifest(folder)
    cut = parse_cut(manifest["cut"]) if manifest["cut"] else None
    standins: dict[Block, StandIn] = {}
    if manifest["operators"]:
        try:
            standins = unpack(load_file(folder / OPERATORS))
        except (OSError, SafetensorError) as error:
            raise ResultError(f"'{folder / OPERATORS}' is missing or damaged.", "Save it again.") from error
    _check_fit(model, cut, standins, manifest)
    if cut is not None:
        attach(model.hf, kept_blocks(manifest["full_depth"], cut, standins), standins)
    return type(model)(
        model.hf,
        model.tokenizer,
        name=manifest["name"],
        note=manifest["note"],
        cut=cut,
        standins=standins,
        full_depth=manifest["full_depth"],
    )


def _manifest(model: Model) -> dict[str, Any]:
    return {
        "schema": 1,
        "name": model.name,
        "note": model.note,
        "full_depth": model.full_depth,
        "cut": "" if model.cut is None else str(model.cut),
        "operators": [str(block) for block in model.standins],
    }


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        kinds = {"name": str, "note": str, "full_depth": int, "cut": str, "operators": list}
        if manifest["schema"] == 1 and all(isinstance(manifest[k], t) for k, t in kinds.items()):
            return dict(manifest)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise ResultError(
        f"'{folder}' holds no readable {MANIFEST}.", "Name a folder that Ghostlab saved a model to."
    )


def _check_fit(
    model: Model, cut: Cut | None, standins: Mapping[Block, StandIn], manifest: dict[str, Any]
) -> None:
    blocks = set() if cut is None else set(cut.blocks)
    if sorted(map(str, standins)) != sorted(manifest["operators"]) or not set(standins) <= blocks:
        raise ResultError("The operators are not those of the manifest.", "Save the model again.")
    depth = manifest["full_depth"]
    kept = depth if cut is None else len(kept_blocks(depth, cut, standins))
    widths = {standin.map.width for standin in standins.values() if standin.map is not None}
    if kept != model.depth or not widths <= {model.width}:
        raise ResultError("The operators do not fit this model.", "Save the model again.")
