"""Is this folder a model that may be loaded? Answered from its small files alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoConfig, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

from ghostlab.errors import ModelError, ModelNotFoundError, RemoteCodeError, UnsupportedModelError
from ghostlab.model.families import check_family

_NEEDS = "A model folder needs config.json, tokenizer files and weights in safetensors."
_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "tekken.json",
)
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")


@dataclass(frozen=True)
class Place:
    """A folder of safetensors that plain Transformers loads, and what to call the model in it."""

    folder: Path
    name: str
    note: str = ""


def read_config(folder: Path) -> PreTrainedConfig:
    """The configuration of the causal language model in ``folder``, without running any code of its own.

    Raises:
        ModelNotFoundError: If the folder does not hold a model.
        RemoteCodeError: If the model needs code that comes with it.
        UnsupportedModelError: If it is of a family that is not listed, or is stored quantised.
        ModelError: If the configuration contradicts itself.
    """
    raw = _read_raw(folder)
    _check_known(folder, raw)
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # the checks of a configuration class may raise anything
        reason = (str(error).strip().splitlines() or [""])[-1]
        raise ModelError(
            f"config.json in {_hub_id(folder) or folder} is not valid ({type(error).__name__}: {reason}).",
            "It must describe the weights beside it.",
        ) from error
    return config


def _hub_id(folder: Path) -> str:
    """The hub id of a folder in a hub cache, ``models--org--name/snapshots/COMMIT``; empty for any other."""
    kept = folder.parts[-3:-1]
    known = len(kept) == 2 and kept[0].startswith("models--") and kept[1] == "snapshots"
    return kept[0].removeprefix("models--").replace("--", "/") if known else ""


def _name(folder: Path) -> str:
    return _hub_id(folder) or folder.name


def _read_raw(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise ModelNotFoundError(f"There is no model folder {folder}.", _NEEDS)
    try:
        raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelNotFoundError(f"{folder} is not a model: it has no config.json.", _NEEDS) from error
    except (OSError, ValueError) as error:
        raise ModelNotFoundError(
            f"config.json in {_hub_id(folder) or folder} cannot be read ({error}).", _NEEDS
        ) from error
    if not isinstance(raw, dict) or "model_type" not in raw:
        raise ModelNotFoundError(f"config.json in {_hub_id(folder) or folder} names no model_type.", _NEEDS)
    return raw


def _check_known(folder: Path, raw: dict[str, Any]) -> None:
    family = raw["model_type"]
    if family not in CONFIG_MAPPING_NAMES:
        if raw.get("auto_map"):
            raise RemoteCodeError(
                f"{_name(folder)} ({family}) runs only with code of its own, which Ghostlab never executes.",
                "Use a model whose architecture is part of Transformers.",
            )
        raise UnsupportedModelError(
            f"{family} is no architecture of this version of Transformers.", "Use another model, or update."
        )
    check_family(family, {**_defaults(family), **raw})
    if raw.get("quantization_config"):
        method = raw["quantization_config"].get("quant_method", "unknown method")
        raise UnsupportedModelError(
            f"{_name(folder)} is stored quantised ({method}).",
            "Use its full-precision version or a .gguf file.",
        )


def _defaults(family: str) -> dict[str, Any]:
    """What the configs of ``family`` hold if nothing is set, for what a folder's own leaves out."""
    try:
        return dict(vars(CONFIG_MAPPING[family]()))
    except Exception:  # a few need packages that are missing, or have no defaults; the folder's must do
        return {}


def check_weight_files(folder: Path) -> None:
    """Refuse a folder without weights in safetensors.

    Raises:
        ModelError: If its weights are pickles.
        ModelNotFoundError: If it has none.
    """
    if any(folder.glob("*.safetensors")):
        return
    if any(next(folder.glob(pattern), None) for pattern in _PICKLES):
        raise ModelError(
            f"{_name(folder)} has its weights only as pickle (.bin), which can run code when it is read.",
            "Use a version in safetensors: model.save_pretrained writes one.",
        )
    raise ModelNotFoundError(f"{_name(folder)} holds no weights in safetensors.", _NEEDS)


def check_tokenizer_files(folder: Path) -> None:
    """Refuse a folder without a tokenizer, for which Transformers would make up an empty one.

    Raises:
        ModelError: Naming the files that may hold it.
    """
    if not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        raise ModelError(
            f"{_name(folder)} has no tokenizer.",
            f"One of {', '.join(_TOKENIZER_FILES)} must lie beside the weights.",
        )
