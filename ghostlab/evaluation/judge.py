"""How a continuation looks to the original: each token's likelihood, and where it leaves the greedy path.

The original reads what a variant wrote, in one pass over the continuation and from the prompt's cache; so the
figures are about the very words on the page, and say of each how far the variant has gone astray with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import Cache

from ghostlab.errors import NumericsError
from ghostlab.model.likelihood import score_next
from ghostlab.model.model import Model
from ghostlab.results.generation import Token


class Verdict(NamedTuple):
    """What a model makes of one token: its log-probability in nats, and the token that it finds likeliest."""

    log_probability: float
    likeliest: int


def judge(model: Model, cache: Cache, last: Tensor, tokens: Sequence[int]) -> list[Verdict]:
    """What ``model`` makes of each token of a continuation.

    Args:
        model: Original or variant.
        cache: Its cache of the prompt without the last token; it is used up.
        last: The prompt's last token, [1, 1].
        tokens: Ids of the continuation, at least one.

    Raises:
        NumericsError: If a likelihood is not a number.
    """
    targets = torch.tensor(tokens, device=last.device)
    given = torch.cat([last, targets[None, :-1]], dim=1)
    trace = model.decoder.trace(given, {model.depth}, cache=cache)
    final = model.decoder.run_tail(trace.states[model.depth])
    found, likeliest = score_next(model.decoder, final, targets)
    if not torch.isfinite(found).all():
        raise NumericsError("Likelihoods of the text hold NaN or infinity.", "Load the model in float32.")
    return list(map(Verdict, found.tolist(), likeliest.tolist()))


def describe(
    model: Model,
    tokens: Sequence[int],
    pieces: Sequence[str],
    own: Sequence[Verdict],
    original: Sequence[Verdict],
) -> list[Token]:
    """The records of a continuation's tokens: what their writer and what the original makes of them."""
    return [
        Token(
            text=piece or special_name(model, token),
            log_probability=round(mine.log_probability, 4),
            original=round(theirs.log_probability, 4),
            instead="" if theirs.likeliest == token else model.tokenizer.decode([theirs.likeliest]),
        )
        for token, piece, mine, theirs in zip(tokens, pieces, own, original, strict=True)
    ]


def special_name(model: Model, token: int) -> str:
    """The name of a special token; nothing for any other."""
    return str(model.tokenizer.decode([token])) if token in model.tokenizer.all_special_ids else ""


def departure(tokens: Sequence[int], path: Sequence[int]) -> int | None:
    """The first position at which ``tokens`` differ from ``path``; ``None`` if they do not."""
    pairs = enumerate(zip(tokens, path, strict=False))
    return next((place for place, (token, wanted) in pairs if token != wanted), None)
