"""Perplexity, one-shot: the layers that are missed least when each is dropped alone."""

import math

from ghostlab.pruning.base import (
    Calibration,
    Criterion,
    CriterionScores,
    Options,
    Progress,
    score_layers,
    windows_option,
)


def score(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """Perplexity of calibration text without layer l, for every l, first and last included."""
    from ghostlab.model.likelihood import token_nll
    from ghostlab.pruning.ablation import predicted, steps

    windows = int(options["windows"])
    sums = [0.0] * calib.model.depth
    for batch, step in steps(calib, windows, progress):
        for layer in step.each(range(calib.model.depth), "Dropping each layer in turn"):
            nll = token_nll(batch.decoder, batch.without(layer), batch.ids)
            sums[layer] += float(nll.double().sum())
    tokens = predicted(calib, windows)
    values = [math.exp(min(total / tokens, _LARGEST)) for total in sums]
    return score_layers(values, count, f"perplexity of {tokens:,} calibration tokens without the layer")


_LARGEST = 700.0
"""Where exp still is a number; no model is as bad as that."""

CRITERION = Criterion(
    name="perplexity",
    title="Perplexity (one-shot)",
    summary="Drops the layers without which, each alone, calibration text stays most likely.",
    formula=r"\exp\Bigl(-\tfrac{1}{T} \sum_t \log p_{\setminus l}(x_t \mid x_{<t})\Bigr)",
    unit="layer",
    reads="calibration text",
    cost="1 + L/2 forward",
    source="Shortened LLaMA (2402.02834)",
    score=score,
    options={"windows": windows_option(16)},
)
