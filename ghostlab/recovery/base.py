"""What every recovery method is: a name, a sentence, a formula, its options, and a fit of one block."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ghostlab.calibration.moments import Weighting
from ghostlab.errors import ConfigError
from ghostlab.model.standin import StandIn
from ghostlab.recovery.data import FitData
from ghostlab.spec import RecoverySpec


@dataclass(frozen=True)
class BlockFit:
    """What was fitted for one block.

    Attributes:
        standin: What takes the block's place; ``None`` to drop the block plainly.
        ridge: Relative ridge used, or ``None`` where there is none.
        explained_train: Share of the gap ||Y - X||^2 that it explains on the calibration tokens.
        first_apart: Whether first tokens were fitted apart, so that the map is for all others.
        details: Figures that belong to the method, for example its cross-validation curve.
        warnings: Sentences for the user.
    """

    standin: StandIn | None
    ridge: float | None = None
    explained_train: float = 0.0
    first_apart: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    """A further option of a method.

    Attributes:
        help: What it decides.
        choices: The values it takes, the default first; none where it is a number.
        number: What kind of positive number it is, and its default; ``None`` where it is none.
    """

    help: str
    choices: tuple[str, ...] = ()
    number: int | float | None = None

    def check(self, name: str, value: str) -> None:
        """Raise ConfigError if ``value`` is not among the choices, or is no such number."""
        if self.choices and value not in self.choices:
            raise ConfigError(f"'{name}={value}' is not known.", f"Choose from: {', '.join(self.choices)}.")
        if self.number is None:
            return
        try:
            known = 0 < type(self.number)(value) < math.inf
        except ValueError:
            known = False
        if not known:
            kind = "whole number" if isinstance(self.number, int) else "number"
            raise ConfigError(f"'{name}={value[:40]}' is no positive {kind}.", f"Default: {self.number}.")


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


def weighting(spec: RecoverySpec) -> Weighting:
    """How tokens count, by the option ``weight``."""
    return cast("Weighting", spec.option("weight", "none"))


@dataclass(frozen=True)
class Method:
    """One entry of the registry.

    Attributes:
        name: Registry name, as in ``--recover NAME``.
        title: Name for people.
        summary: One sentence on what it does.
        formula: The same in LaTeX.
        source: Where it comes from.
        fit: Fits one block.
        adds: Parameters added per block, as a formula in C (width) and r (rank).
        options: What can be asked of it, by name.
    """

    name: str
    title: str
    summary: str
    formula: str
    source: str
    fit: Callable[[FitData, RecoverySpec], BlockFit]
    adds: str = "C²"
    options: Mapping[str, Option] = field(default_factory=dict)

    def check(self, spec: RecoverySpec) -> None:
        """Raise ConfigError if the spec asks for what this method does not have."""
        asked = {**({} if spec.rank is None else {"rank": str(spec.rank)}), **dict(spec.options)}
        if spec.ridge != "auto":
            asked["ridge"] = spec.ridge
        for name, value in asked.items():
            if name not in self.options:
                has = f"It has: {', '.join(self.options)}." if self.options else "It has none."
                raise ConfigError(f"'{self.name}' has no option '{name}'.", has)
            self.options[name].check(name, value)
