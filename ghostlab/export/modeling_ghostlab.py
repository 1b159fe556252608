"""A pruned model with the linear maps that stand in for its dropped blocks, for plain Transformers.

This file lies in the folder of the model and needs nothing but torch, safetensors and Transformers:

    AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)

reads the weights into the family's own class and puts the maps of ``operators.safetensors`` where
``ghostlab.json`` says. A map works token by token, ``x + x M + b``, so that caches and padding are left as
they are. Ghostlab wrote this file; licence: Apache-2.0.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig
from transformers.utils import cached_file

FILES = ("ghostlab.json", "operators.safetensors", "modeling_ghostlab.py")
_WHERE = ("cache_dir", "force_download", "local_files_only", "proxies", "revision", "subfolder", "token")
"""Arguments of ``from_pretrained`` that say where files are."""


class GhostForCausalLM:
    """What ``auto_map`` names: makes a model of the family's class with its maps put in."""

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = None) -> None:
        """Asked for by the auto classes; nothing to do, because models keep their family's class."""

    @classmethod
    def from_pretrained(cls, folder: str, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        """Load the model; arguments are those of ``AutoModelForCausalLM.from_pretrained``.

        Raises:
            ValueError: If the maps are not those that were saved with the model.
        """
        where = {name: kwargs[name] for name in _WHERE if name in kwargs}
        files = [Path(str(cached_file(folder, name, **where))) for name in FILES]
        manifest = json.loads(files[0].read_text(encoding="utf-8"))
        if hashlib.sha256(files[1].read_bytes()).hexdigest() != manifest["operators_sha256"]:
            raise ValueError(f"{files[1]} is not the file that was saved with this model.")
        config = AutoConfig.from_pretrained(folder, **where) if config is None else config
        loaded = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)].from_pretrained(
            folder, *args, config=config, **kwargs
        )
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        _put_in(model, load_file(files[1]), manifest)
        _keep_files(model, files)
        return loaded


class Map(nn.Module):
    """``x -> x M + b``: the change that a map makes to states [..., C]; ``first`` [C] for first tokens."""

    dense: Tensor | None
    down: Tensor | None
    up: Tensor | None
    diagonal: Tensor | None
    bias: Tensor | None
    first: Tensor | None

    def __init__(self, parts: dict[str, Tensor]) -> None:
        super().__init__()
        for name in ("dense", "down", "up", "diagonal", "bias", "first"):
            self.register_buffer(name, parts.get(name), persistent=False)

    def change(self, state: Tensor) -> Tensor:
        """x M + b, in the map's own precision."""
        like = next(self.buffers())
        state = state.to(like)
        if self.dense is not None:
            change = state @ self.dense
        elif self.down is not None and self.up is not None:
            change = state @ self.down @ self.up
        elif self.diagonal is not None:
            change = state * self.diagonal
        else:
            change = torch.zeros_like(state)
        return change if self.bias is None else change + self.bias


class FirstTokens:
    """Which of the tokens being run are the first attended ones of their sequences: mask [B, T]."""

    mask: Tensor

    def __call__(self, stack: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Forward pre-hook of the stack of blocks."""
        tokens = kwargs.get("input_ids")
        tokens = kwargs.get("inputs_embeds") if tokens is None else tokens
        tokens = args[0] if tokens is None else tokens
        cache = kwargs.get("past_key_values", kwargs.get("cache"))
        seen = 0 if cache is None else int(cache.get_seq_length())
        batch, length = tokens.shape[:2]
        columns = torch.arange(seen, seen + length, device=tokens.device)
        attended = _attended(kwargs.get("attention_mask"))
        if attended is None:
            self.mask = (columns == 0).expand(batch, length)
        else:
            first = attended.to(device=tokens.device, dtype=torch.int8).argmax(dim=1)
            self.mask = (columns[None, :] == first[:, None]).expand(batch, length)


def _attended(mask: Any) -> Tensor | None:
    """Which keys are attended to, [B or 1, K]; ``None`` if all are. Masks of static caches are 4-D."""
    if isinstance(mask, dict):
        mask = mask.get("full_attention", next(iter(mask.values()), None))
    if mask is None or (isinstance(mask, Tensor) and mask.ndim == 2):
        return mask
    if isinstance(mask, Tensor) and mask.ndim == 4:
        seen_by = mask if mask.dtype == torch.bool else mask == 0
        return seen_by.flatten(1, 2).any(dim=1)
    raise ValueError(f"Cannot find first tokens in an attention mask that is a {type(mask).__name__}.")


def _put_in(model: Any, tensors: dict[str, Tensor], manifest: dict[str, Any]) -> None:
    entry = FirstTokens()
    model.get_submodule(manifest["stack"]).register_forward_pre_hook(entry, with_kwargs=True)
    for block, place in manifest["places"].items():
        parts = {k.partition("/")[2]: t for k, t in tensors.items() if k.startswith(f"{block}/")}
        parts.pop("layer", None)
        if sorted(parts) != place["parts"]:
            raise ValueError(f"The map of {block} is made of {sorted(parts)} instead of {place['parts']}.")
        host = model.get_submodule(place["host"])
        ghost = Map(parts)
        ghost.to(next(host.parameters()).device)
        host.add_module("ghost", ghost)
        if place["beside"]:
            host.register_forward_hook(_beside(ghost, entry), with_kwargs=True)
        else:
            host.register_forward_pre_hook(_before(ghost, entry), with_kwargs=True)


def _before(ghost: Map, entry: FirstTokens) -> Callable[..., Any]:
    """The host receives its state through the map."""

    def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        state = args[0] if args else kwargs["hidden_states"]
        change = ghost.change(state)
        if ghost.first is not None:
            change = torch.where(entry.mask.to(change.device)[..., None], ghost.first, change)
        state = state + change.to(state)
        return ((state, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": state})

    return hook


def _beside(ghost: Map, entry: FirstTokens) -> Callable[..., Any]:
    """The map's change is added to the output of the host; first tokens get theirs alone."""

    def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        state = args[0] if args else kwargs["hidden_states"]
        made = output[0] if isinstance(output, tuple) else output
        summed = made + ghost.change(state).to(made)
        if ghost.first is not None:
            first = entry.mask.to(state.device)[..., None]
            summed = torch.where(first, state + ghost.first.to(state), summed)
        return (summed, *output[1:]) if isinstance(output, tuple) else summed

    return hook


def _keep_files(model: Any, files: list[Path]) -> None:
    """Let ``save_pretrained`` of this model take the maps along."""
    family = type(model)

    def save_pretrained(self: Any, save_directory: str | Path, *args: Any, **kwargs: Any) -> None:
        family.save_pretrained(self, save_directory, *args, **kwargs)
        for name, file in zip(FILES, files, strict=True):
            shutil.copyfile(file, Path(save_directory) / name)

    model.__class__ = type(family.__name__, (family,), {"save_pretrained": save_pretrained})
