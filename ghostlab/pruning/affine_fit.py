"""What an affine map with first tokens apart leaves of a block: error from moments, KL of predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ghostlab.calibration.activations import Activations
from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.moments import BlockMoments, total
from ghostlab.calibration.solve import cross_validate, fit_affine
from ghostlab.cut import Block, Cut
from ghostlab.model.likelihood import score_tokens
from ghostlab.model.replacement import AffineMap, Replacement
from ghostlab.progress import Progress


def errors_left(calib: Calibration, blocks: Sequence[Block], progress: Progress) -> list[float]:
    """Root mean square of ||y' - y|| / ||y|| over held-out ordinary tokens after the split fit, by block."""
    found = []
    for _, moments in calib.each_moments(blocks, progress, weighting="relative"):
        progress.check()
        found.append(error_left(moments))
    return found


def error_left(moments: BlockMoments) -> float:
    """The same from a block's relative moments, cross-validated; with one fold only, on the fitted tokens.

    The map is fitted on all tokens but the first of each window, and tested on those of them that carry no
    massive activations.
    """
    folds, ordinary = moments.folds(first=False), moments.ordinary
    if len(folds) > 1:
        left = float(cross_validate(folds, ordinary, centre=True).min())
    else:
        fitted = split_fit(moments)
        assert fitted.bias is not None
        left = total(ordinary).residual(fitted.matrix(), fitted.bias.double())
    power = total(ordinary).state_power
    return math.sqrt(max(left, 0.0) / power) if power else 0.0


def split_fit(moments: BlockMoments, without: int | None = None) -> AffineMap:
    """The map of ``ghost_sink`` at its default options, fitted ``without`` the windows of a fold."""
    folds = [fold for index, fold in enumerate(moments.folds(first=False)) if index != without]
    matrix, bias, _ = fit_affine(folds, bias=True)
    return AffineMap(matrix, bias=bias, first=moments.first_changes(without=without).double().mean(0))


def recovered_kl(
    sample: Activations, maps: Mapping[Block, AffineMap], progress: Progress
) -> dict[Block, float]:
    """Mean KL(original || recovered) per predicted token with each block replaced by its map, in nats."""
    model = sample.model
    variants = {
        block: model.without(Cut((block,)), {block: Replacement(map_)}) for block, map_ in maps.items()
    }
    sums = dict.fromkeys(maps, 0.0)
    message = "Comparing predictions after recovery"
    for batch in sample.batches({model.depth, *(block.start for block in maps)}, progress, message):
        reference = model.decoder.run_tail(batch.trace.states[model.depth])
        for block, variant in variants.items():
            progress.check()
            finals = [reference, variant.resume(batch.trace)]
            _, scores = score_tokens([model.decoder, variant.decoder], finals, batch.ids)
            sums[block] += float(scores.kl.double().sum())
    return {block: total / (sample.windows.count * sample.windows.predicted) for block, total in sums.items()}
