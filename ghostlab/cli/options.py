"""The flags of ``ghostlab run``, made from the fields of :class:`RunConfig`, and the way back to one."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from ghostlab.config import FIELDS, RunConfig, RunField
from ghostlab.errors import ConfigError, GhostlabError

Command = TypeVar("Command", bound=Callable[..., None])


def with_settings(*names: str) -> Callable[[Command], Command]:
    """Give a command, whose ``**flags`` they become, a flag per field of RunConfig: all, or those named.

    A flag that was not given is ``None``.
    """

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [_parameter(field) for field in FIELDS.values() if not names or field.name in names]
        parameters += [p for p in own if p.kind is not inspect.Parameter.VAR_KEYWORD]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return decorate


def _parameter(field: RunField) -> inspect.Parameter:
    words = {int: "<int>", float: "<float>"}.get(field.kind, "<str>")
    option = typer.Option(
        field.flag,
        help=field.help + _default(field.default),
        show_default=False,
        metavar=f"<{'|'.join(field.choices)}>" if field.choices else words,
    )
    kind = list[str] if field.kind is tuple else str  # RunConfig itself says what is wrong with a value
    annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _default(default: Any) -> str:
    if default is None:
        return ""
    if isinstance(default, tuple):
        return f" Repeat the flag for several. [default: {' '.join(map(str, default))}]"
    return f" [default: {default}]"


def build_config(path: Path | None, flags: Mapping[str, Any]) -> RunConfig:
    """The configuration in the file ``path`` (or the default one) with every given flag put over it.

    The file has RunConfig's keys, or is a ``result.json`` whose run is to be repeated. A flag that was not
    given is ``None``; ``select`` replaces the file's or the default ``drop`` and the other way round.

    Raises:
        ConfigError: If the file cannot be read, has an unknown key, or a value is of the wrong kind.
    """
    values = {} if path is None else _read_file(path)
    given = {name: value for name, value in flags.items() if value is not None}
    if "recover" in given:
        given["recover"] = [spec for spec in given["recover"] if spec]
    if "select" in given:
        values.pop("drop", None)
    elif "drop" in given:
        values.pop("select", None)
    return RunConfig.from_dict({**values, **given}, strict=True)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"'{path}' is not a readable JSON file.", "Give --config a file with the keys of a run."
        ) from error
    if isinstance(values, dict) and "schema" in values:
        values = values.get("config")  # of a result
    if not isinstance(values, dict):
        raise ConfigError(
            f"'{path}' contains no configuration.", 'Write an object, for example {"drop": "20:25"}.'
        )
    return values


def with_flags(error: GhostlabError) -> str:
    """An error's sentences, with the flags of the settings that it speaks of in place of their labels."""
    text = str(error)
    if not (isinstance(error, ConfigError) and error.setting):
        return text
    for field in FIELDS.values():
        text = text.replace(f"'{field.label}'", field.flag)
    return text
