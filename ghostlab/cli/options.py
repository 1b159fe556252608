"""The flags of ``ghostlab run``, made from the fields of :class:`RunConfig`, and the way back to one."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ghostlab.config import FIELDS, RunConfig, RunField
from ghostlab.errors import ConfigError, GhostlabError


def config_parameters() -> list[inspect.Parameter]:
    """One keyword parameter with a typer option per field; ``None`` means that the flag was not given."""
    return [_parameter(field) for field in FIELDS.values()]


def _parameter(field: RunField) -> inspect.Parameter:
    option = typer.Option(
        field.flag,
        help=field.help + _shown_default(field.default),
        show_default=False,
        metavar=_metavar(field),
    )
    kind = list[str] if field.kind is tuple else str  # RunConfig itself says what is wrong with a value
    annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _metavar(field: RunField) -> str:
    """What --help shows for a flag's value."""
    if field.choices:
        return f"<{'|'.join(field.choices)}>"
    return {int: "<int>", float: "<float>"}.get(field.kind, "<str>")


def _shown_default(default: Any) -> str:
    if default is None:
        return ""
    if isinstance(default, tuple):
        return f" Repeat the flag for several. [default: {' '.join(map(str, default))}]"
    return f" [default: {default}]"


def build_config(path: Path | None, flags: Mapping[str, Any]) -> RunConfig:
    """The configuration in the file ``path`` (or the default one) with every given flag put over it.

    Args:
        path: A JSON file with RunConfig's keys, or a ``result.json`` whose run is to be repeated.
        flags: Field name -> value of the flag, ``None`` where it was not given. ``select`` replaces the
            file's or the default ``drop`` and the other way round.

    Raises:
        ConfigError: If the file cannot be read, has a key that is none, or a value is of the wrong kind.
    """
    values = {} if path is None else _read_file(path)
    given = {name: value for name, value in flags.items() if value is not None}
    if "recover" in given:
        given["recover"] = [spec for spec in given["recover"] if spec]
    if "select" in given:
        values.pop("drop", None)
    elif "drop" in given:
        values.pop("select", None)
    return RunConfig.from_dict({**values, **given})


def _read_file(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"'{path}' is not a readable JSON file.", "Give --config a file with the keys of a run."
        ) from error
    if isinstance(values, dict) and "schema" in values:
        stored = values.get("config")
        values = {"prompt_format": "raw", **stored} if isinstance(stored, dict) else None  # as before chat
    if not isinstance(values, dict):
        raise ConfigError(
            f"'{path}' holds no configuration.", 'Write an object, for example {"drop": "20:25"}.'
        )
    unknown = sorted(set(values) - set(FIELDS))
    if unknown:
        raise ConfigError(f"'{unknown[0]}' in '{path}' is no setting.", f"Known are {', '.join(FIELDS)}.")
    return values


def with_flags(error: GhostlabError) -> str:
    """An error's sentences, with the flags of the settings that it speaks of in place of their labels."""
    text = str(error)
    if not (isinstance(error, ConfigError) and error.setting):
        return text
    for field in FIELDS.values():
        text = text.replace(f"'{field.label}'", field.flag)
    return text
