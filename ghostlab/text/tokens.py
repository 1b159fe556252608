"""Tokens of a text, where each ends in bytes, and what kind each one is.

Where predictions go wrong is not the same for digits and for the ends of words.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ghostlab.config import BosPolicy
from ghostlab.errors import TextError

CHARACTERS_PER_TOKEN = 5.0
"""Rather more than English prose needs, so that one call of the tokenizer nearly always suffices."""

KINDS = ("first", "digit", "punctuation", "word start", "word piece", "newline")
"""``first`` is the first predicted token of a window, which has next to no context."""

FIRST, DIGIT, PUNCTUATION, START, PIECE, NEWLINE = range(len(KINDS))
_SPACES = ("Ġ", "▁", " ")
"""How tokenizers write the space in front of a word."""


def uses_bos(tokenizer: PreTrainedTokenizerBase, policy: BosPolicy) -> bool:
    """Whether windows begin with BOS under ``policy``; ``auto`` asks what the tokenizer does with a text.

    Raises:
        TextError: If the policy is ``always`` and the tokenizer has no BOS token.
    """
    if policy == "never":
        return False
    token = tokenizer.bos_token_id
    if policy == "always":
        if token is None:
            raise TextError("This model's tokenizer has no BOS token.", "Set bos to auto or never.")
        return True
    return token is not None and tokenizer("a").input_ids[:1] == [token]


def tokenise(text: str, tokenizer: PreTrainedTokenizerBase, wanted: int) -> tuple[Tensor, Tensor]:
    """At least ``wanted`` tokens of ``text`` where it has them, and the bytes up to each one's end."""
    tokens = ends = torch.zeros(0, dtype=torch.long)
    start = 0
    while len(tokens) < wanted and start < len(text):
        stop = start + math.ceil((wanted - len(tokens)) * CHARACTERS_PER_TOKEN)
        space = text.find(" ", stop)  # words stay whole, and keep the space in front of them
        chunk = text[start:] if space < 0 else text[start:space]
        more_tokens, more_ends = encode(chunk, tokenizer)
        ends = torch.cat([ends, more_ends + (ends[-1] if len(ends) else 0)])
        tokens = torch.cat([tokens, more_tokens])
        start += len(chunk)
    return tokens, ends


def encode(text: str, tokenizer: PreTrainedTokenizerBase) -> tuple[Tensor, Tensor]:
    """Tokens of ``text`` without special ones, and for each the UTF-8 bytes of the text up to its end."""
    options: dict[str, Any] = {"add_special_tokens": False, "verbose": False}
    if not tokenizer.is_fast:
        tokens = tokenizer(text, **options).input_ids
        lengths = [len(tokenizer.decode([token]).encode()) for token in tokens]
        return torch.tensor(tokens, dtype=torch.long), torch.tensor(lengths, dtype=torch.long).cumsum(0)
    encoded = tokenizer(text, return_offsets_mapping=True, **options)
    ends = torch.tensor([end for _, end in encoded.offset_mapping], dtype=torch.long)
    return torch.tensor(encoded.input_ids, dtype=torch.long), _bytes_before(text)[ends]


def _bytes_before(text: str) -> Tensor:
    """UTF-8 bytes in front of each character of ``text``, and of all of it, ``[characters + 1]``."""
    code = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    lengths = 1 + (code >= 0x80).astype(np.int64) + (code >= 0x800) + (code >= 0x10000)
    return torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)]))


def kinds_of(ids: Tensor, tokenizer: PreTrainedTokenizerBase) -> Tensor:
    """Kind of each predicted token, [W, T - 1]: indices into :data:`KINDS`.

    A token with a line break is ``newline``; else one with a digit ``digit``; one without a letter
    ``punctuation`` (also parts of a character); the rest begin a word or continue one. A word begins at a
    space, or after a token that does not end inside a word. ``ids`` are those of windows, [W, T].
    """
    used, places = torch.unique(ids, return_inverse=True)
    names = [str(name) for name in tokenizer.convert_ids_to_tokens(used.tolist())]
    texts = [tokenizer.decode([token]) for token in used.tolist()]
    own = torch.tensor([_alone(name, text) for name, text in zip(names, texts, strict=True)])[places]
    inside = torch.tensor([_ends_inside(text) for text in texts])[places]
    kinds = own[:, 1:].clone()
    kinds[(kinds == PIECE) & ~inside[:, :-1]] = START
    kinds[:, 0] = FIRST
    return kinds


def _alone(name: str, text: str) -> int:
    """Kind of a token by itself: the beginning of a word without a space in front is taken for a piece."""
    if "\n" in text:
        return NEWLINE
    if any(sign.isdigit() for sign in text):
        return DIGIT
    if not any(sign.isalpha() for sign in text):
        return PUNCTUATION
    return START if name.startswith(_SPACES) else PIECE


def _ends_inside(text: str) -> bool:
    """Whether a word may go on after ``text``; an apostrophe belongs to it."""
    last = text[-1:]
    return last.isalnum() or last in {"'", "’", "\ufffd"}
