"""Cut blocks out of a model and put stand-ins in, without touching the original.

A variant is a structural clone: new modules around the very same parameter tensors. Original, pruned and
recovered model so coexist at the memory of one, and none can disturb another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from torch import nn

from ghostlab.cut import Block, Cut
from ghostlab.model.decoder import Decoder
from ghostlab.model.standin import AffineMap

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SLOT = "ghost"
"""Name of the submodule that holds a stand-in, on the module that receives its output."""


_NOT_PER_BLOCK = ("architectures", "_token_id")
"""Lists in a config that may happen to be as long as the model is deep."""


def clone(hf: PreTrainedModel) -> PreTrainedModel:
    """A copy of ``hf`` whose parameters and buffers are the same tensors."""
    shared = {id(tensor): tensor for tensor in (*hf.parameters(), *hf.buffers())}
    return deepcopy(hf, shared)


def drop_blocks(hf: PreTrainedModel, cut: Cut) -> PreTrainedModel:
    """A clone of ``hf`` without the blocks of ``cut``: block indices renumbered, config trimmed.

    Raises:
        CutError: If the cut does not fit the model or leaves no block.
        UnsupportedModelError: If the layout is not known.
    """
    depth = Decoder(hf).depth
    cut.check(depth)
    kept = cut.kept(depth)
    twin = clone(hf)
    decoder = Decoder(twin)
    blocks = [decoder.blocks[index] for index in kept]
    for index, block in enumerate(blocks):
        _renumber(block, index)
    owner = twin.get_submodule(decoder.layout.stack)
    setattr(owner, decoder.layout.blocks.rpartition(".")[2], nn.ModuleList(blocks))
    trim_config(twin.config, kept, depth)
    return twin


def trim_config(config: Any, kept: Sequence[int], depth: int) -> None:
    """Set the depth and filter every per-block list (``layer_types``, ``no_rope_layers``, ...)."""
    for name, value in list(vars(config).items()):
        per_block = isinstance(value, (list, tuple)) and len(value) == depth
        if per_block and not name.startswith("_") and not name.endswith(_NOT_PER_BLOCK):
            setattr(config, name, type(value)(value[index] for index in kept))
    config.num_hidden_layers = len(kept)


def install(hf: PreTrainedModel, cut: Cut, standins: Mapping[Block, AffineMap], depth: int) -> None:
    """Put each stand-in before the first block that survives behind its own block, or before the final norm.

    Args:
        hf: A variant made by :func:`drop_blocks` with ``cut`` from a model of ``depth`` blocks.
        standins: One per block of the cut; blocks without one are plainly dropped.
    """
    decoder = Decoder(hf)
    kept = cut.kept(depth)
    for block, standin in standins.items():
        receiver = decoder.receiver(sum(index < block.stop for index in kept))
        like = next(receiver.parameters(), None)
        receiver.add_module(SLOT, standin if like is None else standin.to(like.device))
        receiver.register_forward_pre_hook(_apply_standin, with_kwargs=True)


def without_standins(hf: PreTrainedModel) -> PreTrainedModel:
    """A clone of a variant with its stand-ins taken out: the plainly pruned model."""
    twin = clone(hf)
    for module in list(twin.modules()):
        if SLOT in module._modules:
            del module._modules[SLOT]
            for key, hook in list(module._forward_pre_hooks.items()):
                if hook is _apply_standin:
                    del module._forward_pre_hooks[key]
                    module._forward_pre_hooks_with_kwargs.pop(key, None)
    return twin


def _apply_standin(
    receiver: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    standin = receiver._modules[SLOT]
    assert standin is not None
    if args:
        return (standin(args[0]), *args[1:]), kwargs
    return args, {**kwargs, "hidden_states": standin(kwargs["hidden_states"])}


def _renumber(block: nn.Module, index: int) -> None:
    """Caches are addressed by ``layer_idx``: a gap or a repeat corrupts cached generation silently."""
    for module in block.modules():
        if isinstance(getattr(module, "layer_idx", None), int):
            setattr(module, "layer_idx", index)  # noqa: B010 - torch types every attribute as a tensor
