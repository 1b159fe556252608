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
