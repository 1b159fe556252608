"""Metrics of a corpus with bootstrap intervals over its windows."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from ghostlab.model.likelihood import TokenScores
from ghostlab.results.records import Agreement, Metric, Scores, TokenClass
from ghostlab.results.statistics import Array, ratio, resamples
from ghostlab.text.tokens import KINDS


def summarise(
    scores: TokenScores,
    bytes_per_window: Tensor,
    seed: int,
    *,
    original: TokenScores | None = None,
    kinds: Tensor | None = None,
) -> Scores:
    """Perplexity, bits per byte, KL and agreement of one model.

    Intervals are 95 % percentile bootstrap over windows, because tokens of a window depend on each other. All
    models of a run are resampled with the same draws (``seed``), so that their intervals can be compared.

    Args:
        scores: Per-token figures [W, T - 1].
        bytes_per_window: UTF-8 bytes of the predicted text of each window, [W].
        seed: Seed of the resampling.
        original: Figures of the original on the same tokens: for how this model's predictions differ.
        kinds: Kind of each predicted token [W, T - 1], an index into :data:`KINDS`.
    """
    windows, tokens = scores.nll.shape
    nll = scores.nll.double()
    counts = np.full(windows, float(tokens))
    sums = {
        "nll": nll.sum(1).numpy(),
        "kl": scores.kl.double().sum(1).numpy(),
        "agrees": scores.agrees.double().sum(1).numpy(),
    }
    draws = resamples(windows, seed)
    text_bytes = bytes_per_window.double().numpy()
    return Scores(
        perplexity=ratio(sums["nll"], counts, draws, _exp),
        bits_per_byte=ratio(sums["nll"], text_bytes, draws, lambda x: x / math.log(2)),
        kl=ratio(sums["kl"], counts, draws),
        top1_agreement=ratio(sums["agrees"], counts, draws),
        window_nll=nll.mean(1).tolist(),
        position_nll=nll.mean(0).tolist(),
        agreement=None if original is None else agreement(scores, original, draws, kinds),
    )


def agreement(
    scores: TokenScores, original: TokenScores, draws: Array, kinds: Tensor | None = None
) -> Agreement:
    """How predictions differ from the original's; see :class:`~ghostlab.results.records.Agreement`.

    Args:
        scores, original: Figures per token, [W, T - 1].
        draws: Bootstrap samples of the windows, [R, W].
        kinds: Kind of each token, or ``None`` to leave them out.
    """
    kl, shift = scores.kl.double(), original.nll.double() - scores.nll.double()
    top1, top5 = scores.agrees.double(), scores.near.double()
    every = torch.ones_like(kl)
    masks = {} if kinds is None else {name: kinds.eq(number) for number, name in enumerate(KINDS)}
    classes = [
        TokenClass(
            name=name,
            tokens=int(mask.sum()),
            kl=float(kl[mask].mean()),
            top1_agreement=float(top1[mask].mean()),
            top5_agreement=float(top5[mask].mean()),
            shift=_mean(shift, mask.double(), draws),
        )
        for name, mask in masks.items()
        if mask.any()
    ]
    return Agreement(
        top5_agreement=_mean(top5, every, draws),
        shift=_mean(shift, every, draws),
        window_kl=kl.mean(1).tolist(),
        window_top1=top1.mean(1).tolist(),
        window_top5=top5.mean(1).tolist(),
        position_kl=kl.mean(0).tolist(),
        position_shift=shift.mean(0).tolist(),
        classes=classes,
    )


def _mean(values: Tensor, mask: Tensor, draws: Array) -> Metric:
    """Mean of ``values`` over the tokens of ``mask``, both [W, T - 1], with its interval."""
    return ratio((values * mask).sum(1).numpy(), mask.sum(1).numpy(), draws)


def _exp(values: Array) -> Array:
    """exp that ends at the largest float instead of infinity: a destroyed model still has a finite figure."""
    return np.exp(np.minimum(values, math.log(np.finfo(np.float64).max)))
