"""A decoder language model with its tokenizer: the original, or a variant with blocks cut out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import torch

import ghostlab
from ghostlab.cut import Block, Cut
from ghostlab.errors import CutError
from ghostlab.model.decoder import Decoder, Trace
from ghostlab.model.replacement import Replacement
from ghostlab.model.surgery import attach, keep_only, kept_blocks, rewrite

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import Cache, PreTrainedModel, PreTrainedTokenizerBase

SHARD = "5GB"
"""Largest weight file, as the hub recommends."""


class Model:
    """A causal language model of a supported family.

    Args:
        hf: The transformers model, in eval mode.
        name: What people call it.
        note: One sentence on where the weights come from, or nothing.
        cut, replacements, full_depth: Set on variants: what was dropped from a model of ``full_depth`` blocks
            and what takes its place.

    Raises:
        UnsupportedModelError: If the family is not supported.
    """

    def __init__(
        self,
        hf: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str,
        note: str = "",
        cut: Cut | None = None,
        replacements: Mapping[Block, Replacement] | None = None,
        full_depth: int | None = None,
    ) -> None:
        self.hf = hf
        self.tokenizer = tokenizer
        self.name = name
        self.note = note
        self.decoder = Decoder(hf)
        self.cut = cut
        self.replacements = dict(replacements or {})
        self.full_depth = full_depth or self.decoder.depth

    @property
    def depth(self) -> int:
        """Number of decoder blocks."""
        return self.decoder.depth

    @property
    def width(self) -> int:
        """C, the width of the residual stream."""
        return int(self.hf.config.hidden_size)

    @property
    def family(self) -> str:
        """``config.model_type``."""
        return str(self.hf.config.model_type)

    @property
    def context(self) -> int | None:
        """The most tokens the model was made for; ``None`` if its config does not say."""
        length: int | None = getattr(self.hf.config, "max_position_embeddings", None)
        return length

    @property
    def device(self) -> torch.device:
        """Where token ids are to be put."""
        return self.decoder.device

    @property
    def dtype(self) -> str:
        """Type of the weights, for example ``float32``."""
        return str(self.hf.dtype).removeprefix("torch.")

    @cached_property
    def parameters(self) -> int:
        """Number of parameters, tied ones counted once, replacements included."""
        own: int = sum({id(p): p.numel() for p in self.hf.parameters()}.values())
        maps = [replacement.map for replacement in self.replacements.values() if replacement.map is not None]
        return own + sum(map.parameters_added for map in maps)

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change with the config or with any of a sample of the weights."""
        digest = hashlib.sha256(self.hf.config.to_json_string(use_diff=False).encode())
        for name, parameter in self.hf.named_parameters():
            sample = parameter.detach().flatten()[:: max(1, parameter.numel() // 64)][:64]
            digest.update(f"{name}{tuple(parameter.shape)}".encode())
            digest.update(sample.float().cpu().numpy().tobytes())
        return digest.hexdigest()[:16]

    @property
    def kept(self) -> tuple[int, ...]:
        """Which blocks of the full model these are."""
        if self.cut is None:
            return tuple(range(self.depth))
        return kept_blocks(self.full_depth, self.cut, self.replacements)

    @property
    def first_change(self) -> int:
        """The boundary up to which this variant equals the original: its states there are the original's."""
        if self.cut is None:
            return self.depth
        return min(self.replacements.get(block, Replacement()).begins(block) for block in self.cut)

    def calls_from(self, trace: Trace) -> Trace:
        """The original's calls under this variant's numbering of the blocks, as far as they are known."""
        calls = {own: trace.calls[full] for own, full in enumerate(self.kept) if full in trace.calls}
        return Trace(calls=calls, mask=trace.mask, seen=trace.seen)

    def resume(self, trace: Trace, to: int | None = None, cache: Cache | None = None) -> Tensor:
        """Run this variant from where it parts from the original, so that shared blocks cost nothing.

        Args:
            trace: The original's, with its state at :attr:`first_change` and the later calls.
            to: Stop at this boundary of the original, before a block that is kept, and give the state that
                the block works on; default what the head is given. Both are [B, T, C].
            cache: For a trace that was made with a cache: the variant's own, used instead.
        """
        stop = self.depth if to is None else sum(index < to for index in self.kept)
        start = self.first_change
        state = self.decoder.run_span(trace.states[start], start, stop, self.calls_from(trace), cache)
        return self.decoder.run_tail(state) if to is None else self.decoder.receive(state, stop)

    def without(self, cut: Cut, replacements: Mapping[Block, Replacement] | None = None) -> Model:
        """The variant with ``cut`` dropped and ``replacements`` in its place; weights are shared.

        Raises:
            CutError: If the cut does not fit, a replacement has no block in it, or this is a variant already.
        """
        if self.cut is not None:
            raise CutError("This model is already cut.", "Cut the original instead.")
        replacements = dict(replacements or {})
        stray = set(replacements) - set(cut.blocks)
        if stray:
            raise CutError(f"A replacement for {min(stray)} has no block in the cut {cut}.")
        cut.check(self.depth)
        kept = kept_blocks(self.depth, cut, replacements)
        hf = keep_only(self.hf, kept)
        rewrite(hf, kept, replacements)
        attach(hf, kept, replacements)
        return Model(
            hf,
            self.tokenizer,
            name=self.name,
            note=self.note,
            cut=cut,
            replacements=replacements,
            full_depth=self.depth,
        )

    def save(self, folder: str | Path, *, card: str = "", shard: str = SHARD) -> Path:
        """Write the model, its tokenizer and its replacements; see :func:`ghostlab.save`."""
        return ghostlab.save(self, folder, card=card, shard=shard)

    def save_stock(self, folder: str | Path, *, card: str = "", shard: str = SHARD) -> Path:
        """Write an ordinary checkpoint where that is exact; see :func:`ghostlab.save_stock`."""
        return ghostlab.save_stock(self, folder, card=card, shard=shard)

    def __repr__(self) -> str:
        what = "" if self.cut is None else f", {self.cut.describe(self.full_depth)}"
        recovered = f", {len(self.replacements)} replacement(s)" if self.replacements else ""
        return f"Model({self.name}, {self.family}, {self.depth} layers{what}{recovered})"
