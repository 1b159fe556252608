"""Named entries in the order in which they are offered: built-ins first, then plug-ins of installed packages.

Nothing is imported before it is asked for. A package offers entries of its own through entry points of the
registry's group::

    [project.entry-points."ghostlab.operators"]
    halfway = "my_package.halfway:OPERATOR"

A plug-in that cannot be used is left out and named in :attr:`Registry.problems`; it never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, TypeVar

from ghostlab.errors import ConfigError


class Entry(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """What it is asked for by."""


T = TypeVar("T", bound=Entry)


class Registry(Mapping[str, T]):
    """Entries by name.

    Args:
        kind: What an entry is called in messages, for example ``operator``.
        type_: The class of an entry.
        builtin: Where the built-in entries are, ``module:attribute``; an attribute is an entry or a tuple.
        group: Group of the entry points through which packages add entries; none if they cannot.
    """

    def __init__(self, kind: str, type_: type[T], builtin: Iterable[str], group: str = "") -> None:
        self.kind = kind
        self.type = type_
        self.builtin = tuple(builtin)
        self.group = group

    def __getitem__(self, name: str) -> T:
        return self._loaded[0][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded[0])

    def __len__(self) -> int:
        return len(self._loaded[0])

    def find(self, name: str) -> T:
        """The entry of that name.

        Raises:
            ConfigError: If there is none; lists those there are.
        """
        if name not in self:
            raise ConfigError(f"There is no {self.kind} '{name}'.", f"Choose from: {', '.join(self)}.")
        return self[name]

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for each plug-in that was left out."""
        return self._loaded[1]

    @cached_property
    def _loaded(self) -> tuple[dict[str, T], tuple[str, ...]]:
        entries = {entry.name: entry for place in self.builtin for entry in _load(place)}
        problems = []
        points = entry_points(group=self.group) if self.group else ()
        for point in sorted(points, key=lambda point: point.name):
            try:
                entries |= self._checked(point, entries)
            except (Exception, SystemExit) as error:  # whatever somebody else's module does
                package = f" of package '{point.dist.name}'" if point.dist else ""
                reason = error if isinstance(error, _Unfit) else f"{type(error).__name__}: {error}"
                words = " ".join(str(reason).split())[:200].rstrip(".")
                problems.append(f"The {self.kind} plug-in '{point.name}'{package} was left out: {words}.")
        return entries, tuple(problems)

    def _checked(self, point: EntryPoint, known: Mapping[str, T]) -> dict[str, T]:
        """The entries of a plug-in; all of them or none."""
        found: dict[str, T] = {}
        for entry in _entries(point.load()):
            if not isinstance(entry, self.type):
                raise _Unfit(f"{point.value} is {type(entry).__name__}, not {self.type.__name__}")
            if not re.fullmatch(r"[\w.-]+", entry.name):
                raise _Unfit(f"the name '{entry.name}' is not made of letters, digits, '_', '-' and '.'")
            if entry.name in known or entry.name in found:
                raise _Unfit(f"the name '{entry.name}' is taken")
            found[entry.name] = entry
        return found


class _Unfit(Exception):
    """Why a plug-in that can be imported cannot be used."""


PLUGGABLE = (
    "ghostlab.recovery.registry:OPERATORS",
    "ghostlab.pruning.registry:CRITERIA",
    "ghostlab.text.corpora:CORPORA",
)
"""The registries that packages can add to."""


def problems() -> list[str]:
    """One sentence for each plug-in of any registry that was left out."""
    registries = (registry for place in PLUGGABLE for registry in _load(place))
    return [problem for registry in registries for problem in registry.problems]


def markdown_table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table for the documentation, a line each for header, rule and rows."""
    header = list(header)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows))


def _load(place: str) -> tuple[Any, ...]:
    return _entries(EntryPoint("", place, "").load())


def _entries(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
