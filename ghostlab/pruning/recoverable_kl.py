"""Recoverable KL: of the blocks that a map replaces best, the one after which predictions change least."""

import math

from ghostlab.pruning.base import (
    Block,
    Calibration,
    Criterion,
    CriterionScores,
    Cut,
    Option,
    Options,
    Progress,
    check_finite,
    lowest,
    starts,
    windows_option,
)


def score(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """KL to the original after recovery, for the best few blocks by recoverable error; NaN for the others."""
    from ghostlab.pruning.affine_fit import errors_left, recovered_kl, split_fit

    blocks = [Block(start, start + count) for start in starts(calib.model.depth, count)]
    errors = errors_left(calib, blocks, progress.part(0.0, 0.6))
    check_finite(errors)
    shortlist = [blocks[index] for index in sorted(lowest(errors, int(options["candidates"])))]
    test = calib.folds - 1
    maps = {
        block: split_fit(moments, test if test else None)
        for block, moments in calib.each_moments(shortlist, progress.part(0.6, 0.7), weighting="relative")
    }
    sample = calib.some(int(options["windows"]), fold=test)
    found = recovered_kl(sample, maps, progress.part(0.7, 1.0))
    check_finite(list(found.values()))
    best = min(shortlist, key=found.__getitem__)
    words = f"KL in nats per token on {sample.windows.count} windows " + (
        "that the maps were not fitted on" if test else "that the maps were fitted on"
    )
    words += f"; for the {len(shortlist)} blocks with the least recoverable error"
    values = tuple(found.get(block, math.nan) for block in blocks)
    return CriterionScores(tuple(blocks), values, words, Cut((best,)))


CRITERION = Criterion(
    name="recoverable_kl",
    title="Recoverable KL",
    summary="Of the blocks that a map replaces best, drops the one that then changes predictions least.",
    formula=r"\mathbb{E}_t\, \mathrm{KL}(p \Vert \hat p) \text{ after recovery}",
    unit="block",
    reads="moments before and after every block; calibration text",
    cost="2 forward + k/2 forward for k candidates",
    source="Ghostlab",
    score=score,
    options={
        "candidates": Option("blocks with the least recoverable error that are run", default="6", least=1),
        "windows": windows_option(8),
    },
)
