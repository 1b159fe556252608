"""A prompt as token ids: as it stands, or as a chat message by the model's own template."""

from __future__ import annotations

from typing import Literal

import torch
from jinja2 import TemplateError
from torch import Tensor

from ghostlab.config import PromptFormat
from ghostlab.errors import ConfigError
from ghostlab.model.model import Model

Form = Literal["raw", "chat"]


def format_of(model: Model, asked: PromptFormat) -> Form:
    """How a prompt is put to ``model``: ``auto`` is chat where its tokenizer has a template.

    Raises:
        ConfigError: If chat is asked of a model without a template.
    """
    has_template = bool(model.tokenizer.chat_template)
    if asked == "chat" and not has_template:
        raise ConfigError(f"{model.name} has no chat template.", "Set prompt_format to raw or auto.")
    return "chat" if has_template and asked != "raw" else "raw"


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
