"""Let the original and its variants continue a prompt, token by token, stoppable between two tokens."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import Cache, GenerationConfig, StoppingCriteria, set_seed
from transformers.generation.streamers import BaseStreamer

from ghostlab.config import PromptFormat
from ghostlab.errors import memory_errors
from ghostlab.evaluation.prefix import Prefix, fork
from ghostlab.evaluation.prompt import Form, encode, format_of
from ghostlab.evaluation.surprise import departure, describe, judge
from ghostlab.generations import Generation, OnGenerations, OnText
from ghostlab.model.lm import Model
from ghostlab.progress import SILENT, Progress


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen.

    Attributes:
        new_tokens: The most tokens to add.
        temperature: 0 is greedy.
        top_p: Nucleus of the sampling.
        seed: Seed of the sampling, the same for every variant.
    """

    new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0


def generate(
    variants: Mapping[str, Model],
    prompt: str,
    sampling: Sampling,
    *,
    prompt_format: PromptFormat = "auto",
    only: Collection[str] | None = None,
    on_text: OnText | None = None,
    on_generations: OnGenerations | None = None,
    progress: Progress = SILENT,
) -> list[Generation]:
    """Continue ``prompt`` with each variant in turn, and let the original judge what each one wrote.

    Args:
        variants: Models by name; the first is the original, the others are made from it.
        prompt: Text to continue or to answer; not part of the result.
        sampling: How many tokens, and how they are chosen.
        prompt_format: See :func:`~ghostlab.evaluation.prompt.format_of`.
        only: Variants that write; default all of them. The original judges even if it does not write.
        on_text: Given each continuation as it grows.
        on_generations: Given what is finished so far, after each variant.
        progress: Told of each token.

    Raises:
        ConfigError: If prompt and continuation exceed the model's context, the prompt is empty, or the
            format does not fit the model.
        Cancelled: Between two tokens.
    """
    original = next(iter(variants.values()))
    form = format_of(original, prompt_format)
    ids = encode(original, prompt, form, sampling.new_tokens)
    with memory_errors("Lower new_tokens or shorten the prompt."), torch.no_grad():
        writer = _Writer(original, ids, {model.first_change for model in variants.values()}, sampling)
        made: list[Generation] = []
        writers = [name for name in variants if only is None or name in only]
        for number, name in enumerate(writers):
            model = variants[name]
            part = progress.part(number / len(writers), (number + 1) / len(writers))
            heard = None if on_text is None else partial(on_text, name)
            written = writer.write(model, heard, part, f"Generating: {name}")
            made.append(writer.judged(name, model, written, form))
            if on_generations is not None:
                on_generations(list(made))
    return made


@dataclass(frozen=True)
class _Written:
    """One continuation before it is judged; ``cache`` is that of the prompt without its last token."""

    streamer: _Streamer
    begun: float
    cache: Cache


class _Writer:
    """Writes and judges the continuations of one prompt, which is read once."""

    def __init__(self, original: Model, ids: Tensor, boundaries: set[int], sampling: Sampling) -> None:
        self.original = original
        self.ids = ids
        self.prefix = Prefix(original, ids, boundaries)
        self.sampling = sampling
        self._greedy_path: list[int] | None = None

    def write(
        self, model: Model, on_text: Callable[[str], None] | None, progress: Progress, message: str
    ) -> _Written:
        """Let ``model`` continue the prompt."""
        streamer = _Streamer(model, self.ids, on_text)
        guard = _Guard(progress, self.ids.shape[1], self.sampling.new_tokens, message)
        set_seed(self.sampling.seed)
        begun = time.perf_counter()
        cache = self.prefix.cache(model)
        model.hf.generate(
            input_ids=self.ids,
            attention_mask=torch.ones_like(self.ids),
            cache=fork(cache),
            generation_config=_settings(model, self.sampling),
            stopping_criteria=[guard],
            streamer=streamer,
        )
        return _Written(streamer, begun, cache)

    def judged(self, name: str, model: Model, written: _Written, form: Form) -> Generation:
        """The record of a continuation; that of the original, if it is wanted, comes first."""
        streamer, last = written.streamer, self.ids[:, -1:]
        tokens = streamer.tokens
        original = judge(self.original, self.prefix.cache(self.original), last, tokens)
        own = original if model is self.original else judge(model, written.cache, last, tokens)
        if model is self.original and self.sampling.temperature == 0:
            self._greedy_path = tokens  # as it was written: a pass over many tokens may round a tie otherwise
        return Generation(
            variant=name,
            text=streamer.text,
            tokens=len(tokens),
            seconds=streamer.times[-1] - written.begun,
            first_seconds=streamer.times[0] - written.begun,
            shared_blocks=self.prefix.shared(model),
            leaves=departure(tokens, self._greedy_path or [verdict.likeliest for verdict in original]),
            prompt_format=form,
            written=describe(model, tokens, streamer.pieces, own, original),
        )


def _settings(model: Model, sampling: Sampling) -> GenerationConfig:
    how = {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
    end = model.hf.generation_config.eos_token_id
    first = end[0] if isinstance(end, list) else end
    pad = model.tokenizer.pad_token_id
    return GenerationConfig(
        max_new_tokens=sampling.new_tokens,
        eos_token_id=end,
        pad_token_id=first if pad is None else pad,
        **(how if sampling.temperature > 0 else {"do_sample": False}),
    )


class _Streamer(BaseStreamer):  # type: ignore[misc]
    """Collects tokens as they come, each with its time and its piece of the text.

    They are decoded behind the prompt's last token: some tokenizers drop the space before a first word.
    """

    def __init__(self, model: Model, prompt: Tensor, on_text: Callable[[str], None] | None) -> None:
        self.tokenizer = model.tokenizer
        self.on_text = on_text
        self.tokens: list[int] = []
        self.times: list[float] = []
        self.pieces: list[str] = []
        self.text = ""
        self._before = prompt[0, -1:].tolist()
        self._skip = len(self._decode([]))
        self._prompt_seen = False

    def put(self, value: Tensor) -> None:
        """Called with the prompt first, then with each token."""
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        for token in value.flatten().tolist():
            self.times.append(time.perf_counter())
            self.tokens.append(token)
            # half a character is held back until it is whole
            self._grow(self._decode(self.tokens)[self._skip :].rstrip("\N{REPLACEMENT CHARACTER}"))
        if self.on_text is not None:
            self.on_text(self.text)

    def end(self) -> None:
        """What never became a whole character is shown as it is."""
        rest = self._decode(self.tokens)[self._skip + len(self.text) :]
        if rest and self.pieces:
            self.pieces[-1] += rest
            self.text += rest

    def _grow(self, text: str) -> None:
        text = text if len(text) > len(self.text) else self.text
        self.pieces.append(text[len(self.text) :])
        self.text = text

    def _decode(self, tokens: list[int]) -> str:
        text: str = self.tokenizer.decode(
            [*self._before, *tokens], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return text


class _Guard(StoppingCriteria):  # type: ignore[misc]
    """Reports each token and raises when the user stopped; never ends a generation itself."""

    def __init__(self, progress: Progress, prompt: int, total: int, message: str) -> None:
        self.progress = progress
        self.prompt = prompt
        self.total = total
        self.message = message

    def __call__(self, input_ids: Tensor, scores: Tensor, **_: Any) -> Tensor:
        done = input_ids.shape[1] - self.prompt
        self.progress.at(done / self.total, f"{self.message} ({done}/{self.total} tokens)")
        return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)
