"""SLEB: drop the layer that is missed least, then the one missed least in what is left, and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostlab.pruning.base import (
    Calibration,
    Criterion,
    CriterionScores,
    Cut,
    Option,
    Options,
    Progress,
    check_finite,
    check_spared,
    layers,
    lowest,
    windows_option,
)

if TYPE_CHECKING:
    from ghostlab.pruning.ablation import Ablation


def score(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """Mean negative log-likelihood without layer l and without those dropped before.

    A dropped layer has the score it was dropped with, every other that of the last round. The published rule
    never drops the first or the last layer; they are scored all the same.
    """
    from ghostlab.pruning.ablation import ablations, predicted

    depth, windows = calib.model.depth, int(options["windows"])
    spared = {0, depth - 1} if options["ends"] == "keep" else set()
    check_spared(depth, count, spared)
    batches = list(ablations(calib, windows))
    values, dropped = [0.0] * depth, []
    for number in range(count):
        step = progress.part(number / count, (number + 1) / count)
        for layer in step.each(list(batches[0].kept), f"Choosing layer {number + 1} of {count}"):
            values[layer] = sum(_nll(batch, layer, step) for batch in batches) / predicted(calib, windows)
        free = [layer for layer in batches[0].kept if layer not in spared]
        best = free[lowest([values[layer] for layer in free], 1)[0]]
        dropped.append(best)
        for batch in batches:
            batch.drop(best)
    check_finite(values)
    words = f"greedy, mean negative log-likelihood of {predicted(calib, windows):,} calibration tokens"
    if spared:
        words += "; never drops the first or the last layer"
    return CriterionScores(layers(depth), tuple(values), words, Cut.of_layers(dropped))


def _nll(batch: Ablation, layer: int, progress: Progress) -> float:
    from ghostlab.model.likelihood import token_nll

    progress.check()
    return float(token_nll(batch.decoder, batch.without(layer), batch.ids).double().sum())


CRITERION = Criterion(
    name="sleb",
    title="SLEB",
    summary="Drops, one after another, the layer without which calibration text stays most likely.",
    formula=r"-\tfrac{1}{T} \sum_t \log p_{\setminus D \cup \{l\}}(x_t \mid x_{<t})"
    r" \text{ given } D \text{ dropped before}",
    unit="layer",
    reads="calibration text",
    cost="1 + n L/2 forward",
    source="SLEB (2402.09025)",
    score=score,
    options={
        "windows": windows_option(4),
        "ends": Option("whether the first and the last layer may go", ("keep", "free"), "keep"),
    },
)
