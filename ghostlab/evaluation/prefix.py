"""The prompt is read once: variants take over the keys and values of all blocks before their first change.

A variant equals the original up to :attr:`~ghostlab.model.model.Model.first_change`, and so do its keys and
values. What is left of its prompt, the blocks after that boundary, is run from the original's state there.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from functools import cached_property

from torch import Tensor
from transformers import Cache, DynamicCache

from ghostlab.model.decoder import Trace
from ghostlab.model.model import Model


class Prefix:
    """All but the last token of a prompt, run through the original when first needed.

    The last token is left to whoever continues: it gives the logits of the first new token.

    Args:
        original: The uncut model.
        ids: Token ids [1, T] of the whole prompt.
        boundaries: The ``first_change`` of every variant that will ask for a cache.
    """

    def __init__(self, original: Model, ids: Tensor, boundaries: Collection[int]) -> None:
        self.original = original
        self.ids = ids
        self.boundaries = set(boundaries)

    def cache(self, model: Model) -> Cache:
        """Keys and values of the prefix in every block of ``model``: the original or a variant of it."""
        if self.ids.shape[1] == 1:
            return DynamicCache(config=model.hf.config)
        cache, trace = self._read
        if model.cut is None:
            return fork(cache)
        own, start = DynamicCache(config=model.hf.config), model.first_change
        own.layers[:start] = fork(cache).layers[:start]
        model.resume(trace, cache=own)
        return own

    def shared(self, model: Model) -> int:
        """How many blocks of ``model`` need not run on the prompt, because they ran for the original."""
        return 0 if model.cut is None or self.ids.shape[1] == 1 else model.first_change

    @cached_property
    def _read(self) -> tuple[Cache, Trace]:
        cache = DynamicCache(config=self.original.hf.config)
        depth = self.original.depth
        trace = self.original.decoder.trace(self.ids[:, :-1], self.boundaries, last=depth, cache=cache)
        return cache, trace


def fork(cache: Cache) -> Cache:
    """A cache that goes on from here by itself: a layer that grows makes new tensors, so these are shared."""
    twin = copy(cache)
    twin.layers = [copy(layer) for layer in cache.layers]
    return twin
