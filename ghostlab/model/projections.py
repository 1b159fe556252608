"""The two places where a decoder layer writes to the residual stream: after attention and after the MLP.

Both are linear, so that new weights for them follow from least squares: the layer adds
``scale * (heads @ W_o + b_o)`` and ``scale * (features @ W_d + b_d)`` to its input.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from ghostlab.errors import UnsupportedModelError

if TYPE_CHECKING:
    from ghostlab.model.model import Model

_ATTENTION = (
    "self_attn.o_proj",
    "self_attn.out_proj",
    "self_attn.dense",
    "self_attention.dense",
    "attention.dense",
    "attn.c_proj",
    "attn.out_proj",
)
_MLP = ("mlp.down_proj", "mlp.dense_4h_to_h", "mlp.c_proj", "mlp.fc2", "mlp.fc_out", "fc2")
NORMED = {"gemma2", "gemma3_text", "olmo2"}
"""Families that normalise what a layer adds: the projection's output is not what reaches the stream."""


@dataclass(frozen=True)
class Projections:
    """Paths of the output projections inside a layer, and what their output is scaled by."""

    attention: str
    mlp: str
    scale: float


@dataclass
class Written:
    """What projections saw and gave while a layer ran: inputs [N, d_in] and outputs [N, C] by path."""

    inputs: dict[str, Tensor] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)


def find_projections(model: Model) -> Projections:
    """Where the layers of ``model`` write.

    Raises:
        UnsupportedModelError: If the family normalises the output of its projections, or has none such.
    """
    family = model.hf.config.model_type
    if family in NORMED:
        raise UnsupportedModelError(
            f"Layers of a '{family}' model normalise what they add to the residual stream.",
            "Their projections cannot be refitted in closed form; use a map such as ghost_sink.",
        )
    if not getattr(model.hf.config, "do_layer_norm_before", True):
        raise UnsupportedModelError(
            "Layers of this OPT model normalise the residual stream itself, after each addition.",
            "Their projections cannot be refitted in closed form; use a map such as ghost_sink.",
        )
    layer = model.decoder.blocks[0]
    names = {name for name, _ in layer.named_modules()}
    attention = next((path for path in _ATTENTION if path in names), None)
    mlp = next((path for path in _MLP if path in names), None)
    if attention is None or mlp is None:
        raise UnsupportedModelError(f"The output projections of a '{family}' layer were not found.")
    return Projections(attention, mlp, float(getattr(model.hf.config, "residual_multiplier", 1.0)))


@contextmanager
def watch(layer: nn.Module, paths: tuple[str, ...]) -> Iterator[Written]:
    """Record what the projections at ``paths`` are given and return, while the body runs the layer."""
    written = Written()
    with ExitStack() as hooks:
        for path in paths:
            hooks.enter_context(_record(layer.get_submodule(path), path, written))
        yield written


def _record(module: nn.Module, path: str, written: Written) -> torch.utils.hooks.RemovableHandle:
    def hook(_: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        written.inputs[path] = args[0].reshape(-1, args[0].shape[-1])
        # a copy, because parallel layers (Falcon) add attention to it in place
        written.outputs[path] = output.reshape(-1, output.shape[-1]).clone()

    return module.register_forward_hook(hook)


def weight_of(module: nn.Module) -> Tensor:
    """W of a projection as ``x @ W``, [d_in, C], whatever way round the module stores it."""
    weight: Tensor = module.get_parameter("weight")
    return weight if isinstance(module, Conv1D) else weight.T


def stored(module: nn.Module, weight: Tensor) -> Tensor:
    """W as ``x @ W`` turned into what the module stores."""
    return weight.contiguous() if isinstance(module, Conv1D) else weight.T.contiguous()
