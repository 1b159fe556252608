"""Data sets of the Hugging Face hub, streamed: ``hf:dataset/config:split:column``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pkgutil import iter_modules
from typing import Any

from ghostlab.errors import GhostlabError, TextError
from ghostlab.storage import local_path
from ghostlab.text.files import pick_column

PREFIX = "hf:"
_FORM = "Write hf:org/name:split, hf:org/name/config:split or hf:org/name/config:split:column."
_SOURCE = re.compile(r"(?P<name>\w[\w.-]*(/\w[\w.-]*){0,2})(:(?P<split>[\w.-]+)(:(?P<column>[^:]+))?)?")


@dataclass(frozen=True)
class HubText:
    """Which column of which split of which data set.

    Attributes:
        name: Data set and configuration as they were written, ``org/name/config``.
        column: ``None`` to find it.
        revision: Branch or tag, for example the hub's own conversion of a script to Parquet.
        files: Which file of the data set holds the split, where its configurations do not tell.
    """

    name: str
    split: str
    column: str | None = None
    revision: str | None = None
    files: str | None = None

    @classmethod
    def parse(cls, source: str) -> HubText:
        """Read ``hf:org/name/config:split:column``; configuration, split (train) and column are optional.

        Raises:
            TextError: If it has another form.
        """
        match = _SOURCE.fullmatch(source.removeprefix(PREFIX))
        if match is None:
            raise TextError(f"'{source}' does not name a data set.", _FORM)
        return cls(match["name"], match["split"] or "train", match["column"])

    @property
    def place(self) -> dict[str, Any]:
        """Where in the data set to look, for ``datasets.load_dataset``; empty for the usual place."""
        place: dict[str, Any] = {} if self.revision is None else {"revision": self.revision}
        return place if self.files is None else {**place, "data_files": {self.split: self.files}}

    def candidates(self) -> list[tuple[str, str | None]]:
        """Ways to read the name as data set and configuration: ``a/b`` is org/name, else name/config."""
        parts = self.name.split("/")
        if len(parts) == 3:
            return [("/".join(parts[:2]), parts[2])]
        if len(parts) == 2:
            return [(self.name, None), (parts[0], parts[1])]
        return [(self.name, None)]


def read_hub(spec: HubText) -> Iterator[str]:
    """The documents of a data set, one per row, fetched as they are read.

    Raises:
        TextError: If it does not exist, is gated, needs a script, lacks the split or column, or is out of
            reach.
    """
    try:
        rows = iter(_open(spec))
        first = next(rows, None)
        if first is None:
            return
        textual = [name for name, value in first.items() if isinstance(value, str)]
        column = pick_column(list(first), textual, spec.name, spec.column)
        for row in chain([first], rows):
            yield str(row[column] or "")
    except GhostlabError:
        raise
    except Exception as error:  # the libraries below raise whatever their transport does
        raise _explain(spec, error) from error


def _open(spec: HubText) -> Any:
    from datasets import load_dataset
    from datasets.exceptions import DatasetNotFoundError

    def load(name: str, config: str | None) -> Any:
        return load_dataset(_remote(name), config, split=spec.split, streaming=True, **spec.place)

    *others, last = spec.candidates()
    for candidate in others:
        try:
            return load(*candidate)
        except DatasetNotFoundError as error:
            if "gated" in str(error):
                raise
    return load(*last)


def _remote(name: str) -> str:
    """The name for `datasets`, so that it looks at the hub and never at files of this machine.

    It takes ``text``, ``csv``, ... for its own readers of the files in the working directory, and a local
    folder for the data set of the same name.
    """
    from datasets import packaged_modules
    from datasets.exceptions import DatasetNotFoundError

    if name in {module.name for module in iter_modules(packaged_modules.__path__)}:
        raise DatasetNotFoundError(f"Dataset '{name}' doesn't exist on the Hub.")
    path = local_path(name)
    return name if path is None or not path.exists() else f"hf://datasets/{name}"


def _explain(spec: HubText, error: Exception) -> TextError:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    lowered = f"{type(error).__name__} {error}".lower()
    if "gated" in lowered or "401" in lowered or "403" in lowered:
        return TextError(f"{spec.name} is gated.", "Accept its terms on the hub and set HF_TOKEN.")
    if "script" in lowered:
        return TextError(
            f"{spec.name} is defined by a script, which is not run.",
            "Use a Parquet version of it, or a file.",
        )
    if any(word in lowered for word in ("connection", "connect", "offline", "timeout", "resolve", "reach")):
        return TextError(
            f"{spec.name} cannot be fetched: the hub cannot be reached.",
            "Check the network, or use 'wikipedia'.",
        )
    if type(error).__name__ == "DatasetNotFoundError":
        return TextError(f"There is no data set {spec.name} on the hub (or it is private).", _FORM)
    return TextError(f"{spec.name} cannot be read: {reason}", _FORM)
