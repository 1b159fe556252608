"""The criteria, in the order in which they are offered; a new one is a file and a line here."""

from __future__ import annotations

from ghostlab.errors import CutError, memory_errors
from ghostlab.progress import SILENT
from ghostlab.pruning.base import Calibration, Criterion, CriterionScores, Cut, Options, Progress
from ghostlab.registry import Registry, markdown_table
from ghostlab.spec import CriterionSpec

CRITERIA = Registry(
    "criterion",
    Criterion,
    (
        "ghostlab.pruning.similarity:STREAMLINE",
        "ghostlab.pruning.similarity:SHORTGPT",
        "ghostlab.pruning.similarity:ANGULAR",
        "ghostlab.pruning.recoverable:CRITERION",
        "ghostlab.pruning.recoverable_kl:CRITERION",
        "ghostlab.pruning.perplexity:CRITERION",
        "ghostlab.pruning.sleb:CRITERION",
        "ghostlab.pruning.js_divergence:CRITERION",
        "ghostlab.pruning.taylor:PLAIN",
        "ghostlab.pruning.taylor:PLUS",
        "ghostlab.pruning.magnitude:L1",
        "ghostlab.pruning.magnitude:L2",
        "ghostlab.pruning.reverse_order:CRITERION",
        "ghostlab.pruning.random:CRITERION",
    ),
    group="ghostlab.criteria",
)


def resolve(asked: str | CriterionSpec) -> tuple[Criterion, Options]:
    """The criterion of ``shortgpt`` or ``shortgpt,convention=flat``, and all its options.

    Raises:
        ConfigError: If the criterion is unknown or an option does not apply to it.
    """
    spec = asked if isinstance(asked, CriterionSpec) else CriterionSpec.parse(asked)
    criterion = CRITERIA.find(spec.name)
    return criterion, criterion.settle(dict(spec.options))


def score(
    calib: Calibration, criterion: str | CriterionSpec, count: int, progress: Progress = SILENT
) -> CriterionScores:
    """Scores of every candidate, and the cut that they lead to.

    Args:
        calib: Calibration of the original model; selection never sees held-out text.
        criterion: Registry name, with options if any: ``perplexity,windows=8``.
        count: How many layers to drop.
        progress: Progress callback; raises Cancelled within a batch.

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
    with memory_errors():
        return entry.score(calib, count, options, progress)


def select(
    calib: Calibration, criterion: str | CriterionSpec, count: int, progress: Progress = SILENT
) -> Cut:
    """The cut of ``count`` layers that ``criterion`` chooses; raises as :func:`score` does."""
    return score(calib, criterion, count, progress).cut


def table() -> str:
    """The table of docs/criteria.md."""
    return markdown_table(
        ("name", "score", "unit", "reads", "cost", "options", "source"),
        (
            (f"`{c.name}`", _formula(c), c.unit, c.reads, c.cost, _options(c) or "none", c.source)
            for c in CRITERIA.values()
        ),
    )


def _formula(criterion: Criterion) -> str:
    return f"${criterion.formula}$".replace("|", r"\vert{}")  # a bar would end the cell


def _options(criterion: Criterion) -> str:
    return "; ".join(
        f"`{name}` = {', '.join(option.choices) or 'number'} ({option.default})"
        for name, option in criterion.options.items()
    )
