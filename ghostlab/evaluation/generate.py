"""Let a model continue a prompt, token by token, stoppable between two tokens."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, StoppingCriteria, set_seed
from transformers.generation.streamers import BaseStreamer

from ghostlab.errors import ConfigError, memory_errors
from ghostlab.model.lm import Model
from ghostlab.progress import SILENT, Progress
from ghostlab.records import Generation


def generate(
    model: Model,
    prompt: str,
    *,
    new_tokens: int,
    variant: str = "original",
    temperature: float = 0.0,
    top_p: float = 1.0,
    seed: int = 0,
    on_text: Callable[[str], None] | None = None,
    progress: Progress = SILENT,
) -> Generation:
    """Continue ``prompt`` with the KV cache, greedily or by sampling.

    Args:
        model: Original or variant.
        prompt: Text to continue; not part of the result.
        new_tokens: The most tokens to add.
        variant: Name for the record.
        temperature: 0 is greedy.
        top_p: Nucleus of the sampling.
        seed: Seed of the sampling.
        on_text: Called with the whole continuation after each token.

    Raises:
        ConfigError: If prompt and continuation exceed the model's context, or the prompt is empty.
        Cancelled: Between two tokens.
    """
    batch = model.tokenizer(prompt, return_tensors="pt")
    ids, mask = batch["input_ids"].to(model.device), batch["attention_mask"].to(model.device)
    _check_room(model, ids, new_tokens)
    streamer = _Streamer(model, on_text)
    guard = _Guard(progress, ids.shape[1], new_tokens, f"Generating: {variant}")
    set_seed(seed)
    begun = time.perf_counter()
    with memory_errors("Lower new_tokens or shorten the prompt."), torch.no_grad():
        model.hf.generate(
            input_ids=ids,
            attention_mask=mask,
            generation_config=_settings(model, new_tokens, temperature, top_p),
            stopping_criteria=[guard],
            streamer=streamer,
        )
    return Generation(variant, streamer.text, len(streamer.tokens), time.perf_counter() - begun)


def _check_room(model: Model, ids: Tensor, new_tokens: int) -> None:
    if ids.shape[1] == 0:
        raise ConfigError("The prompt is empty.", "Write a few words to continue.")
    if model.context is not None and ids.shape[1] + new_tokens > model.context:
        raise ConfigError(
            f"A prompt of {ids.shape[1]} tokens and {new_tokens} more exceed the context of {model.context}.",
            "Shorten the prompt or lower new_tokens.",
        )


def _settings(model: Model, new_tokens: int, temperature: float, top_p: float) -> GenerationConfig:
    sampling = {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": 0}
    end = model.hf.generation_config.eos_token_id
    first = end[0] if isinstance(end, list) else end
    pad = model.tokenizer.pad_token_id
    return GenerationConfig(
        max_new_tokens=new_tokens,
        eos_token_id=end,
        pad_token_id=first if pad is None else pad,
        **(sampling if temperature > 0 else {"do_sample": False}),
    )


class _Streamer(BaseStreamer):  # type: ignore[misc]
    """Collects tokens as they come and decodes the continuation so far."""

    def __init__(self, model: Model, on_text: Callable[[str], None] | None) -> None:
        self.tokenizer = model.tokenizer
        self.on_text = on_text
        self.tokens: list[int] = []
        self.text = ""
        self._prompt_seen = False

    def put(self, value: Tensor) -> None:
        """Called with the prompt first, then with each token."""
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        self.tokens += value.flatten().tolist()
        self.text = self.tokenizer.decode(self.tokens, skip_special_tokens=True)
        if self.on_text is not None:
            self.on_text(self.text)

    def end(self) -> None:
        """Nothing is buffered."""


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
