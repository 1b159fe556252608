"""Likelihood and agreement of several models on the same tokens, in one streamed pass over the head.

Logits exist for a few hundred tokens at a time only; the original's probabilities are computed once and every
variant is compared with them while they are there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, pad

from ghostlab.model.decoder import Decoder

LOGIT_BYTES = 96 << 20
"""Memory for one chunk of logits, float32."""

NEAR = 5


@dataclass(frozen=True)
class TokenScores:
    """Figures of one model per predicted token, each [B, T - 1], on the CPU.

    Attributes:
        nll: Negative log-likelihood of the token that came, in nats.
        kl: KL(original || this model) of the next-token distribution, in nats.
        agrees: Whether both find the same token most likely.
        near: Whether the original's most likely token is among this model's :data:`NEAR` likeliest.
    """

    nll: Tensor
    kl: Tensor
    agrees: Tensor
    near: Tensor

    @classmethod
    def concatenate(cls, parts: Sequence[TokenScores]) -> TokenScores:
        """Scores of several batches of windows."""
        return cls(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(cls)))


@torch.no_grad()
def score_tokens(
    decoders: Sequence[Decoder],
    finals: Sequence[Tensor],
    ids: Tensor,
    check: Callable[[], None] = lambda: None,
) -> list[TokenScores]:
    """Score models by the states that their heads are given.

    Args:
        decoders: The original first, then its variants.
        finals: For each, the output of its :meth:`~ghostlab.model.decoder.Decoder.run_tail`, [B, T, C].
        ids: Token ids [B, T].
        check: Called before each chunk of tokens; what it raises ends the work.

    Returns:
        One :class:`TokenScores` per model; for the original ``kl`` is 0, ``agrees`` and ``near`` are true.
    """
    targets = ids[:, 1:].flatten()
    states = [final[:, :-1].flatten(0, 1) for final in finals]
    columns: list[list[Tensor]] = [[] for _ in decoders]
    for rows in _chunks(decoders[0], len(targets)):
        check()
        reference = _logits(decoders[0], states[0][rows]).log_softmax(-1)
        favourite = reference.argmax(-1)
        probability = reference.exp()
        entropy = -reference.mul(probability).sum(-1)
        true = favourite >= 0
        columns[0].append(_stack(-_pick(reference, targets[rows]), torch.zeros_like(entropy), true, true))
        spare = reference  # not needed any more, and as large as what comes
        for column, decoder, state in zip(columns[1:], decoders[1:], states[1:], strict=True):
            logits = _logits(decoder, state[rows])
            likeliest = logits.topk(min(NEAR, logits.shape[-1]), -1).values
            near = _pick(logits, favourite) >= likeliest[:, -1]
            agrees = logits.argmax(-1) == favourite
            target = _pick(logits, targets[rows])
            # KL = sum p log p - sum p (z - lse z): the variant's log-probabilities are never formed
            # a product and a sum, not einsum: BLAS adds 50,000 terms one by one, and KL is a small difference
            mean = torch.mul(probability, logits, out=spare).sum(-1)
            normaliser = _logsumexp_(logits, likeliest[:, :1])
            divergence = normaliser - mean - entropy
            column.append(_stack(normaliser - target, divergence.clamp(min=0), agrees, near))
    shape = (ids.shape[0], ids.shape[1] - 1)
    return [_unstack(torch.cat(column, dim=1), shape) for column in columns]


def token_nll(decoder: Decoder, final: Tensor, ids: Tensor) -> Tensor:
    """Negative log-likelihood of each predicted token, [B, T - 1], float32 on the CPU.

    ``final`` is what the head is given, [B, T, C], on token ids [B, T].
    """
    targets, states = ids[:, 1:].flatten(), final[:, :-1].flatten(0, 1)
    parts = [
        cross_entropy(_logits(decoder, states[rows]), targets[rows], reduction="none").cpu()
        for rows in _chunks(decoder, len(targets))
    ]
    return torch.cat(parts).reshape(len(ids), -1)


def nll_gradient(decoder: Decoder, state: Tensor, ids: Tensor) -> Tensor:
    """Gradient of the summed negative log-likelihood with respect to the state of boundary L, [B, T, C]."""
    targets = ids[:, 1:].flatten()
    with torch.enable_grad():
        leaf = state.detach().requires_grad_()
        final = decoder.run_tail(leaf)
        states = final[:, :-1].flatten(0, 1).detach()
        pull = torch.zeros_like(states)
        for rows in _chunks(decoder, len(targets)):
            part = states[rows].requires_grad_()
            nll = cross_entropy(_logits(decoder, part), targets[rows], reduction="sum")
            (pull[rows],) = torch.autograd.grad(nll, part)
        pull = pad(pull.reshape(len(ids), -1, final.shape[-1]), (0, 0, 0, 1))  # the last token predicts none
        (gradient,) = torch.autograd.grad(final, leaf, pull)
    return gradient


@torch.no_grad()
def score_next(decoder: Decoder, final: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability of each target in nats, float32, and the likeliest token in its place; [N] on the CPU.

    ``final`` is what the head is given at the token before each target, [1, N, C]; targets are ids [N].
    """
    likelihoods, likeliest = [], []
    for rows in _chunks(decoder, len(targets)):
        logits = _logits(decoder, final[0, rows])
        likelihoods.append(_pick(logits.log_softmax(-1), targets[rows].to(logits.device)).cpu())
        likeliest.append(logits.argmax(-1).cpu())
    return torch.cat(likelihoods), torch.cat(likeliest)


