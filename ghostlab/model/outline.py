"""What can be said of a model before it is loaded, without torch: its kind, its layers and its sizes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from huggingface_hub import constants, try_to_load_from_cache
from huggingface_hub.errors import HFValidationError

from ghostlab.errors import ModelError, ModelNotFoundError, UnsupportedModelError
from ghostlab.model.catalog import EMBEDDED, Outline, find
from ghostlab.settings import Settings
from ghostlab.storage import local_path

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
Kind = Literal["embedded", "gguf", "folder", "hub"]
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_WIDTH = ("hidden_size", "n_embd", "d_model")
_MOST = 2000
"""More blocks than any model has: a configuration that claims more is not drawn."""


def kind_of(source: str, settings: Settings) -> Kind:
    """What ``source`` names: ``embedded``, ``gguf``, ``folder`` or ``hub``.

    Where local paths are not allowed nothing on disk is looked at, so that no answer reveals what is there.

    Raises:
        ModelNotFoundError: If it can be none of them, or this host does not allow its kind.
    """
    if source == EMBEDDED:
        return "embedded"
    looks_local = source.endswith(".gguf") or not _HUB_ID.fullmatch(source) or source.startswith(".")
    if settings.limits.local_paths:
        path = local_path(source)
        if path and (looks_local or path.exists()):
            return "gguf" if path.suffix == ".gguf" else "folder"
        if looks_local:
            raise ModelNotFoundError(
                f"'{source[:80]}' is neither a hub id nor a path.", "Give org/name, a folder or a .gguf file."
            )
    elif looks_local:
        raise ModelNotFoundError(
            f"'{source[:80]}' is not a hub id, and this server reads no local files.",
            "Give org/name, or 'embedded'.",
        )
    if not settings.limits.hub_models:
        raise ModelNotFoundError("This server fetches no models from the hub.", "Use 'embedded'.")
    return "hub"


def stored(source: str) -> Outline | None:
    """The outline of a model of the catalogue; ``None`` for any other."""
    entry = find(source)
    return entry.outline if entry else None


def config_folder(source: str, revision: str | None, settings: Settings) -> Path | None:
    """The folder with ``config.json`` of a folder or hub model on this machine; nothing is ever fetched.

    ``None`` for a ``.gguf`` file, and for a hub model of which nothing was ever fetched.

    Raises:
        ModelNotFoundError: If this host does not allow such a source, or there can be no such model.
    """
    kind = kind_of(source, settings)
    if kind == "folder":
        folder = Path(source).expanduser()
        if not (folder / "config.json").is_file():
            raise ModelNotFoundError(
                f"There is no model in '{source}'.", "A model folder holds config.json and its weights."
            )
        return folder
    if kind != "hub":
        return None
    for place in (None, fetched(settings)):
        try:
            path = try_to_load_from_cache(source, "config.json", cache_dir=place, revision=revision)
        except HFValidationError as error:
            raise ModelNotFoundError(f"'{source}' is not a hub id.", "Give org/name.") from error
        if isinstance(path, str):
            return Path(path).parent
    return None


def fetched(settings: Settings) -> Path:
    """The hub cache of configurations that were fetched without their models."""
    return settings.cache / "configs"


def on_the_hub(source: str, settings: Settings) -> bool:
    """Whether the hub can be asked for a model's configuration: it may have it, and is not to be left alone.

    Raises:
        ModelNotFoundError: As :func:`config_folder`.
    """
    return not constants.HF_HUB_OFFLINE and kind_of(source, settings) == "hub"


def read_plain(folder: Path, name: str) -> Outline:
    """The outline that ``config.json`` alone gives: how many blocks, how wide, of which type.

    Raises:
        UnsupportedModelError: If it does not say how many blocks there are.
    """
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        layers, width = _first(config, _LAYERS), _first(config, _WIDTH)
        types = tuple(map(str, config.get("layer_types") or ()))
    except (OSError, ValueError, AttributeError, TypeError):
        layers = 0
    if not 0 < layers <= _MOST:
        raise UnsupportedModelError(
            f"config.json of {name} does not say how many layers it has.", "Use a decoder language model."
        )
    return Outline(name, layers, width, types if len(types) == layers and len(set(types)) > 1 else ())


def depth(source: str, revision: str | None, settings: Settings) -> int | None:
    """How many blocks a model has, as far as this machine knows without loading or fetching it."""
    if known := stored(source):
        return known.layers
    try:
        folder = config_folder(source, revision, settings)
        return read_plain(folder, source).layers if folder else None
    except ModelError:  # whoever loads the model says what is wrong with it
        return None


def _first(config: Mapping[str, Any], names: tuple[str, ...]) -> int:
    return next((config[name] for name in names if isinstance(config.get(name), int)), 0)
