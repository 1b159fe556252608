"""Recoveries and criteria in text form: ``ghost,rank=64``, ``shortgpt,convention=flat``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ghostlab.errors import ConfigError

_RANK = re.compile(r"[0-9]{1,6}")
_NUMBER = re.compile(r"[0-9]{1,9}")
Group = Literal["baseline", "constrained", "merged", "map", "layer"]
GROUPS: dict[Group, str] = {
    "baseline": "Baselines",
    "constrained": "Least squares with a constraint",
    "merged": "No parameter added",
    "map": "Maps",
    "layer": "One layer kept",
}
"""Kinds of recovery, as people read them, in the order in which they are offered."""


@dataclass(frozen=True)
class Option:
    """An option of a method or criterion.

    Attributes:
        help: What it decides.
        choices: The values it takes; none for any text.
        least: Set for an option that is a whole number: the smallest one.
        number: Set for an option that is a positive number: its default, whole or not.
        most: The greatest such number, if there is a bound.
    """

    help: str
    choices: tuple[str, ...] = ()
    default: str = ""
    least: int | None = None
    number: int | float | None = None
    most: int | float | None = None

    def remedy(self, value: str) -> str:
        """What would be right in the place of ``value``; empty if it is."""
        if self.choices and value not in self.choices:
            return f"Choose from: {', '.join(self.choices)}."
        if self.least is not None and not (_NUMBER.fullmatch(value) and int(value) >= self.least):
            return f"Use a whole number of at least {self.least}."
        if self.number is not None and not _positive(value, type(self.number), self.most):
            kind = "whole number" if isinstance(self.number, int) else "number"
            bound = "" if self.most is None else f" up to {self.most}"
            return f"Use a positive {kind}{bound}, for example {self.number}."
        return ""


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
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return ",".join([self.method, *map("=".join, self.given.items())])

    @property
    def label(self) -> str:
        """Name for tables and legends: the method and its options."""
        return ", ".join([self.method, *map(" ".join, self.given.items())])

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

    @property
    def given(self) -> dict[str, str]:
        """Every option that is given, rank and ridge included, as text."""
        rank = {} if self.rank is None else {"rank": str(self.rank)}
        ridge = {} if self.ridge == "auto" else {"ridge": self.ridge}
        return {**rank, **ridge, **dict(self.options)}

    @classmethod
    def parse(cls, text: str) -> RecoverySpec:
        """Read ``ghost`` or ``ghost,rank=64,ridge=abs:1e-6``.

        Raises:
            ConfigError: If it is not of that form, or the rank is not a whole number.
        """
        method, options = _split(text, "ghost,rank=64,ridge=1e-4")
        rank, ridge = options.pop("rank", None), options.pop("ridge", "auto")
        return cls(method, None if rank is None else int(rank), ridge, tuple(sorted(options.items())))

    @classmethod
    def parse_all(cls, text: str) -> tuple[RecoverySpec, ...]:
        """Read several, separated by lines, spaces, commas or semicolons: ``ghost, rank=64  affine``.

        A word with ``=`` is an option of the recovery before it.

        Raises:
            ConfigError: If one is not of that form.
        """
        words: list[str] = []
        for word in re.split(r"[\s,;]+", re.sub(r"\s*=\s*", "=", text)):
            if "=" in word and words:
                words[-1] += f",{word}"
            elif word:
                words.append(word)
        if words and "=" in words[0].partition(",")[0]:
            raise ConfigError(
                f"'{words[0][:40]}' is an option without a recovery.", "Write for example ghost,rank=64."
            )
        return tuple(map(cls.parse, words))


@dataclass(frozen=True)
class CriterionSpec:
    """A criterion of the registry and its options, sorted by name; text form as that of a recovery."""

    name: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return ",".join([self.name, *map("=".join, self.options)])

    @classmethod
    def parse(cls, text: str) -> CriterionSpec:
        """Read ``shortgpt`` or ``shortgpt,convention=flat``.

        Raises:
            ConfigError: If it is not of that form.
        """
        criterion, options = _split(text, "shortgpt,convention=flat")
        return cls(criterion, tuple(sorted(options.items())))


def _split(text: str, example: str) -> tuple[str, dict[str, str]]:
    """``NAME,option=value,...`` as name and options."""
    name, *words = [part.strip() for part in text.split(",")]
    pairs = [[part.strip() for part in word.partition("=")] for word in words]
    for option, _, value in pairs:
        if not option or not value or (option == "rank" and not _RANK.fullmatch(value)):
            raise ConfigError(f"Unknown option '{option}={value[:40]}'.", f"Write for example {example}.")
    return name, {option: value for option, _, value in pairs}


def check_options(owner: str, declared: Mapping[str, Option], given: Mapping[str, str]) -> None:
    """Raise ConfigError if ``given`` names an option that ``owner`` lacks or a value it does not take."""
    for name, value in given.items():
        if name not in declared:
            has = f"It has: {', '.join(declared)}." if declared else "It has none."
            raise ConfigError(f"'{owner}' has no option '{name}'.", has)
        remedy = declared[name].remedy(value)
        if remedy:
            raise ConfigError(f"'{name}={value[:40]}' is not valid for '{owner}'.", remedy)


def _positive(text: str, kind: type[int] | type[float], most: float | None) -> bool:
    try:
        value = kind(text)
        return 0 < value < math.inf and (most is None or value <= most)
    except ValueError:
        return False


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
