"""Metrics of a corpus with bootstrap intervals over its windows."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from torch import Tensor

from ghostlab.model.likelihood import TokenScores
from ghostlab.records import Metric, Scores
from ghostlab.resampling import Array, resamples


def summarise(scores: TokenScores, bytes_per_window: Tensor, seed: int) -> Scores:
    """Perplexity, bits per byte, KL and top-1 agreement of one model.

    Intervals are 95 % percentile bootstrap over windows, because tokens of a window depend on each other. All
    models of a run are resampled with the same draws (``seed``), so that their intervals can be compared.

    Args:
        scores: Per-token figures [W, T - 1].
        bytes_per_window: UTF-8 bytes of the predicted text of each window, [W].
        seed: Seed of the resampling.
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
        perplexity=_ratio(sums["nll"], counts, draws, _exp),
        bits_per_byte=_ratio(sums["nll"], text_bytes, draws, lambda x: x / math.log(2)),
        kl=_ratio(sums["kl"], counts, draws),
        top1_agreement=_ratio(sums["agrees"], counts, draws),
        window_nll=nll.mean(1).tolist(),
        position_nll=nll.mean(0).tolist(),
    )


def _ratio(part: Array, whole: Array, draws: Array, shape: Callable[[Array], Array] = np.asarray) -> Metric:
    """``shape(sum(part) / sum(whole))`` over all windows, with its interval."""
    value = shape(np.asarray(part.sum() / whole.sum()))
    low, high = np.percentile(shape((draws @ part) / (draws @ whole)), [2.5, 97.5])
    return Metric(float(value), float(low), float(high))


def _exp(values: Array) -> Array:
    """exp that ends at the largest float instead of infinity: a destroyed model still has a finite figure."""
    return np.exp(np.minimum(values, math.log(np.finfo(np.float64).max)))
