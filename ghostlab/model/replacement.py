"""What can take the place of a dropped block.

A :class:`Replacement` has up to two parts: an :class:`AffineMap` on the residual stream, and new weights for
one layer: a layer that is kept from the block (refitted so that it does the work of all of them), or the
layer before the block (edited so that the block is not missed). All of it works token by token or inside an
ordinary layer, so that no cache of its own is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ghostlab.cut import Block
from ghostlab.errors import ResultError
from ghostlab.model.first_tokens import FirstTokens


class AffineMap(nn.Module):
    """``x -> x + x M + b`` on the last dimension.

    M is kept instead of W = I + M: whatever the precision of the state, rounding then touches only the
    correction. Stored and computed in float32 unless the model is cast as a whole.

    Args:
        matrix: M, [C, C]; or
        factors: ``(down, up)``, [C, r] and [r, C], of which M is the product; or
        diagonal: The diagonal of M, [C]; none of them for M = 0.
        bias: b, [C]; optional.
        first: Offset [C] that the first attended token of a sequence gets instead; optional.
    """

    dense: Tensor | None
    down: Tensor | None
    up: Tensor | None
    diagonal: Tensor | None
    bias: Tensor | None
    first: Tensor | None

    def __init__(
        self,
        matrix: Tensor | None = None,
        *,
        factors: tuple[Tensor, Tensor] | None = None,
        diagonal: Tensor | None = None,
        bias: Tensor | None = None,
        first: Tensor | None = None,
    ) -> None:
        super().__init__()
        if sum(form is not None for form in (matrix, factors, diagonal)) > 1:
            raise ValueError("give a matrix, or factors, or a diagonal")
        down, up = factors or (None, None)
        parts = {"dense": matrix, "down": down, "up": up, "diagonal": diagonal, "bias": bias, "first": first}
        if all(tensor is None for tensor in parts.values()):
            raise ValueError("an affine map needs at least one part")
        for name, tensor in parts.items():
            self.register_buffer(name, None if tensor is None else tensor.detach().to(torch.float32).clone())
        self.first_tokens: FirstTokens | None = None

    @property
    def width(self) -> int:
        """C, the width of the residual stream."""
        return next(self.buffers()).shape[0]

    @property
    def rank(self) -> int | None:
        """r for a factored map, ``None`` for a dense one."""
        return None if self.down is None else self.down.shape[1]

    @property
    def parameters_added(self) -> int:
        """Numbers stored: C^2 (dense), 2 C r or C (diagonal), plus C for a bias and C for first tokens."""
        return sum(buffer.numel() for buffer in self.buffers())

    def matrix(self) -> Tensor:
        """M in float64, [C, C]."""
        if self.dense is not None:
            return self.dense.double()
        if self.down is not None and self.up is not None:
            return self.down.double() @ self.up.double()
        if self.diagonal is not None:
            return self.diagonal.double().diag()
        return torch.zeros(self.width, self.width, dtype=torch.float64, device=next(self.buffers()).device)

    def change(self, state: Tensor) -> Tensor:
        """x M + b for states [..., C], in the map's own precision."""
        if self.dense is not None:
            change = state.to(self.dense.dtype) @ self.dense
        elif self.down is not None and self.up is not None:
            change = state.to(self.down.dtype) @ self.down @ self.up
        elif self.diagonal is not None:
            change = state.to(self.diagonal.dtype) * self.diagonal
        else:
            change = torch.zeros_like(state, dtype=next(self.buffers()).dtype)
        return change if self.bias is None else change + self.bias

    def forward(self, state: Tensor, first: Tensor | None = None) -> Tensor:
        """Map states [B, T, C]; the result has the dtype of ``state``.

        ``first`` is the mask [B, T] of first attended tokens; default what the model's entry found.
        """
        change = self.change(state)
        if self.first is not None:
            change = torch.where(self._first(first)[..., None], self.first, change)
        return state + change.to(state.dtype)

    def beside(self, state: Tensor, output: Tensor) -> Tensor:
        """The output of a layer that ran on ``state``, with this map's change added to it, [B, T, C]."""
        summed = output + self.change(state).to(output.dtype)
        if self.first is None:
            return summed
        return torch.where(self._first(None)[..., None], state + self.first.to(state.dtype), summed)

    def _first(self, mask: Tensor | None) -> Tensor:
        if mask is None and self.first_tokens is not None:
            mask = self.first_tokens.mask
        if mask is None:
            raise ValueError("which tokens are first is known only inside a model")
        return mask

    def twin(self) -> AffineMap:
        """The same numbers for another model, which has first tokens of its own."""
        other = copy(self)
        other._buffers = dict(self._buffers)
        other.first_tokens = None
        return other

    def tensors(self) -> dict[str, Tensor]:
        """What is to be stored, on the CPU; :meth:`from_tensors` reads it back."""
        return {name: buffer.detach().cpu().contiguous() for name, buffer in self.named_buffers()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> AffineMap:
        """Rebuild a map from :meth:`tensors`.

        Raises:
            ResultError: If a tensor is missing, unknown, or holds no finite numbers, or shapes do not fit.
        """
        check_numbers(tensors)
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        vectors = ("diagonal", "bias", "first")
        width = next((shapes[name][0] for name in ("dense", "down", *vectors) if shapes.get(name)), 0)
        rank = shapes["down"][-1] if shapes.get("down") else 0
        fitting: dict[str, tuple[int, ...]] = dict.fromkeys(vectors, (width,))
        fitting |= {"dense": (width, width), "down": (width, rank), "up": (rank, width)}
        whole = set(tensors) - {"bias", "first"} in (set(), {"dense"}, {"down", "up"}, {"diagonal"})
        if not (width and whole and all(fitting[name] == shape for name, shape in shapes.items())):
            raise ResultError(f"An operator is damaged: its tensors are {shapes}.")
        factors = (tensors["down"], tensors["up"]) if "down" in tensors else None
        rest = {name: tensors.get(name) for name in vectors}
        return cls(tensors.get("dense"), factors=factors, **rest)


def check_numbers(tensors: Mapping[str, Tensor]) -> None:
    """Refuse stored tensors that no fit can have made.

    Raises:
        ResultError: Naming one that is not of floating point, or not finite.
    """
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise ResultError(f"An operator is damaged: its '{name}' holds {tensor.dtype}, no real numbers.")
        if not torch.isfinite(tensor).all():
            raise ResultError(f"An operator is damaged: its '{name}' holds NaN or infinity.")


@dataclass(frozen=True)
class Replacement:
    """What takes the place of one block.

    Attributes:
        map: A map of the residual stream; beside the layer if one is kept from the block, else alone.
        layer: The layer that gets new weights, in the original's numbering: one of the block, which is then
            kept, or the one before it.
        weights: Parameter path inside that layer -> its new value.
    """

    map: AffineMap | None = None
    layer: int | None = None
    weights: Mapping[str, Tensor] = field(default_factory=dict)

    def keeps(self, block: Block) -> bool:
        """Whether a layer of the block stays."""
        return self.layer is not None and block.start <= self.layer < block.stop

    def begins(self, block: Block) -> int:
        """The boundary from which on a model with this replacement differs from the original."""
        return block.start if self.layer is None else min(self.layer, block.start)


# -- maps inside a model: before the module that receives their output, or beside a layer -------------------

SLOT = "ghost"
"""Name of the submodule that holds a map, on the receiver of its output or on the layer beside it."""


def place(host: nn.Module, map: AffineMap, *, beside: bool) -> None:
    """Let ``host`` receive its state through ``map``, or add the change that it makes of it to the output."""
    host.add_module(SLOT, map)
    if beside:
        host.register_forward_hook(_add_beside, with_kwargs=True)
    else:
        host.register_forward_pre_hook(_apply_before, with_kwargs=True)


def remove(host: nn.Module) -> None:
    """Take the map of ``host`` away, if it has one."""
    if host._modules.pop(SLOT, None) is not None:
        _forget(host._forward_pre_hooks, host._forward_pre_hooks_with_kwargs, _apply_before)
        _forget(host._forward_hooks, host._forward_hooks_with_kwargs, _add_beside)


def map_before(host: nn.Module) -> AffineMap | None:
    """The map that precedes ``host``, if there is one."""
    map = host._modules.get(SLOT)
    precedes = any(hook is _apply_before for hook in host._forward_pre_hooks.values())
    return map if precedes and isinstance(map, AffineMap) else None


def _apply_before(
    host: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    map = _map_of(host)
    if args:
        return (map(args[0]), *args[1:]), kwargs
    return args, {**kwargs, "hidden_states": map(kwargs["hidden_states"])}


def _add_beside(host: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
    map = _map_of(host)
    state: Tensor = args[0] if args else kwargs["hidden_states"]
    if isinstance(output, tuple):
        return (map.beside(state, output[0]), *output[1:])
    return map.beside(state, output)


def _map_of(host: nn.Module) -> AffineMap:
    map = host._modules[SLOT]
    assert isinstance(map, AffineMap)
    return map


def _forget(hooks: dict[int, Any], flags: dict[int, bool], ours: Any) -> None:
    for key, hook in list(hooks.items()):
        if hook is ours:
            del hooks[key]
            flags.pop(key, None)
