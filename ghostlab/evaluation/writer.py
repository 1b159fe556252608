"""One variant that continues a prompt, a token at a time whenever its turn comes.

The prompt is read once. A variant equals the original up to :attr:`~ghostlab.model.model.Model.first_change`,
and so do its keys and values; the blocks after that boundary are run from the original's state there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Iterator
from copy import copy
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from transformers import (
    Cache,
    DynamicCache,
    GenerationConfig,
    LogitsProcessorList,
    PreTrainedModel,
    StoppingCriteriaList,
)

from ghostlab.config import RunConfig
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


class Writer:
    """A continuation that grows by :meth:`step`; several of them may be stepped in any order.

    Each has a cache and a source of chance of its own, so none can tell whether others write too.

    Args:
        model: Who writes: the original or a variant of it.
        prefix: The prompt, as read by the original.
        config: Says how many tokens, and how they are chosen.
        on_text: Given the continuation after each token.

    Attributes:
        cache: The model's cache of the prompt without its last token, there from the first step on.
        tokens: Ids of what is written.
        times: Seconds that the writer itself had computed when each token was there.
        done: Whether nothing more will come.
    """

    def __init__(
        self, model: Model, prefix: Prefix, config: RunConfig, on_text: Callable[[str], None] | None = None
    ) -> None:
        self.model = model
        self.cache: Cache
        self.tokens: list[int] = []
        self.times: list[float] = []
        self.done = False
        self._spelling = _Spelling(model, prefix.ids)
        self._on_text = on_text
        self._coming = self._continue(prefix, config)

    @property
    def text(self) -> str:
        """What is written, without the first half of a character."""
        return self._spelling.text

    @property
    def pieces(self) -> list[str]:
        """The part of the text that each token brought."""
        return self._spelling.pieces

    def step(self) -> None:
        """Write one more token."""
        begun = time.perf_counter()
        token, self.done = next(self._coming)
        self.times.append((self.times[-1] if self.times else 0.0) + time.perf_counter() - begun)
        self.tokens.append(token)
        self._spelling.add(token)
        if self._on_text is not None:
            self._on_text(self.text)
        if self.done:
            self._coming.close()  # and with it goes the cache of the continuation
            self._spelling.end()

    def _continue(self, prefix: Prefix, config: RunConfig) -> Generator[tuple[int, bool], None, None]:
        self.cache = prefix.cache(self.model)
        device = prefix.ids.device
        yield from self.model.hf.generate(
            input_ids=prefix.ids,
            attention_mask=torch.ones_like(prefix.ids),
            cache=fork(self.cache),
            generation_config=_settings(self.model, config),
            custom_generate=_one_by_one,
            chance=torch.Generator(device).manual_seed(config.seed),
        )


def _settings(model: Model, config: RunConfig) -> GenerationConfig:
    how = {"do_sample": True, "temperature": config.temperature, "top_p": config.top_p, "top_k": 0}
    end = model.hf.generation_config.eos_token_id
    first = end[0] if isinstance(end, list) else end
    pad = model.tokenizer.pad_token_id
    return GenerationConfig(
        max_new_tokens=config.new_tokens,
        eos_token_id=end,
        pad_token_id=first if pad is None else pad,
        **(how if config.temperature > 0 else {"do_sample": False}),
    )


def _one_by_one(
    model: PreTrainedModel,
    input_ids: Tensor,
    *,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: GenerationConfig,
    chance: torch.Generator,
    **inputs: Any,
) -> Iterator[tuple[int, bool]]:
    """The loop of ``generate`` for one sequence, which hands over each token and whether it is the last.

    Transformers prepares everything and calls this in place of its own loop (``custom_generate``).
    """
    done = False
    while not done:
        step = model.prepare_inputs_for_generation(input_ids, next_sequence_length=1, **inputs)
        with model._optimize_model_for_decode():
            outputs = model(**step, return_dict=True)
        inputs = model._update_model_kwargs_for_generation(outputs, inputs)
        logits = outputs.logits[:, -1].to(torch.float32, copy=True)
        scores = logits_processor(input_ids, logits)
        if generation_config.do_sample:
            token = torch.multinomial(scores.softmax(-1), 1, generator=chance)
        else:
            token = scores.argmax(-1, keepdim=True)
        input_ids = torch.cat([input_ids, token], dim=1)
        done = bool(stopping_criteria(input_ids, ()).all())
        yield int(token), done


class _Spelling:
    """Tokens as text, piece by piece.

    They are decoded after the prompt's last token: some tokenizers drop the space before a first word.
    """

    def __init__(self, model: Model, prompt: Tensor) -> None:
        self.text = ""
        self.pieces: list[str] = []
        self._tokenizer = model.tokenizer
        self._tokens: list[int] = prompt[0, -1:].tolist()
        self._skip = len(self._decoded())

    def add(self, token: int) -> None:
        """One more token; half a character is held back until it is whole."""
        self._tokens.append(token)
        text = self._decoded()[self._skip :].rstrip("\N{REPLACEMENT CHARACTER}")
        text = text if len(text) > len(self.text) else self.text
        self.pieces.append(text[len(self.text) :])
        self.text = text

    def end(self) -> None:
        """What never became a whole character is shown as it is."""
        rest = self._decoded()[self._skip + len(self.text) :]
        if rest:
            self.pieces[-1] += rest
            self.text += rest

    def _decoded(self) -> str:
        text: str = self._tokenizer.decode(
            self._tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return text
