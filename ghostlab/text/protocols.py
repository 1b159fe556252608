"""Windows as papers cut them out of their evaluation texts, token for token."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import islice

from torch import Tensor

from ghostlab.errors import TextError
from ghostlab.text.documents import Documents

DRAWN = 256
"""Windows that GPTQ draws from C4, with seed 0."""

Span = tuple[Tensor, Tensor]
"""Token ids, and for each the UTF-8 bytes of its text; special tokens have none."""

Encode = Callable[[str], Span]


def spans(documents: Documents, encode: Encode, size: int, count: int | None) -> list[Span]:
    """Spans of ``size`` tokens as the protocol of ``documents`` takes them, the first ``count``; else all.

    A protocol that joins its documents takes one span after the other and drops what is left over at the end.
    One that does not takes each span from a random place of a random document that is longer.

    Raises:
        TextError: If there is none.
    """
    assert documents.protocol is not None
    found = list(
        islice(_drawn(documents, encode, size), count or DRAWN)
        if documents.protocol.join is None
        else islice(_consecutive(encode(documents.texts[0]), size), count)
    )
    if not found:
        raise TextError(f"{documents.name} holds no window of {size} tokens.", "Lower the length.")
    return found


def _consecutive(encoded: Span, size: int) -> Iterator[Span]:
    tokens, sizes = encoded
    for start in range(0, len(tokens) - size + 1, size):
        yield tokens[start : start + size], sizes[start : start + size]


def _drawn(documents: Documents, encode: Encode, size: int) -> Iterator[Span]:
    """The same documents and places as ``random.seed(0)`` and ``randint`` give GPTQ."""
    chance = random.Random(0)
    known: dict[int, Span] = {}
    too_short: set[int] = set()
    while len(too_short) < len(documents.texts):
        number = chance.randint(0, len(documents.texts) - 1)
        if number not in known:
            known[number] = encode(documents.texts[number])
        tokens, sizes = known[number]
        if len(tokens) <= size:
            too_short.add(number)
            continue
        start = chance.randint(0, len(tokens) - size - 1)
        yield tokens[start : start + size], sizes[start : start + size]
