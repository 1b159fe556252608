"""A recovery as it is asked for: ``ghost`` or ``ghost,rank=64,ridge=abs:1e-6,weight=relative``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ghostlab.errors import ConfigError

_RANK = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True)
class RecoverySpec:
    """One recovery to fit: a method of the registry and its options.

    Attributes:
        method: Registry name, for example ``ghost``.
        rank: Keep only this rank of the fitted map; ``None`` for the full map.
        ridge: ``auto`` (cross-validated), a number (relative to the mean diagonal of the Gram matrix), or
            ``abs:NUMBER`` (added to the diagonal as it is, as the Ghosted Layers code does).
        options: Further options of the method, sorted by name; each method lists those it takes.
    """

    method: str
    rank: int | None = None
    ridge: str = "auto"
    options: tuple[tuple[str, str], ...] = field(default=())

    def __str__(self) -> str:
        return ",".join([self.method, *(f"{name}={value}" for name, value in self._given())])

    @property
    def label(self) -> str:
        """Name for tables and legends: the method, and what was asked of it."""
        return ", ".join([self.method, *(f"{name} {value}" for name, value in self._given())])

    def option(self, name: str, default: str) -> str:
        """The value of a further option."""
        return dict(self.options).get(name, default)

    def filled(self, rank: int | None, ridge: str) -> RecoverySpec:
        """This spec with rank and ridge filled in where it names none."""
        return replace(
            self,
            rank=rank if self.rank is None else self.rank,
            ridge=ridge if self.ridge == "auto" else self.ridge,
        )

    def _given(self) -> list[tuple[str, Any]]:
        given: list[tuple[str, Any]] = [] if self.rank is None else [("rank", self.rank)]
        given += [] if self.ridge == "auto" else [("ridge", self.ridge)]
        return [*given, *self.options]

    @classmethod
    def of(cls, method: str, options: Mapping[str, str]) -> RecoverySpec:
        """A spec from a method and all its options as text.

        Raises:
            ConfigError: If an option has no value, or the rank is no whole number.
        """
        for name, value in options.items():
            if not name or not value or (name == "rank" and not _RANK.fullmatch(value)):
                raise ConfigError(
                    f"'{name}={value[:40]}' is no option of a recovery.",
                    "Write for example ghost,rank=64,ridge=1e-4.",
                )
        rest = dict(options)
        rank, ridge = rest.pop("rank", None), rest.pop("ridge", "auto")
        return cls(method, None if rank is None else int(rank), ridge, tuple(sorted(rest.items())))

    @classmethod
    def parse(cls, text: str) -> RecoverySpec:
        """Read ``ghost`` or ``ghost,rank=64,ridge=abs:1e-6``.

        Raises:
            ConfigError: If it is not of that form.
        """
        method, *options = [part.strip() for part in text.split(",")]
        pairs = [option.partition("=") for option in options]
        return cls.of(method, {name.strip(): value.strip() for name, _, value in pairs})


def parse_ridge(text: str) -> tuple[Literal["auto", "relative", "absolute"], float]:
    """Read a ridge setting: ``auto``, ``1e-4`` (relative) or ``abs:1e-6`` (absolute).

    Raises:
        ConfigError: If it is none of these, or negative.
    """
    if text == "auto":
        return "auto", 0.0
    kind: Literal["relative", "absolute"] = "absolute" if text.startswith("abs:") else "relative"
    try:
        value = float(text.removeprefix("abs:"))
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise ConfigError(
            f"Ridge '{text}' is not understood.", "Use auto, a number such as 1e-4, or abs:1e-6."
        )
    return kind, value
