"""Let the original and its variants continue a prompt side by side, stoppable between two tokens."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from jinja2 import TemplateError
from torch import Tensor

from ghostlab.config import PromptFormat, RunConfig
from ghostlab.errors import Cancelled, ConfigError, memory_errors
from ghostlab.evaluation.judge import departure, describe, judge
from ghostlab.evaluation.writer import Prefix, Writer
from ghostlab.model.model import Model
from ghostlab.progress import SILENT, Progress
from ghostlab.results.generation import Generation, OnGenerations, OnText

Form = Literal["raw", "chat"]
_WRITING = 0.95
"""Share of the work that is writing; the rest is reading it once more."""


def generate(
    variants: Mapping[str, Model],
    config: RunConfig,
    *,
    only: Collection[str] | None = None,
    on_text: OnText | None = None,
    on_generations: OnGenerations | None = None,
    progress: Progress = SILENT,
) -> list[Generation]:
    """Continue a prompt with all variants, a token each in turn, and let the original judge the texts.

    Args:
        variants: Models by name; the first is the original, the others are made from it.
        config: Names the prompt, which is not part of the result, and how it is continued.
        only: Variants that write; default all of them. The original judges even if it does not write.
        on_text: Given each continuation as it grows.
        on_generations: Given what is judged so far, after each variant; or, when stopped before that, what
            is written, not judged.

    Raises:
        ConfigError: If prompt and continuation exceed the model's context, the prompt is empty, or the
            format does not fit the model.
        Cancelled: Between two tokens.
    """
    if config.new_tokens == 0:
        return []
    original = next(iter(variants.values()))
    form = format_of(original, config.prompt_format)
    ids = encode(original, config.prompt, form, config.new_tokens)
    hand_on = on_generations or (lambda _: None)
    with memory_errors("Lower new_tokens or shorten the prompt."), torch.no_grad():
        prefix = Prefix(original, ids, {model.first_change for model in variants.values()})
        writers = {
            name: Writer(model, prefix, config, None if on_text is None else partial(on_text, name))
            for name, model in variants.items()
            if only is None or name in only
        }
        try:
            _write(list(writers.values()), config.new_tokens, progress.part(0.0, _WRITING))
        except Cancelled:
            begun = [(name, writer) for name, writer in writers.items() if writer.tokens]
            hand_on([_unjudged(name, writer, prefix, form) for name, writer in begun])
            raise
        reader = _Judge(prefix, form, greedy=config.temperature == 0)
        made: list[Generation] = []
        judging = progress.part(_WRITING, 1.0)
        for name in judging.each(list(writers), "The original reads what was written"):
            made.append(reader(name, writers[name]))
            hand_on(list(made))
    return made


def _write(writers: Sequence[Writer], new_tokens: int, progress: Progress) -> None:
    """Step the writers in turn, one token each, until all are done."""
    every = "" if len(writers) == 1 else " of each"
    for number in range(new_tokens):
        going = [writer for writer in writers if not writer.done]
        for place, writer in enumerate(going, start=1):
            progress.check()
            writer.step()
            share = (number + place / len(going)) / new_tokens
            progress.at(share, f"Generating ({number + 1}/{new_tokens} tokens{every})")


def _unjudged(name: str, writer: Writer, prefix: Prefix, form: Form) -> Generation:
    """The record of a continuation that only its writer has seen."""
    return Generation(
        variant=name,
        text=writer.text,
        tokens=len(writer.tokens),
        seconds=writer.times[-1],
        first_seconds=writer.times[0],
        shared_blocks=prefix.shared(writer.model),
        prompt_format=form,
    )


class _Judge:
    """The original as a reader of what variants wrote; its own continuation, if there is one, comes first."""

    def __init__(self, prefix: Prefix, form: Form, *, greedy: bool) -> None:
        self.prefix = prefix
        self.form = form
        self.greedy = greedy
        self._greedy_path: list[int] | None = None

    def __call__(self, name: str, writer: Writer) -> Generation:
        original, model = self.prefix.original, writer.model
        tokens, last = writer.tokens, self.prefix.ids[:, -1:]
        seen = judge(original, self.prefix.cache(original), last, tokens)
        own = seen if model is original else judge(model, writer.cache, last, tokens)
        if model is original and self.greedy:
            self._greedy_path = tokens  # as it was written: a pass over many tokens may round a tie otherwise
        return replace(
            _unjudged(name, writer, self.prefix, self.form),
            leaves=departure(tokens, self._greedy_path or [verdict.likeliest for verdict in seen]),
            written=describe(model, tokens, writer.pieces, own, seen),
        )


def format_of(model: Model, wanted: PromptFormat) -> Form:
    """How ``model`` is given a prompt: ``auto`` is chat where its tokenizer has a template.

    Raises:
        ConfigError: If the format is chat and the model has no template.
    """
    has_template = bool(model.tokenizer.chat_template)
    if wanted == "chat" and not has_template:
        raise ConfigError(f"{model.name} has no chat template.", "Set prompt_format to raw or auto.")
    return "chat" if has_template and wanted != "raw" else "raw"


def encode(model: Model, prompt: str, form: Form, new_tokens: int) -> Tensor:
    """Token ids [1, T] of a prompt, on the model's device.

    A chat template brings every special token that it wants, so the tokenizer adds none of its own to it.

    Raises:
        ConfigError: If the prompt is empty, the template refuses it, or there is no room for ``new_tokens``.
    """
    chat = form == "chat"
    ids = _chat(model, prompt) if chat else model.tokenizer(prompt, return_tensors="pt")["input_ids"]
    if ids.shape[1] == 0 or (chat and not prompt.strip()):
        raise ConfigError("The prompt is empty.", "Write a few words to continue.")
    if model.context is not None and ids.shape[1] + new_tokens > model.context:
        raise ConfigError(
            f"A prompt of {ids.shape[1]} tokens and {new_tokens} more exceed the context of {model.context}.",
            "Shorten the prompt or lower new_tokens.",
        )
    return ids.to(dtype=torch.long, device=model.device)


def _chat(model: Model, prompt: str) -> Tensor:
    message = [{"role": "user", "content": prompt}]
    try:
        ids: Tensor = model.tokenizer.apply_chat_template(
            message, add_generation_prompt=True, return_dict=True, return_tensors="pt"
        )["input_ids"]
    except (TemplateError, ValueError) as error:
        raise ConfigError(
            f"The chat template of {model.name} fails: {error}.", "Set prompt_format to raw."
        ) from error
    return ids
