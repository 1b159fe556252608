"""What a fitted map does to channels and tokens: plain frozen records, part of an operator's report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AliasChoices, Field


@dataclass(frozen=True)
class Excitement:
    """A token and how far a map moves it along a direction.

    Attributes:
        before: The text just before it.
        token: Its own text.
        value: The movement, in the units of the state.
        massive: Whether it carries massive activations.
    """

    before: str
    token: str
    value: float
    massive: bool


@dataclass(frozen=True)
class Direction:
    """One of the directions into which a map moves the states most.

    Attributes:
        share: Its share of ||X M||_F^2 on the calibration tokens.
        writes: Channels that it points to most, each with its share of the direction's square.
        reads: Channels that it listens to most: share of u_c^2 mean(x_c^2), u = M v.
        tokens: The held-out tokens that are moved along it farthest.
    """

    share: float
    writes: list[tuple[int, float]]
    reads: list[tuple[int, float]]
    tokens: list[Excitement] = field(default_factory=list)


@dataclass(frozen=True)
class Points:
    """States of some held-out tokens in the plane of two principal components: (first, second) per token."""

    before: list[tuple[float, float]]
    after: Annotated[list[tuple[float, float]], Field(validation_alias=AliasChoices("after", "behind"))]
    recovered: list[tuple[float, float]]


@dataclass(frozen=True)
class StatePlane:
    """States before a block, after it, and recovered, in one plane.

    Attributes:
        variance: Share of the variance of ordinary tokens' states that each component holds.
        ordinary: Tokens without massive activations; the plane was fitted to them alone.
        massive: Tokens with massive activations.
    """

    variance: tuple[float, float]
    ordinary: Points
    massive: Points


@dataclass(frozen=True)
class SymmetrySplit:
    """M = S + A, symmetric and antisymmetric part, and what a symmetric operator could have reached.

    Attributes:
        frobenius: ``symmetric`` and ``antisymmetric`` share of ||M||_F^2; they add up to 1.
        activation: ||X S||^2 and ||X A||^2 over ||X M||^2 on the calibration tokens; S and A may cancel,
            so these can exceed 1.
        explained: explained share of the gap, held-out, of the operator itself.
        explained_symmetric: the same for the best symmetric operator (Lyapunov).
        relative_error, relative_error_symmetric: the same two as relative errors.
    """

    frobenius: dict[str, float]
    activation: dict[str, float]
    explained: float
    explained_symmetric: float
    relative_error: float
    relative_error_symmetric: float


@dataclass(frozen=True)
class RankCurve:
    """Error against rank for a truncated factorisation; ``ranks`` ascending, 0 = plain drop (plus bias)."""

    ranks: list[int]
    explained: list[float]
    explained_train: list[float]


@dataclass(frozen=True)
class OperatorReport:
    """What the fitted map of one block is. Heat maps are means over square tiles of ``tile`` channels."""

    block: tuple[int, int]
    split: SymmetrySplit
    symmetric_map: list[list[float]]
    antisymmetric_map: list[list[float]]
    tile: int
    eigenvalues_real: list[float]
    eigenvalues_imag: list[float]
    singular_values: list[float]
    cumulative_energy: list[float]
    truncated_svd: RankCurve
    reduced_rank: RankCurve | None = None
    bias_norm: float = 0.0
    directions: list[Direction] = field(default_factory=list)
    plane: StatePlane | None = None
    notes: list[str] = field(default_factory=list)
    """What was left out or estimated, and why."""
    weight: str = "none"
    """How tokens counted, in the fit and in every share and error above."""
    first_apart: bool = False
    """Whether first tokens are not among them."""
