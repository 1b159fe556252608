"""What kind of token each one is: where predictions go wrong is not the same for digits and for word ends."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

KINDS = ("first", "digit", "punctuation", "word start", "word piece", "newline")
"""``first`` is the first predicted token of a window, which has next to no context."""

FIRST, DIGIT, PUNCTUATION, START, PIECE, NEWLINE = range(len(KINDS))
_SPACES = ("Ġ", "▁", " ")
"""How tokenizers write the space in front of a word."""


def kinds_of(ids: Tensor, tokenizer: PreTrainedTokenizerBase) -> Tensor:
    """Kind of each predicted token, [W, T - 1]: indices into :data:`KINDS`.

    A token with a line break is ``newline``; else one with a digit ``digit``; one without a letter
    ``punctuation`` (also parts of a character); the rest begin a word or continue one. A word begins at a
    space, or after a token that does not end inside a word.

    Args:
        ids: Token ids of windows, [W, T].
        tokenizer: Whose tokens they are.
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
    """Kind of a token as far as it tells itself: a word's beginning without a space is taken for a piece."""
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
