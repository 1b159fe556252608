"""Kinds of tokens."""

from __future__ import annotations

import pytest
import torch
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from ghostlab.text.tokens import KINDS, kinds_of
from tests.helpers.tokenizers import tiny_tokenizer

pytestmark = pytest.mark.unit


def named(tokens: list[int], tokenizer: PreTrainedTokenizerFast) -> list[tuple[str, str]]:
    (kinds,) = kinds_of(torch.tensor([tokens]), tokenizer).tolist()
    texts = [tokenizer.decode([token]) for token in tokens[1:]]
    return [(text, KINDS[kind]) for text, kind in zip(texts, kinds, strict=True)]


def test_byte_level_tokens() -> None:
    tokenizer = tiny_tokenizer()
    text = 'a lighthouse, 12 "ships"\n\nMorning don\'t'
    found = named(tokenizer(text).input_ids, tokenizer)
    assert found[0][1] == "first"
    rest = found[1:]
    for piece, kind in rest:
        if "\n" in piece:
            assert kind == "newline"
        elif piece.strip() in {"1", "2"}:
            assert kind == "digit"
        elif piece.strip() in {",", '"', "'"} or not piece.strip():
            assert kind == "punctuation"
    before = dict(zip(range(1, len(rest)), rest, strict=False))
    for number, (piece, kind) in enumerate(rest[1:], start=1):
        if piece.strip().isalpha() and not piece.startswith(" "):
            last = before[number][0][-1:]
            assert kind == ("word piece" if last.isalnum() or last == "'" else "word start"), (number, piece)
    starts = [piece for piece, kind in rest if kind == "word start"]
    assert any(piece.startswith("M") for piece in starts), "a word after a line break begins"
    assert any(piece.startswith("s") for piece in starts), "and one after a quotation mark"
    assert rest[-1] == ("t", "word piece"), "an apostrophe belongs to the word"


def test_sentencepiece_tokens() -> None:
    words = {"<s>": 0, "▁The": 1, "▁light": 2, "house": 3, "▁": 4, "5": 5, ".": 6, "<0x0A>": 7, "A": 8}
    inner = Tokenizer(models.WordLevel(words, unk_token="<s>"))
    inner.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>")
    kinds = [kind for _, kind in named([0, 1, 2, 3, 4, 5, 6, 7, 8], tokenizer)]
    assert kinds == [
        "first",
        "word start",
        "word piece",
        "punctuation",
        "digit",
        "punctuation",
        "newline",
        "word start",
    ]
