"""Let a criterion choose the cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostlab.calibration.capture import LESS_MEMORY
from ghostlab.errors import ConfigError, CutError, memory_errors
from ghostlab.progress import SILENT, Progress
from ghostlab.pruning import (
    angular,
    js_divergence,
    magnitude_l1,
    magnitude_l1_plus,
    magnitude_l2,
    magnitude_l2_plus,
    perplexity,
    random,
    recoverable,
    recoverable_kl,
    reverse_order,
    shortgpt,
    sleb,
    streamline,
    taylor,
    taylor_plus,
)
from ghostlab.pruning.base import Criterion, CriterionScores, Options
from ghostlab.spec import CriterionSpec

if TYPE_CHECKING:
    from ghostlab.calibration.calibrate import Calibration
    from ghostlab.cut import Cut

CRITERIA: dict[str, Criterion] = {
    criterion.name: criterion
    for criterion in (
        streamline.CRITERION,
        shortgpt.CRITERION,
        angular.CRITERION,
        recoverable.CRITERION,
        recoverable_kl.CRITERION,
        perplexity.CRITERION,
        sleb.CRITERION,
        js_divergence.CRITERION,
        taylor.CRITERION,
        taylor_plus.CRITERION,
        magnitude_l1.CRITERION,
        magnitude_l1_plus.CRITERION,
        magnitude_l2.CRITERION,
        magnitude_l2_plus.CRITERION,
        reverse_order.CRITERION,
        random.CRITERION,
    )
}
"""The criteria, in the order in which they are offered."""


def find_criterion(name: str) -> Criterion:
    """The criterion of that name.

    Raises:
        ConfigError: If there is none; lists those there are.
    """
    if name not in CRITERIA:
        raise ConfigError(f"There is no criterion '{name}'.", f"Choose from: {', '.join(CRITERIA)}.")
    return CRITERIA[name]


def resolve(asked: str | CriterionSpec) -> tuple[Criterion, Options]:
    """The criterion that is asked for, as ``shortgpt`` or ``shortgpt,convention=flat``, and all its options.

    Raises:
        ConfigError: If the criterion is unknown or an option does not apply to it.
    """
    spec = asked if isinstance(asked, CriterionSpec) else CriterionSpec.parse(asked)
    criterion = find_criterion(spec.name)
    return criterion, criterion.settle(dict(spec.options))


def score(
    calib: Calibration, criterion: str | CriterionSpec, count: int, progress: Progress = SILENT
) -> CriterionScores:
    """Scores of every candidate, and the cut that they lead to.

    Args:
        calib: Calibration of the original model; selection never sees held-out text.
        criterion: Registry name, with options if any: ``perplexity,windows=8``.
        count: How many layers to drop.
        progress: Told how far it is; a stop takes effect within a batch.

    Raises:
        ConfigError: If the criterion is unknown or an option does not apply to it.
        CutError: If fewer than one layer would go, or fewer than one would stay, or the criterion spares too
            many.
    """
    entry, options = resolve(criterion)
    depth = calib.model.depth
    if not 0 < count < depth:
        raise CutError(
            f"{count} of {depth} layers cannot be dropped.", f"Choose a count between 1 and {depth - 1}."
        )
    with memory_errors(LESS_MEMORY):
        return entry.score(calib, count, options, progress)


def select(
    calib: Calibration, criterion: str | CriterionSpec, count: int, progress: Progress = SILENT
) -> Cut:
    """The cut of ``count`` layers that ``criterion`` chooses; raises as :func:`score` does."""
    return score(calib, criterion, count, progress).cut
