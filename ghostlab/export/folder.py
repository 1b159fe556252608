"""Save a model or variant to a folder, and read it back bit for bit.

The folder is a plain transformers checkpoint of the variant without its maps (config, tokenizer, safetensors;
rewritten layers included) with files beside it: ``ghostlab.json`` (what was cut, and which module each map
belongs to), ``operators.safetensors`` (the maps) and ``modeling_ghostlab.py``, with which plain Transformers
puts the maps in if it is told to trust the folder's code. Without that it reads the pruned model.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from ghostlab.cut import Block, Cut, parse_cut
from ghostlab.errors import CutError, ResultError
from ghostlab.export import modeling_ghostlab
from ghostlab.export.card import model_card
from ghostlab.export.stock import plain, stock_model
from ghostlab.model.device import quiet_transformers
from ghostlab.model.load import load_model
from ghostlab.model.model import SHARD, Model
from ghostlab.model.preflight import AUTO_CLASS
from ghostlab.model.replacement import AffineMap, Replacement, check_numbers
from ghostlab.model.surgery import attach, kept_blocks, place_of
from ghostlab.settings import Settings
from ghostlab.storage import file_sha256, whole

SCHEMA = 2
MANIFEST = "ghostlab.json"
OPERATORS = "operators.safetensors"
MODELLING = "modeling_ghostlab.py"
CARD = "README.md"
_WEIGHT = "weight:"
_KINDS = {
    "name": str, "note": str, "full_depth": int, "cut": str, "operators": list, "operators_sha256": str,
    "places": dict,
}  # fmt: skip
"""Types of what the manifest must hold."""
_AGAIN = "Save the model again."


# -- writing ---------------------------------------------------------------------------------------------


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
        _write_checkpoint(hf, model, partial, card or model_card(model), shard)
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
        _write_checkpoint(hf, model, partial, card or model_card(model, stock=True), shard)
    return Path(folder)


@contextmanager
def whole_folder(folder: str | Path) -> Iterator[Path]:
    """A new folder to fill, which takes its name only when the body is done; after an error nothing is left.

    Raises:
        ResultError: If ``folder`` exists and is not empty, or cannot be written.
    """
    target = Path(folder)
    try:
        if target.exists() and any(target.iterdir()):
            raise ResultError(f"'{target}' is not empty.", "Name a new folder.")
        with whole(target) as partial:
            partial.mkdir()
            yield partial
            if target.exists():
                target.rmdir()  # empty until now, or this fails
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ResultError(f"'{target}' could not be written: {reason}.", "Is the disk full?") from error


def _write_checkpoint(hf: PreTrainedModel, model: Model, folder: Path, card: str, shard: str) -> None:
    with quiet_transformers():
        hf.save_pretrained(folder, max_shard_size=shard)
        model.tokenizer.save_pretrained(folder)
    (folder / CARD).write_text(card, encoding="utf-8")


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
        "places": _places(model),
    }


def _places(model: Model) -> dict[str, dict[str, Any]]:
    """The maps by block, for code that knows no families: their module, whether beside it, their parts."""
    layout, places = model.decoder.layout, {}
    for block, replacement in model.replacements.items():
        if replacement.map is not None:
            index, beside = place_of(block, replacement, model.kept)
            host = f"{layout.blocks}.{index}" if index < model.decoder.depth else layout.tail[0]
            places[str(block)] = {
                "host": host, "beside": beside, "parts": sorted(replacement.map.tensors()),
            }  # fmt: skip
    return places


# -- reading ---------------------------------------------------------------------------------------------


def load_recovered(folder: str | Path, *, dtype: str = "auto", settings: Settings | None = None) -> Model:
    """Load a model that :func:`save` wrote; ``dtype`` as for :func:`ghostlab.load_model`.

    Raises:
        ModelNotFoundError: If it is not a model folder.
        ResultError: If manifest or operators are missing, damaged or do not fit the model.
    """
    model = load_model(str(folder), dtype=dtype, pruned_only=True, settings=settings)
    folder = Path(folder)
    manifest = _read_manifest(folder)
    cut = _read_cut(manifest["cut"])
    replacements: dict[Block, Replacement] = {}
    if manifest["operators"] or (folder / OPERATORS).exists():
        replacements = _read_operators(folder / OPERATORS, manifest["operators_sha256"])
    _check_fit(model, cut, replacements, manifest)
    if cut is not None:
        attach(model.hf, kept_blocks(manifest["full_depth"], cut, replacements), replacements)
    restored = Model(
        model.hf,
        model.tokenizer,
        name=manifest["name"],
        note=manifest["note"],
        cut=cut,
        replacements=replacements,
        full_depth=manifest["full_depth"],
    )
    if manifest["places"] != _places(restored):  # which the loader of plain Transformers goes by
        raise ResultError(
            f"The operators lack parts, or {MANIFEST} puts them where they do not belong.", _AGAIN
        )
    return restored


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["schema"] == SCHEMA and all(isinstance(manifest[k], t) for k, t in _KINDS.items()):
            return dict(manifest)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise ResultError(
        f"'{folder}' has no readable {MANIFEST}.", "Choose a folder to which Ghostlab saved a model."
    )


def _read_cut(text: str) -> Cut | None:
    try:
        return parse_cut(text) if text else None
    except CutError as error:
        raise ResultError(f"{MANIFEST} contains an invalid cut '{text}': {error.message}", _AGAIN) from error


def _read_operators(path: Path, saved: str) -> dict[Block, Replacement]:
    try:
        if file_sha256(path) != saved:
            raise ResultError(f"'{path}' is not the file that was saved with this model.", _AGAIN)
        return unpack(load_file(path))
    except (OSError, SafetensorError) as error:
        raise ResultError(f"'{path}' is missing or damaged.", _AGAIN) from error


def _check_fit(
    model: Model, cut: Cut | None, replacements: Mapping[Block, Replacement], manifest: dict[str, Any]
) -> None:
    blocks = set() if cut is None else set(cut.blocks)
    found = sorted(map(str, replacements))
    if found != sorted(map(str, manifest["operators"])) or not set(replacements) <= blocks:
        raise ResultError("The operators are not those of the manifest.", _AGAIN)
    depth = manifest["full_depth"]
    kept = depth if cut is None else len(kept_blocks(depth, cut, replacements))
    widths = {replacement.map.width for replacement in replacements.values() if replacement.map is not None}
    if kept != model.depth or not widths <= {model.width}:
        raise ResultError("The operators do not fit this model.", _AGAIN)


# -- replacements as tensors -----------------------------------------------------------------------------


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
    """Read what :func:`pack` wrote; names without ``prefix`` are skipped.

    Raises:
        ResultError: If a tensor is missing, unknown, of the wrong shape or has numbers that are not finite.
    """
    groups: dict[Block, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if not key.startswith(prefix):
            continue
        where, _, name = key.removeprefix(prefix).partition("/")
        try:
            (block,) = parse_cut(where)
        except (CutError, ValueError) as error:
            raise ResultError(f"'{key}' is not an operator of a block.") from error
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
