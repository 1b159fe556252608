"""What is exported: a :class:`~ghostlab.model.model.Model`, seen from the modules that it uses itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from ghostlab.cut import Block, Cut
    from ghostlab.model.decoder import Decoder
    from ghostlab.model.replacement import Replacement


class Variant(Protocol):
    """A model with its tokenizer, what was dropped from it and what stands in for that."""

    hf: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    name: str
    note: str
    decoder: Decoder
    cut: Cut | None
    replacements: dict[Block, Replacement]
    full_depth: int

    @property
    def kept(self) -> tuple[int, ...]:
        """Which blocks of the full model these are."""
