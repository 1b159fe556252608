"""May this model be loaded, and does it fit? Answered before any weight is read or fetched."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

from ghostlab.errors import (
    MemoryLimitError,
    ModelError,
    ModelNotFoundError,
    RemoteCodeError,
    UnsupportedModelError,
)
from ghostlab.model.catalog import Outline
from ghostlab.model.families import check_family, find_layout

AUTO_CLASS = "modeling_ghostlab.GhostForCausalLM"
"""How a config names the code beside a saved model that has operators."""

_NEEDS = "A model folder needs config.json, tokenizer files and weights in safetensors."
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "tekken.json",
)
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_ATTENTION = {"attn", "self_attn", "attention", "self_attention"}
LOADING_SHARE = 0.1
"""Extra room that loading needs beside the weights, as a share of them."""
_CGROUP = Path("/sys/fs/cgroup")
_CGROUPS = (
    (_CGROUP / "memory.max", _CGROUP / "memory.current"),
    (_CGROUP / "memory/memory.limit_in_bytes", _CGROUP / "memory/memory.usage_in_bytes"),
)
"""Where version 2 and version 1 say what a container may take and what it takes."""


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


def has_operators(config: PreTrainedConfig) -> bool:
    """Whether the checkpoint of this config was saved by Ghostlab with operators beside it."""
    return (getattr(config, "auto_map", None) or {}).get("AutoModelForCausalLM") == AUTO_CLASS


def _hub_id(folder: Path) -> str:
    """The hub id of a folder in a hub cache, ``models--org--name/snapshots/COMMIT``; empty for any other."""
    kept = folder.parts[-3:-1]
    known = len(kept) == 2 and kept[0].startswith("models--") and kept[1] == "snapshots"
    return kept[0].removeprefix("models--").replace("--", "/") if known else ""


def _name(folder: Path) -> str:
    return _hub_id(folder) or folder.name


def _read_raw(folder: Path) -> dict[str, Any]:
    where = _hub_id(folder) or folder
    if not folder.is_dir():
        raise ModelNotFoundError(f"There is no model folder {folder}.", _NEEDS)
    try:
        raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelNotFoundError(f"{folder} is not a model: it has no config.json.", _NEEDS) from error
    except (OSError, ValueError) as error:
        raise ModelNotFoundError(f"config.json in {where} cannot be read ({error}).", _NEEDS) from error
    if not isinstance(raw, dict) or "model_type" not in raw:
        raise ModelNotFoundError(f"config.json in {where} names no model_type.", _NEEDS)
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
            f"This version of Transformers does not know the architecture {family}.",
            "Use another model, or update.",
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


def check_files(folder: Path) -> None:
    """Refuse a folder without weights in safetensors or a tokenizer: Transformers would make up an empty one.

    Raises:
        ModelError: If it has no tokenizer, naming the files that may hold it, or if its weights are pickles.
        ModelNotFoundError: If it has no weights.
    """
    if not any((folder / name).is_file() for name in TOKENIZER_FILES):
        raise ModelError(
            f"{_name(folder)} has no tokenizer.",
            f"One of {', '.join(TOKENIZER_FILES)} must lie beside the weights.",
        )
    if any(folder.glob("*.safetensors")):
        return
    if any(next(folder.glob(pattern), None) for pattern in _PICKLES):
        raise ModelError(
            f"{_name(folder)} has its weights only as pickle (.bin), which can run code when it is read.",
            "Use a version in safetensors: model.save_pretrained writes one.",
        )
    raise ModelNotFoundError(f"{_name(folder)} holds no weights in safetensors.", _NEEDS)


# -- sizes, and whether they fit ---------------------------------------------------------------------------


def measure(config: PreTrainedConfig, name: str) -> Outline:
    """Layers and sizes of the causal language model that ``config`` describes; tied parameters count once.

    It is built on the meta device, which allocates nothing.

    Raises:
        UnsupportedModelError: If it cannot be built, or its blocks cannot be found or cut exactly.
    """
    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    except Exception as error:  # sizes that contradict each other fail anywhere in a model's code
        raise UnsupportedModelError(
            f"config.json of {name} describes no model ({type(error).__name__}).", "Check its sizes."
        ) from error
    blocks = list(model.get_submodule(find_layout(model).blocks))
    types = tuple(getattr(config, "layer_types", None) or ())
    return Outline(
        name=name,
        layers=len(blocks),
        width=int(config.hidden_size),
        layer_types=types if len(set(types)) > 1 else (),
        blocks=tuple(map(_count, blocks)),
        attention=tuple(_attention(block) for block in blocks),
        head=model.get_output_embeddings().weight.numel(),
        total=_count(model),
    )


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _attention(block: nn.Module) -> int:
    return sum(_count(part) for name, part in block.named_children() if name in _ATTENTION)


def available_bytes(device: torch.device) -> int:
    """Free memory of ``device``; for main memory the tighter of the machine's and the container's."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return min([int(psutil.virtual_memory().available), *_container_free()])


def _container_free() -> list[int]:
    """What the control group of this process still allows; empty where there is no limit."""
    for limit, used in _CGROUPS:
        try:
            return [int(limit.read_text()) - int(used.read_text())]
        except (OSError, ValueError):  # no such file, or the word "max"
            continue
    return []


def check_memory(
    parameters: int, dtype: torch.dtype, device: torch.device, copies: int = 1, most: int | None = None
) -> None:
    """Refuse a model that has more parameters than ``most``, or whose weights do not fit.

    ``copies`` is how many times the weights exist at the worst moment.

    Raises:
        MemoryLimitError: Saying what is needed, what there is, and what to lower.
    """
    if most is not None and parameters > most:
        raise MemoryLimitError(
            f"This host loads models of at most {most / 1e6:,.0f} M parameters; this one has "
            f"{parameters / 1e6:,.0f} M.",
            "Choose a smaller model, or run Ghostlab on a machine of your own.",
        )
    need = int(parameters * dtype.itemsize * (copies + LOADING_SHARE))
    have = available_bytes(device)
    if need <= have:
        return
    smaller = "use dtype bfloat16, " if dtype.itemsize > 2 else ""
    raise MemoryLimitError(
        f"{parameters / 1e6:,.0f} M parameters in {str(dtype).removeprefix('torch.')} need {as_size(need)} "
        f"of memory on {device}; {as_size(have)} are free.",
        f"Choose a smaller model, {smaller}or free memory.",
    )


def check_disk(folder: Path, need: int) -> None:
    """Refuse to write ``need`` bytes into ``folder`` when its disk has less free.

    Raises:
        MemoryLimitError: Saying what is needed and what there is.
    """
    existing = next(parent for parent in [folder, *folder.absolute().parents] if parent.exists())
    have = shutil.disk_usage(existing).free
    if need > have:
        raise MemoryLimitError(
            f"{as_size(need)} of disk are needed for the weights; {as_size(have)} are free.",
            "Free disk space, choose a smaller model, or set GHOSTLAB_CACHE or HF_HOME to a larger disk.",
        )


def as_size(count: int) -> str:
    """A byte count for people: ``1.5 GB``."""
    size = float(max(count, 0))
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
