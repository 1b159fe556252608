"""Likelihood and agreement of several models on the same tokens, in one streamed pass over the head.

Logits exist for a few hundred tokens at a time only; the original's probabilities are computed once and every
variant is compared with them while they are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ghostlab.model.decoder import Decoder

LOGIT_BYTES = 48 << 20
"""Memory for one chunk of logits, float32."""


@dataclass(frozen=True)
class TokenScores:
    """Figures of one model per predicted token, each [B, T - 1], on the CPU.

    Attributes:
        nll: Negative log-likelihood of the token that came, in nats.
        kl: KL(original || this model) of the next-token distribution, in nats.
        agrees: Whether both find the same token most likely.
    """

    nll: Tensor
    kl: Tensor
    agrees: Tensor

    @classmethod
    def concatenate(cls, parts: Sequence[TokenScores]) -> TokenScores:
        """Scores of several batches of windows."""
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in ("nll", "kl", "agrees")))


@torch.no_grad()
def score_tokens(decoders: Sequence[Decoder], finals: Sequence[Tensor], ids: Tensor) -> list[TokenScores]:
    """Score models by the states that their heads are given.

    Args:
        decoders: The original first, then its variants.
        finals: For each, the output of its :meth:`~ghostlab.model.decoder.Decoder.run_tail`, [B, T, C].
        ids: Token ids [B, T].

    Returns:
        One :class:`TokenScores` per model; for the original ``kl`` is 0 and ``agrees`` is true.
    """
    targets = ids[:, 1:].flatten()
    states = [final[:, :-1].flatten(0, 1) for final in finals]
    columns: list[list[Tensor]] = [[] for _ in decoders]
    for rows in _chunks(len(targets), int(decoders[0].hf.config.vocab_size)):
        logits = _logits(decoders[0], states[0][rows])
        reference = logits.log_softmax(-1)
        probability = reference.exp()
        entropy = -(probability * reference).sum(-1)
        favourite = logits.argmax(-1)
        columns[0].append(_stack(-_pick(reference, targets[rows]), torch.zeros_like(entropy), favourite >= 0))
        for column, decoder, state in zip(columns[1:], decoders[1:], states[1:], strict=True):
            logits = _logits(decoder, state[rows])
            normaliser = logits.logsumexp(-1)
            # KL = sum p log p - sum p (z - lse z): the variant's log-probabilities are never formed
            divergence = normaliser - (probability * logits).sum(-1) - entropy
            nll = normaliser - _pick(logits, targets[rows])
            column.append(_stack(nll, divergence.clamp(min=0), logits.argmax(-1) == favourite))
    shape = (ids.shape[0], ids.shape[1] - 1)
    return [_unstack(torch.cat(column, dim=1), shape) for column in columns]


def _logits(decoder: Decoder, states: Tensor) -> Tensor:
    return decoder.run_head(states[None])[0].float()


def _pick(values: Tensor, targets: Tensor) -> Tensor:
    return values.gather(-1, targets[:, None])[:, 0]


def _stack(nll: Tensor, kl: Tensor, agrees: Tensor) -> Tensor:
    return torch.stack([nll, kl, agrees.to(nll.dtype)]).cpu()


def _unstack(columns: Tensor, shape: tuple[int, int]) -> TokenScores:
    nll, kl, agrees = (column.reshape(shape) for column in columns)
    return TokenScores(nll, kl, agrees.bool())


def _chunks(count: int, vocabulary: int) -> Iterator[slice]:
    size = max(1, LOGIT_BYTES // (4 * vocabulary))
    for start in range(0, count, size):
        yield slice(start, start + size)