@torch.no_grad()
def js_sums(decoder: Decoder, reference: Tensor, others: Sequence[Tensor]) -> Iterator[Tensor]:
    """Jensen-Shannon divergences of next-token distributions, in nats, summed over one chunk of tokens each.

    ``reference`` is what the original's head is given, [B, T, C], of which the last token is left out;
    ``others`` are compared with it. Yields for each chunk a sum per entry of these, float64 on the CPU.
    """
    flat = [final[:, :-1].flatten(0, 1) for final in (reference, *others)]
    for rows in _chunks(decoder, len(flat[0])):
        p = _logits(decoder, flat[0][rows]).log_softmax(-1)
        sums = [_js(p, _logits(decoder, states[rows]).log_softmax(-1)) for states in flat[1:]]
        yield torch.stack(sums).cpu().double()


def _js(p: Tensor, q: Tensor) -> Tensor:
    """JS of log-probabilities [N, V], summed over N: (KL(p || m) + KL(q || m)) / 2 with m = (p + q) / 2."""
    middle = torch.logaddexp(p, q) - math.log(2)
    return (p.exp() * (p - middle) + q.exp() * (q - middle)).sum() / 2


def _logits(decoder: Decoder, states: Tensor) -> Tensor:
    return decoder.run_head(states[None])[0].float()


def _logsumexp_(logits: Tensor, greatest: Tensor) -> Tensor:
    """log sum exp of each row [N, V] whose greatest entry [N, 1] is known; overwrites ``logits``."""
    return logits.sub_(greatest).exp_().sum(-1).log_() + greatest[:, 0]


def _pick(values: Tensor, targets: Tensor) -> Tensor:
    return values.gather(-1, targets[:, None])[:, 0]


def _stack(nll: Tensor, kl: Tensor, agrees: Tensor, near: Tensor) -> Tensor:
    return torch.stack([nll, kl, agrees.to(nll.dtype), near.to(nll.dtype)]).cpu()


def _unstack(columns: Tensor, shape: tuple[int, int]) -> TokenScores:
    nll, kl, agrees, near = (column.reshape(shape) for column in columns)
    return TokenScores(nll, kl, agrees.bool(), near.bool())


def _chunks(decoder: Decoder, count: int) -> Iterator[slice]:
    """The rows of ``count`` tokens in parts whose logits :data:`LOGIT_BYTES` hold."""
    size = max(1, LOGIT_BYTES // (4 * int(decoder.hf.config.vocab_size)))
    for start in range(0, count, size):
        yield slice(start, start + size)
