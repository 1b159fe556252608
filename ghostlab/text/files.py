"""Documents of a local file: plain text, Markdown, JSON lines, CSV or Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.csv as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from ghostlab.errors import TextError

COLUMN = "text"


def read_file(path: Path) -> Iterator[str]:
    """The documents of ``path``: a .txt or .md is one, all others have one per row.

    Raises:
        TextError: If the file is missing, of another kind, damaged, or has no column that holds the text.
    """
    if not path.is_file():
        raise TextError(f"There is no file {path}.", f"Give the path of a {', '.join(SUFFIXES)} file.")
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise TextError(f"{path.name} is not a supported kind of text file.", f"Use {', '.join(SUFFIXES)}.")
    try:
        yield from read(path)
    except UnicodeDecodeError as error:
        raise TextError(
            f"{path.name} is not UTF-8 (byte {error.start}).", "Save it as UTF-8, for example with iconv."
        ) from error
    except (OSError, pa.ArrowException) as error:
        raise TextError(f"{path.name} cannot be read ({error}).", "Check the file.") from error


def pick_column(
    columns: Sequence[str], textual: Sequence[str], source: str, wanted: str | None = None
) -> str:
    """The column that holds the text: the one asked for, ``text``, or the only one that holds strings.

    Raises:
        TextError: Naming the columns, if several or none may be it.
    """
    if wanted is not None:
        if wanted in columns:
            return wanted
        raise TextError(f"{source} has no column '{wanted}'.", f"It has {', '.join(columns)}.")
    if COLUMN in textual:
        return COLUMN
    if len(textual) == 1:
        return textual[0]
    problem = "several columns hold strings" if textual else "no column holds strings"
    raise TextError(
        f"Cannot choose the text column of {source}: {problem} ({', '.join(columns)}).",
        f"Name it '{COLUMN}'.",
    )


def _text(path: Path) -> Iterator[str]:
    yield path.read_text(encoding="utf-8-sig")


def _json_lines(path: Path) -> Iterator[str]:
    column = None
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            row = _object(line, path.name, number)
            if column is None:
                column = pick_column(list(row), [k for k, v in row.items() if isinstance(v, str)], path.name)
            value = row.get(column)
            if value is not None:
                yield str(value)


def _object(line: str, name: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise TextError(
            f"Line {number} of {name} is not JSON ({error.msg}).", "One object per line."
        ) from error
    if not isinstance(row, dict):
        raise TextError(f"Line {number} of {name} is not a JSON object.", 'Write {"text": "..."}.')
    return row


def _csv(path: Path) -> Iterator[str]:
    lines = pc.ParseOptions(newlines_in_values=True)
    with pc.open_csv(path, parse_options=lines) as table:
        names = table.schema.names
        # types are guessed from the values: a column of that name is text, whatever its first rows hold
        column = COLUMN if COLUMN in names else pick_column(names, _textual(table.schema), path.name)
    wanted = pc.ConvertOptions(include_columns=[column], column_types={column: pa.string()})
    with pc.open_csv(path, parse_options=lines, convert_options=wanted) as table:
        for batch in table:
            yield from (str(value) for value in batch.column(0).to_pylist() if value is not None)


def _parquet(path: Path) -> Iterator[str]:
    with pq.ParquetFile(path) as table:
        schema = table.schema_arrow
        column = pick_column(schema.names, _textual(schema), path.name)
        for batch in table.iter_batches(batch_size=256, columns=[column]):
            yield from (str(value) for value in batch.column(0).to_pylist() if value is not None)


def _textual(schema: Any) -> list[str]:
    """Names of the columns that hold strings."""
    return [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]


_READERS = {".txt": _text, ".md": _text, ".jsonl": _json_lines, ".csv": _csv, ".parquet": _parquet}
SUFFIXES = tuple(_READERS)
