"""Run any span of a decoder's blocks, for any family, exactly.

During one ordinary forward pass a :class:`Trace` keeps what each block is handed besides the hidden state
(masks, position embeddings, per-block types). Replaying ``h = block(h, **kept)`` then runs blocks ``s..e-1``
just as the model itself does. This one mechanism lets calibration stop early and evaluation start late.

A *boundary* ``b`` is the state that block ``b`` receives, [B, T, C]; boundary ``L`` is what the final norm
receives. (``output_hidden_states[-1]`` of transformers is taken after that norm, and is never used.)
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import Cache
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

from ghostlab.model.families import find_layout
from ghostlab.model.first_tokens import FirstTokens, first_attended
from ghostlab.model.replacement import map_before

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass
class Trace:
    """What one forward pass left behind.

    Attributes:
        states: Boundary -> hidden state [B, T, C], for the boundaries asked for.
        calls: Block -> the other arguments it was called with.
        mask: The attention mask [B, T] of the pass, if it had one.
        seen: Tokens that the cache held before the pass.
    """

    states: dict[int, Tensor] = field(default_factory=dict)
    calls: dict[int, tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=dict)
    mask: Tensor | None = None
    seen: int = 0


class _ReachedLast(Exception):
    """Raised inside a forward pass once the last boundary asked for is recorded."""


class _Given(nn.Module):
    """Stands where the stack was and returns the state it is given: leaves only the head to run."""

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> BaseModelOutputWithPastAndCrossAttentions:
        return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=inputs_embeds)


class Decoder:
    """Block-wise access to a causal language model of transformers, which is only read.

    Raises:
        UnsupportedModelError: If its layout is not known.
    """

    def __init__(self, hf: PreTrainedModel) -> None:
        self.hf = hf
        self.layout = find_layout(hf)
        self.blocks: nn.ModuleList = hf.get_submodule(self.layout.blocks)
        self.tail: list[nn.Module] = [hf.get_submodule(path) for path in self.layout.tail]

    @property
    def depth(self) -> int:
        """Number of blocks L."""
        return len(self.blocks)

    @property
    def first_tokens(self) -> FirstTokens | None:
        """Where a variant's replacements learn which tokens are first; ``None`` if none of them asks."""
        return getattr(self.hf.get_submodule(self.layout.stack), "first_tokens", None)

    @property
    def device(self) -> torch.device:
        """Where token ids are to be put."""
        device: torch.device = self.hf.get_input_embeddings().weight.device
        return device

    def receiver(self, boundary: int) -> nn.Module:
        """The module that receives the state of a boundary: a block, or the final norm for boundary L."""
        return self.blocks[boundary] if boundary < self.depth else self.tail[0]

    @torch.no_grad()
    def trace(
        self,
        ids: Tensor,
        boundaries: Collection[int],
        *,
        mask: Tensor | None = None,
        last: int | None = None,
        cache: Cache | None = None,
    ) -> Trace:
        """Run from the embedding up to boundary ``last`` and no further; the head never runs.

        Args:
            ids: Token ids [B, T].
            boundaries: Those (0 .. L) whose states are kept.
            mask: Attention mask [B, T], 1 for tokens, 0 for padding.
            last: Where to stop; default the last of ``boundaries``. Calls are kept for blocks before it.
            cache: Keys and values of the tokens before ``ids``; those of ``ids`` are added to it.
        """
        last = max(boundaries) if last is None else last
        trace = Trace(mask=mask, seen=0 if cache is None else int(cache.get_seq_length()))
        with ExitStack() as hooks:
            for boundary in range(last + 1):
                hook = _recorder(trace, boundary, keep=boundary in boundaries, stop=boundary == last)
                # first in line: what is recorded is what a replacement before the block would be given
                hooks.enter_context(
                    self.receiver(boundary).register_forward_pre_hook(hook, prepend=True, with_kwargs=True)
                )
            mask = None if mask is None else mask.to(self.device)
            with suppress(_ReachedLast):
                self.hf(ids.to(self.device), attention_mask=mask, cache=cache, use_cache=cache is not None)
        return trace

    @torch.no_grad()
    def run_span(
        self, state: Tensor, start: int, stop: int, trace: Trace, cache: Cache | None = None
    ) -> Tensor:
        """Run blocks ``start .. stop-1`` on the state [B, T, C] of boundary ``start``: the state of ``stop``.

        ``trace`` is of the same batch and holds the calls of these blocks. If it was made with a cache,
        ``cache`` is the one that they are to use instead.
        """
        if self.first_tokens is not None:
            self.first_tokens.mask = first_attended(
                state.shape[:2], trace.mask, trace.seen, device=state.device
            )
        for index in range(start, stop):
            args, kwargs = _with_cache(trace.calls[index], cache)
            state = hidden(self.blocks[index](state, *args, **kwargs))
        return state

    @torch.no_grad()
    def receive(self, state: Tensor, boundary: int) -> Tensor:
        """What the receiver of a boundary works on: the state, through the map before it if there is one."""
        replacement = map_before(self.receiver(boundary))
        return state if replacement is None else replacement(state)

    def run_tail(self, state: Tensor) -> Tensor:
        """Final norm (and what else precedes the head) on the state of boundary L, [B, T, C].

        Differentiable, as the head is, with respect to a state that requires a gradient.
        """
        with _gradient_of(state):
            for module in self.tail:
                state = module(state)
            return state

    def run_head(self, state: Tensor) -> Tensor:
        """Logits [B, T, V] of the output of :meth:`run_tail`, soft-capping and scaling included."""
        with _gradient_of(state):
            logits: Tensor = self._head_only(inputs_embeds=state, use_cache=False).logits
            return logits

    @cached_property
    def _head_only(self) -> Any:
        """The model with its stack taken out: shares the head and every scaling that its forward applies."""
        outer = _shallow(self.hf)
        *path, name = self.layout.stack.split(".")
        owner = outer
        for step in path:
            owner._modules[step] = _shallow(owner._modules[step])
            owner = owner._modules[step]
        owner._modules[name] = _Given()
        return outer


def _recorder(trace: Trace, boundary: int, *, keep: bool, stop: bool) -> Any:
    def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        state = args[0] if args else kwargs["hidden_states"]
        if keep:
            trace.states[boundary] = state
        if stop:
            raise _ReachedLast
        trace.calls[boundary] = (args[1:], {k: v for k, v in kwargs.items() if k != "hidden_states"})

    return hook


def _with_cache(
    call: tuple[tuple[Any, ...], dict[str, Any]], cache: Cache | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A recorded call with ``cache`` in the place of the one that it was made with."""
    if cache is None:
        return call
    args, kwargs = call
    return (
        tuple(cache if isinstance(value, Cache) else value for value in args),
        {name: cache if isinstance(value, Cache) else value for name, value in kwargs.items()},
    )


def _gradient_of(state: Tensor) -> torch.set_grad_enabled:
    """Keep a graph only where the caller asks for a gradient of ``state``."""
    return torch.set_grad_enabled(torch.is_grad_enabled() and state.requires_grad)


def hidden(output: Any) -> Tensor:
    """Blocks return a tensor or, in some families, a tuple that starts with it."""
    state: Tensor = output[0] if isinstance(output, tuple) else output
    return state


def _shallow(module: Any) -> Any:
    twin = copy(module)
    twin._modules = dict(module._modules)
    return twin
