"""How a map works inside a model: before the module that receives its output, or beside a layer."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ghostlab.model.replacement import AffineMap

SLOT = "ghost"
"""Name of the submodule that holds a map, on the receiver of its output or on the layer beside it."""


def place_before(host: nn.Module, replacement: AffineMap) -> None:
    """Let ``host`` receive its state through ``replacement``."""
    host.add_module(SLOT, replacement)
    host.register_forward_pre_hook(_apply_before, with_kwargs=True)


def place_beside(host: nn.Module, replacement: AffineMap) -> None:
    """Add the change that ``replacement`` makes to the input of ``host`` to its output."""
    host.add_module(SLOT, replacement)
    host.register_forward_hook(_add_beside, with_kwargs=True)


def remove(host: nn.Module) -> None:
    """Take the map of ``host`` away, if it has one."""
    if host._modules.pop(SLOT, None) is not None:
        _forget(host._forward_pre_hooks, host._forward_pre_hooks_with_kwargs, _apply_before)
        _forget(host._forward_hooks, host._forward_hooks_with_kwargs, _add_beside)


def map_before(host: nn.Module) -> AffineMap | None:
    """The map that precedes ``host``, if there is one."""
    found = host._modules.get(SLOT)
    precedes = any(hook is _apply_before for hook in host._forward_pre_hooks.values())
    return found if precedes and isinstance(found, AffineMap) else None


def _apply_before(
    host: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    replacement = host._modules[SLOT]
    assert replacement is not None
    if args:
        return (replacement(args[0]), *args[1:]), kwargs
    return args, {**kwargs, "hidden_states": replacement(kwargs["hidden_states"])}


def _add_beside(host: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
    replacement = host._modules[SLOT]
    assert isinstance(replacement, AffineMap)
    state: Tensor = args[0] if args else kwargs["hidden_states"]
    if isinstance(output, tuple):
        return (replacement.beside(state, output[0]), *output[1:])
    return replacement.beside(state, output)


def _forget(hooks: dict[int, Any], flags: dict[int, bool], ours: Any) -> None:
    for key, hook in list(hooks.items()):
        if hook is ours:
            del hooks[key]
            flags.pop(key, None)
