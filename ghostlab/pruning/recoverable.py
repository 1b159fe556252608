"""Recoverable: the block that a linear map replaces best, whatever dropping it plainly would do."""

from ghostlab.pruning.base import (
    Block,
    Calibration,
    Criterion,
    CriterionScores,
    Options,
    Progress,
    score_blocks,
    starts,
)


def score(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """Held-out relative error that ghost_sink leaves on ordinary tokens, for every start s."""
    from ghostlab.pruning.affine_fit import errors_left

    blocks = [Block(start, start + count) for start in starts(calib.model.depth, count)]
    return score_blocks(errors_left(calib, blocks, progress), count, tokens_in_words(calib))


def tokens_in_words(calib: Calibration) -> str:
    """On which tokens the error is taken."""
    tried = f"cross-validated over {calib.folds} folds" if calib.folds > 1 else "on the fitted tokens"
    return f"relative error on tokens that are neither first nor massive, {tried}"


CRITERION = Criterion(
    name="recoverable",
    title="Recoverable error",
    summary="Drops the contiguous block that an affine map, with first tokens apart, replaces best.",
    formula=r"\sqrt{\mathbb{E}_t\, \lVert \hat y_t - y_t \rVert^2 / \lVert y_t \rVert^2} "
    r"\text{ held out, ordinary tokens, } \hat y = x + x M + b",
    unit="block",
    reads="moments before and after every block",
    cost="1 forward",
    source="Ghostlab",
    score=score,
)
