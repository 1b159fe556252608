"""Cut blocks out of a model and put replacements in, without touching the original.

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
from ghostlab.model.first_tokens import FirstTokens
from ghostlab.model.replacement import Replacement, place, remove

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_NOT_PER_BLOCK = ("architectures", "_token_id")
"""Lists in a config that may happen to be as long as the model is deep."""


def clone(hf: PreTrainedModel) -> PreTrainedModel:
    """A copy of ``hf`` whose parameters and buffers are the same tensors."""
    shared = {id(tensor): tensor for tensor in (*hf.parameters(), *hf.buffers())}
    return deepcopy(hf, shared)


def kept_blocks(depth: int, cut: Cut, replacements: Mapping[Block, Replacement]) -> tuple[int, ...]:
    """Indices of the blocks that stay: those outside the cut, and layers that replacements keep from it."""
    saved = {replacement.layer for block, replacement in replacements.items() if replacement.keeps(block)}
    gone = set(cut.dropped) - saved
    return tuple(index for index in range(depth) if index not in gone)


def keep_only(hf: PreTrainedModel, kept: Sequence[int]) -> PreTrainedModel:
    """A clone of ``hf`` with only the blocks ``kept``: block indices renumbered, config trimmed."""
    twin = clone(hf)
    decoder = Decoder(twin)
    depth = decoder.depth
    blocks = [decoder.blocks[index] for index in kept]
    for index, block in enumerate(blocks):
        _renumber(block, index)
    owner = twin.get_submodule(decoder.layout.stack)
    setattr(owner, decoder.layout.blocks.rpartition(".")[2], nn.ModuleList(blocks))
    trim_config(twin.config, kept, depth)
    return twin


def trim_config(config: Any, kept: Sequence[int], depth: int) -> None:
    """Set the depth and filter every per-block list (``layer_types``, ``no_rope_layers``, ...)."""
    for name in per_block_lists(config, depth):
        value = getattr(config, name)
        setattr(config, name, type(value)(value[index] for index in kept))
    config.num_hidden_layers = len(kept)


def per_block_lists(config: Any, depth: int) -> list[str]:
    """Names of the lists in a config that have an entry for each of ``depth`` blocks."""
    return [
        name
        for name, value in vars(config).items()
        if isinstance(value, (list, tuple)) and len(value) == depth
        if not name.startswith("_") and not name.endswith(_NOT_PER_BLOCK)
    ]


def rewrite(hf: PreTrainedModel, kept: Sequence[int], replacements: Mapping[Block, Replacement]) -> None:
    """Give layers of a variant their new weights; the original keeps its own."""
    blocks = Decoder(hf).blocks
    for replacement in replacements.values():
        if replacement.layer is None:
            continue
        layer = blocks[kept.index(replacement.layer)]
        for path, value in replacement.weights.items():
            owner_path, _, name = path.rpartition(".")
            owner = layer.get_submodule(owner_path)
            old = getattr(owner, name)
            fresh = value.detach().to(device=old.device, dtype=old.dtype).clone()
            setattr(owner, name, nn.Parameter(fresh, requires_grad=False))


def attach(hf: PreTrainedModel, kept: Sequence[int], replacements: Mapping[Block, Replacement]) -> None:
    """Put the maps of replacements in.

    A map that stands alone goes before the first block that survives after its own, or before the final
    norm; one that belongs to a kept layer adds its change to that layer's output.
    """
    decoder = Decoder(hf)
    for block, replacement in replacements.items():
        if replacement.map is None:
            continue
        boundary, beside = place_of(block, replacement, kept)
        host = decoder.receiver(boundary)
        like = next(host.parameters(), None)
        map = replacement.map.twin()
        if like is not None:
            map.to(like.device)
        place(host, map, beside=beside)
        if map.first is not None:
            map.first_tokens = _entry(hf.get_submodule(decoder.layout.stack))


def place_of(block: Block, replacement: Replacement, kept: Sequence[int]) -> tuple[int, bool]:
    """Where the map of a replacement goes: the boundary it precedes, or the layer it is beside (``True``)."""
    if replacement.layer is not None and replacement.keeps(block):
        return kept.index(replacement.layer), True
    return sum(index < block.stop for index in kept), False


def without_maps(hf: PreTrainedModel) -> PreTrainedModel:
    """A clone of a variant with its maps taken out; rewritten weights stay."""
    twin = clone(hf)
    for module in list(twin.modules()):
        remove(module)
    return twin


def _entry(stack: nn.Module) -> FirstTokens:
    """What tells first tokens at the entry of ``stack``; installed once."""
    entry = getattr(stack, "first_tokens", None)
    if not isinstance(entry, FirstTokens):
        entry = FirstTokens()
        object.__setattr__(stack, "first_tokens", entry)  # no submodule: it holds no weights
        stack.register_forward_pre_hook(entry, with_kwargs=True)
    return entry


def _renumber(block: nn.Module, index: int) -> None:
    """Caches are addressed by ``layer_idx``: a gap or a repeat corrupts cached generation silently."""
    for module in block.modules():
        if isinstance(getattr(module, "layer_idx", None), int):
            setattr(module, "layer_idx", index)  # noqa: B010 - torch types every attribute as a tensor
