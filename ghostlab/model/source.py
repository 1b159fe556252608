"""What kind of model a name stands for, without loading anything heavy."""

from __future__ import annotations

import re
from typing import Literal

from ghostlab.errors import ModelNotFoundError
from ghostlab.model.catalog import EMBEDDED
from ghostlab.settings import Settings
from ghostlab.storage import local_path

HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
Kind = Literal["embedded", "gguf", "folder", "hub"]


def kind_of(source: str, settings: Settings) -> Kind:
    """What ``source`` names: ``embedded``, ``gguf``, ``folder`` or ``hub``.

    Where local paths are not allowed nothing on disk is looked at, so that no answer reveals what is there.

    Raises:
        ModelNotFoundError: If it can be none of them, or this host does not allow its kind.
    """
    if source == EMBEDDED:
        return "embedded"
    looks_local = source.endswith(".gguf") or not HUB_ID.fullmatch(source) or source.startswith(".")
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
