"""What every operator is: a name, a sentence, a formula, its options, and a fit of one block.

This module and the files of the operators load no torch: an operator imports what it computes with inside its
``fit``, so that all of them can be listed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ghostlab.recovery.data import FitData
from ghostlab.spec import Group, Option, RecoverySpec, check_options

if TYPE_CHECKING:
    from ghostlab.calibration.moments import Weighting
    from ghostlab.model.replacement import Replacement

__all__ = [
    "FACTOR",
    "LEAST_SQUARES",
    "LOW_RANK",
    "RANK",
    "RIDGE",
    "WEIGHT",
    "WEIGHTED",
    "BlockFit",
    "FitData",
    "Operator",
    "Option",
    "RecoverySpec",
]


@dataclass(frozen=True)
class BlockFit:
    """What was fitted for one block.

    Attributes:
        replacement: What takes the block's place; ``None`` to drop the block plainly.
        ridge: Relative ridge used, or ``None`` where there is none.
        explained_train: Share of the gap ||Y - X||^2 that it explains on the calibration tokens.
        first_apart: Whether first tokens were fitted apart, so that the map is for all others.
        details: Figures that belong to the operator, for example its cross-validation curve.
        warnings: Sentences for the user.
    """

    replacement: Replacement | None
    ridge: float | None = None
    explained_train: float = 0.0
    first_apart: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


RIDGE = Option("auto (cross-validated), a number relative to the mean diagonal, or abs:NUMBER")
RANK = Option("keep only this rank of the map")
FACTOR = Option(
    "how a rank is taken: reduced_rank is best for the activations, truncated_svd for the matrix (SHIFT-LLM)",
    ("reduced_rank", "truncated_svd"),
)
WEIGHT = Option(
    "how tokens count: all alike, or by the inverse mean square of the target", ("none", "relative")
)
LOW_RANK: Mapping[str, Option] = {"rank": RANK, "factor": FACTOR}
WEIGHTED: Mapping[str, Option] = {"weight": WEIGHT}
LEAST_SQUARES: Mapping[str, Option] = {**LOW_RANK, "ridge": RIDGE, **WEIGHTED}


@dataclass(frozen=True)
class Operator:
    """One entry of the registry.

    Attributes:
        name: Registry name, as in ``--recover NAME``.
        title: Name for people.
        summary: One sentence on what it does.
        formula: The same in LaTeX.
        source: Where it comes from.
        group: Which kind of operator it is: where the app lists it.
        fit: Fits one block.
        adds: Parameters added per block, as a formula in C (width) and r (rank).
        options: Its options by name.
        expresses: What it can do to a state, in a few words.
    """

    name: str
    title: str
    summary: str
    formula: str
    source: str
    group: Group
    fit: Callable[[FitData, RecoverySpec], BlockFit]
    adds: str = "C²"
    options: Mapping[str, Option] = field(default_factory=dict)
    expresses: str = ""

    def weighting(self, spec: RecoverySpec) -> Weighting:
        """How tokens count in this fit: by the option ``weight``, whose first choice is the default."""
        if "weight" not in self.options:
            return "none"
        return cast("Weighting", spec.option("weight", self.options["weight"].choices[0]))

    def check(self, spec: RecoverySpec) -> None:
        """Raise ConfigError for an option or value that this operator does not have."""
        check_options(self.name, self.options, spec.given)
