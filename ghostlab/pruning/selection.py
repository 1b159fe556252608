"""Let a criterion choose the cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostlab.errors import ConfigError, CutError
from ghostlab.progress import SILENT, Progress
from ghostlab.pruning import shortgpt, streamline
from ghostlab.pruning.base import Criterion, Scores

if TYPE_CHECKING:
    from ghostlab.calibration.calibrate import Calibration
    from ghostlab.cut import Cut

CRITERIA: dict[str, Criterion] = {
    criterion.name: criterion for criterion in (streamline.CRITERION, shortgpt.CRITERION)
}


def find_criterion(name: str) -> Criterion:
    """The criterion of that name.

    Raises:
        ConfigError: If there is none; lists those there are.
    """
    if name not in CRITERIA:
        raise ConfigError(f"There is no criterion '{name}'.", f"Choose from: {', '.join(CRITERIA)}.")
    return CRITERIA[name]


def score(calib: Calibration, criterion: str, count: int, progress: Progress = SILENT) -> Scores:
    """Scores of every candidate, and the cut that they lead to.

    Args:
        calib: Calibration of the original model; selection never sees held-out text.
        criterion: Registry name.
        count: How many blocks to drop.

    Raises:
        ConfigError: If the criterion is unknown.
        CutError: If fewer than one block would go, or fewer than one would stay.
    """
    entry = find_criterion(criterion)
    depth = calib.model.depth
    if not 0 < count < depth:
        raise CutError(
            f"{count} of {depth} blocks cannot be dropped.", f"Choose a count between 1 and {depth - 1}."
        )
    return entry.score(calib, count, progress)


def select(calib: Calibration, criterion: str, count: int, progress: Progress = SILENT) -> Cut:
    """The cut of ``count`` blocks that ``criterion`` chooses; raises as :func:`score` does."""
    return score(calib, criterion, count, progress).cut
