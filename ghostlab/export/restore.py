"""Read back what :mod:`ghostlab.export.folder` wrote: put the maps into the model, and notice damage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from ghostlab.cut import Block, Cut, parse_cut
from ghostlab.errors import CutError, ResultError
from ghostlab.export.folder import MANIFEST, OPERATORS, SCHEMA, places, unpack
from ghostlab.model.model import Model
from ghostlab.model.replacement import Replacement
from ghostlab.model.surgery import attach, kept_blocks
from ghostlab.storage import file_sha256


def restore(model: Model, folder: Path) -> Model:
    """Put the maps of a saved folder back into the pruned model loaded from it.

    Raises:
        ResultError: If manifest and operators are missing, damaged or do not fit the model.
    """
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
    if manifest["places"] != places(restored):  # which the loader of plain Transformers goes by
        raise ResultError(
            f"The operators lack parts, or {MANIFEST} puts them where they do not belong.",
            "Save the model again.",
        )
    return restored


def _read_cut(text: str) -> Cut | None:
    try:
        return parse_cut(text) if text else None
    except CutError as error:
        raise ResultError(
            f"The cut '{text}' in {MANIFEST} is none: {error.message}", "Save the model again."
        ) from error


def _read_operators(path: Path, saved: str) -> dict[Block, Replacement]:
    try:
        if file_sha256(path) != saved:
            raise ResultError(f"'{path}' is not the file that was saved with this model.", "Save it again.")
        return unpack(load_file(path))
    except (OSError, SafetensorError) as error:
        raise ResultError(f"'{path}' is missing or damaged.", "Save it again.") from error


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        kinds = {"name": str, "note": str, "full_depth": int, "cut": str, "operators": list, "places": dict}
        kinds |= {"operators_sha256": str}
        if manifest["schema"] == SCHEMA and all(isinstance(manifest[k], t) for k, t in kinds.items()):
            return dict(manifest)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise ResultError(
        f"'{folder}' holds no readable {MANIFEST}.", "Name a folder that Ghostlab saved a model to."
    )


def _check_fit(
    model: Model, cut: Cut | None, replacements: Mapping[Block, Replacement], manifest: dict[str, Any]
) -> None:
    blocks = set() if cut is None else set(cut.blocks)
    if (
        sorted(map(str, replacements)) != sorted(map(str, manifest["operators"]))
        or not set(replacements) <= blocks
    ):
        raise ResultError("The operators are not those of the manifest.", "Save the model again.")
    depth = manifest["full_depth"]
    kept = depth if cut is None else len(kept_blocks(depth, cut, replacements))
    widths = {replacement.map.width for replacement in replacements.values() if replacement.map is not None}
    if kept != model.depth or not widths <= {model.width}:
        raise ResultError("The operators do not fit this model.", "Save the model again.")
