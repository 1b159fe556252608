"""What can take the place of a dropped block: modules that are given the state before it.

A stand-in is inserted before the first surviving block (or the final norm) and maps the residual stream to
itself, token by token, so it needs no cache of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ghostlab.errors import ResultError


class AffineMap(nn.Module):
    """``x -> x + x M + b`` on the last dimension; M dense [C, C] or of rank r as ``down [C, r] @ up [r, C]``.

    M is kept instead of W = I + M: whatever the precision of the state, rounding then touches only the
    correction. Stored and computed in float32 unless the model is cast as a whole.

    Args:
        matrix: M, [C, C]; or
        factors: ``(down, up)``, [C, r] and [r, C].
        bias: b, [C]; optional.
    """

    dense: Tensor | None
    down: Tensor | None
    up: Tensor | None
    bias: Tensor | None

    def __init__(
        self,
        matrix: Tensor | None = None,
        *,
        factors: tuple[Tensor, Tensor] | None = None,
        bias: Tensor | None = None,
    ) -> None:
        super().__init__()
        if (matrix is None) == (factors is None):
            raise ValueError("give either a matrix or factors")
        down, up = factors or (None, None)
        for name, tensor in (("dense", matrix), ("down", down), ("up", up), ("bias", bias)):
            self.register_buffer(name, None if tensor is None else tensor.detach().to(torch.float32).clone())

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
        """Numbers stored: C^2 (dense) or 2 C r, plus C for a bias."""
        return sum(buffer.numel() for buffer in self.buffers())

    def matrix(self) -> Tensor:
        """M in float64, [C, C]."""
        if self.dense is not None:
            return self.dense.double()
        assert self.down is not None
        assert self.up is not None
        return self.down.double() @ self.up.double()

    def forward(self, state: Tensor) -> Tensor:
        """Map states [..., C]; the result has the dtype of ``state``."""
        if self.dense is not None:
            change = state.to(self.dense.dtype) @ self.dense
        else:
            assert self.down is not None
            assert self.up is not None
            change = state.to(self.down.dtype) @ self.down @ self.up
        if self.bias is not None:
            change = change + self.bias
        return state + change.to(state.dtype)

    def tensors(self) -> dict[str, Tensor]:
        """What is to be stored, on the CPU; :meth:`from_tensors` reads it back."""
        return {name: buffer.detach().cpu().contiguous() for name, buffer in self.named_buffers()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> AffineMap:
        """Rebuild a map from :meth:`tensors`.

        Raises:
            ResultError: If a tensor is missing, unknown, or shapes do not fit together.
        """
        names = set(tensors) - {"bias"}
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        if names == {"dense"} and _square(tensors["dense"]):
            width = tensors["dense"].shape[0]
        elif names == {"down", "up"} and tensors["down"].shape == tensors["up"].T.shape:
            width = tensors["down"].shape[0]
        else:
            raise ResultError(f"An operator is damaged: its tensors are {shapes}.")
        if "bias" in tensors and tensors["bias"].shape != (width,):
            raise ResultError(f"An operator's bias does not fit: its tensors are {shapes}.")
        if names == {"dense"}:
            return cls(tensors["dense"], bias=tensors.get("bias"))
        return cls(factors=(tensors["down"], tensors["up"]), bias=tensors.get("bias"))


def _square(tensor: Tensor) -> bool:
    return tensor.ndim == 2 and tensor.shape[0] == tensor.shape[1]
