"""Files and folders that are written whole or not at all, their checksum, and records kept as JSON."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import TypeAdapter, ValidationError

from ghostlab.errors import ResultError

if TYPE_CHECKING:
    from typing_extensions import Self


def file_sha256(path: Path) -> str:
    """SHA-256 of a file in hex digits; read in pieces, so that it may be larger than memory."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A place beside ``path`` to write a file or folder; it becomes ``path`` when the block ends well.

    Missing folders above ``path`` are made. Two writers do not disturb each other: the last one stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        yield partial
        if partial.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        partial.replace(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        partial.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> Path:
    """Write a text file, whole or not at all."""
    target = Path(path)
    with whole(target) as partial:
        partial.write_text(text, encoding="utf-8")
    return target


def read_json(path: str | Path) -> dict[str, Any] | None:
    """The object in a JSON file; ``None`` if it cannot be read or holds something else."""
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def local_path(text: str) -> Path | None:
    """The path that ``text`` may be, with ``~`` expanded; ``None`` if it cannot be one."""
    try:
        path = Path(text).expanduser()
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return path
    except (OSError, RuntimeError, ValueError):
        return None
    return path


def package_folder(name: str) -> Path | None:
    """Where the installed package ``name`` lies, which is not imported; ``None`` if it is not installed."""
    spec = importlib.util.find_spec(name)
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


def make_room(folders: Iterable[Path], need: int, most: int) -> None:
    """Delete the folders used longest ago, by their own time, until ``need`` more bytes fit into ``most``.

    Others may delete them at the same time.
    """
    known = []
    for folder in folders:
        with suppress(OSError):
            if folder.is_dir():
                known.append((folder.stat().st_mtime, folder, folder_bytes(folder)))
    left = sum(size for _, _, size in known)
    for _, folder, size in sorted(known):
        if left + need <= most:
            return
        shutil.rmtree(folder, ignore_errors=True)
        left -= size


def folder_bytes(folder: Path) -> int:
    """Bytes of all files in a folder and below, whatever others delete meanwhile; links do not count."""
    total = 0
    for place, _, names in os.walk(folder):
        for path in map(Path(place).joinpath, names):
            with suppress(OSError):
                total += 0 if path.is_symlink() else path.stat().st_size
    return total


class Record:
    """A result that is one JSON object in one file: the base of a frozen dataclass."""

    WHAT: ClassVar[str]
    """What people call it."""
    SCHEMA: ClassVar[int] = 1
    """The version of the file that is read; checked where the record has a field ``schema``."""

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        values: dict[str, Any] = self._adapter().dump_python(self, mode="json")
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` wrote.

        Raises:
            ResultError: If it is something else, of another schema, or damaged.
            ConfigError: If the configuration in it cannot work.
        """
        if hasattr(cls, "schema") and values.get("schema") != cls.SCHEMA:
            raise ResultError(
                f"This {cls.WHAT} has schema {values.get('schema')!r}.",
                f"This Ghostlab reads schema {cls.SCHEMA}.",
            )
        try:
            record: Self = cls._adapter().validate_python(values)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise ResultError(f"The {cls.WHAT} is damaged at {place}: {first['msg']}.") from error
        return record

    def to_json(self) -> str:
        """The text of the file that :meth:`save` writes."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def save(self, path: str | Path) -> Path:
        """Write a JSON file, whole or not at all."""
        return write_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that :meth:`save` wrote; raises as :meth:`from_dict`."""
        values = read_json(path)
        if values is None:
            raise ResultError(f"'{path}' is not a readable {cls.WHAT}.")
        return cls.from_dict(values)

    @classmethod
    @cache
    def _adapter(cls) -> TypeAdapter[Any]:
        return TypeAdapter(cls)
