"""What every recovery method is: a name, a sentence, a formula, and a fit from the moments of one block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ghostlab.calibration.moments import BlockMoments
from ghostlab.model.standin import AffineMap
from ghostlab.spec import RecoverySpec


@dataclass(frozen=True)
class BlockFit:
    """What was fitted for one block.

    Attributes:
        standin: The module that takes the block's place; ``None`` to drop the block plainly.
        ridge: Relative ridge used, or ``None`` where there is none.
        explained_train: Share of the gap ||Y - X||^2 that it explains on the tokens it was fitted on.
        details: Figures that belong to the method, for example its cross-validation curve.
        warnings: Sentences for the user.
    """

    standin: AffineMap | None
    ridge: float | None = None
    explained_train: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


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
        linear: Whether it fits a matrix that rank and ridge apply to.
    """

    name: str
    title: str
    summary: str
    formula: str
    source: str
    fit: Callable[[BlockMoments, RecoverySpec], BlockFit]
    linear: bool = True
