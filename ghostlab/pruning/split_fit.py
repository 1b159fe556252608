"""What an affine map with first tokens apart leaves of a block, from moments alone.

Other tokens with massive activations are left out of the fit as well: two of them among 16,000 raise the
error on all others from 0.32 to 0.99 where a block of SmolLM2 gives birth to them, or force a ridge that
leaves 0.43.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.moments import BlockMoments, total
from ghostlab.calibration.solve import choose_ridge, cross_validate, solve
from ghostlab.cut import Block
from ghostlab.model.standin import AffineMap
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

    Ordinary tokens are neither the first of a window nor massive.
    """
    ordinary = moments.ordinary
    if len(ordinary) > 1:
        left = float(cross_validate(ordinary, ordinary, centre=True).min())
    else:
        fitted = split_fit(moments)
        assert fitted.bias is not None
        left = total(ordinary).residual(fitted.matrix(), fitted.bias.double())
    power = total(ordinary).state_power
    return math.sqrt(max(left, 0.0) / power) if power else 0.0


def split_fit(moments: BlockMoments, without: int | None = None) -> AffineMap:
    """Affine on ordinary tokens, the mean change on first ones, fitted ``without`` the windows of a fold."""
    folds = [fold for index, fold in enumerate(moments.ordinary) if index != without]
    ridge = choose_ridge("auto", folds, centre=True)
    whole = total(folds)
    seen = whole.centred()
    matrix = solve(seen.gram, seen.cross, ridge.added)
    return AffineMap(
        matrix,
        bias=(whole.change - whole.x @ matrix) / whole.count,
        first=moments.first_changes(without=without).double().mean(0),
    )
