"""A recovery as it is asked for: ``ghost`` or ``ghost,rank=64,ridge=abs:1e-6``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
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
    """

    method: str
    rank: int | None = None
    ridge: str = "auto"

    def __str__(self) -> str:
        options = [] if self.rank is None else [f"rank={self.rank}"]
        options += [] if self.ridge == "auto" else [f"ridge={self.ridge}"]
        return ",".join([self.method, *options])

    @classmethod
    def parse(cls, text: str) -> RecoverySpec:
        """Read ``ghost`` or ``ghost,rank=64,ridge=abs:1e-6``.

        Raises:
            ConfigError: If an option is unknown or not a value of its kind.
        """
        method, *options = [part.strip() for part in text.split(",")]
        values: dict[str, Any] = {}
        for option in options:
            name, _, value = option.partition("=")
            if name == "rank" and _RANK.fullmatch(value):
                values["rank"] = int(value)
            elif name == "ridge" and value:
                values["ridge"] = value
            else:
                raise ConfigError(
                    f"'{option}' is no option of a recovery.", "Write for example ghost,rank=64,ridge=1e-4."
                )
        return cls(method, **values)


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
