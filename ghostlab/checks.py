"""What a run's settings must be, and the sentences for those that cannot work.

A sentence calls a setting by its label in quotation marks; an error names the setting as well, so that the
app can stand it beside the control, and the command can put its flag in the label's place.
"""

from __future__ import annotations

import math
from dataclasses import fields
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from ghostlab.cut import parse_cut
from ghostlab.errors import ConfigError
from ghostlab.settings import Limits, Settings
from ghostlab.spec import CriterionSpec, parse_ridge

if TYPE_CHECKING:
    from ghostlab.config import RunConfig

_LEAST = {"sequences": 1, "length": 8, "held_out": 0, "count": 1, "new_tokens": 0, "batch": 1, "seed": 0}
_KINDS: dict[Any, str] = {int: "Give a whole number", float: "Give a number", str: "Write text"}
_SHOWN = 60
"""Characters of a wrong value that are repeated."""


def label(config: type[RunConfig] | RunConfig, name: str) -> str:
    """What people see the setting ``name`` called."""
    return str(next(f for f in fields(config) if f.name == name).metadata["label"])


def check(config: RunConfig, settings: Settings | None) -> None:
    """Raise ConfigError (or CutError) for the first setting that cannot work, or not on this host."""
    _check_numbers(config)
    _check_words(config)
    _check_blocks(config)
    _check_recoveries(config)
    if settings is not None:
        _check_amounts(config, settings.limits)
        _check_lengths(config, settings.limits)


def _wrong(config: RunConfig, name: str, hint: str) -> ConfigError:
    return ConfigError(f"'{label(config, name)}' is {getattr(config, name)}.", hint, name)


def _check_numbers(config: RunConfig) -> None:
    for name, least in _LEAST.items():
        if getattr(config, name) < least:
            raise _wrong(config, name, f"It must be at least {least}.")
    if config.seed >= 2**32:
        raise _wrong(config, "seed", f"It must be at most {2**32 - 1}.")
    if not (math.isfinite(config.temperature) and config.temperature >= 0):
        raise _wrong(config, "temperature", "Use 0 (greedy) or a positive number.")
    if not 0 < config.top_p <= 1:
        raise _wrong(config, "top_p", "It must lie above 0 and be at most 1.")


def _check_words(config: RunConfig) -> None:
    for name in ("model", "text"):
        if not getattr(config, name).strip():
            default = type(config).__dataclass_fields__[name].default
            raise ConfigError(f"'{label(config, name)}' is empty.", f"Give one, for example {default}.", name)
    if config.new_tokens and not config.prompt.strip():
        raise ConfigError(
            f"'{label(config, 'prompt')}' is empty.",
            f"Write a few words to continue, or set '{label(config, 'new_tokens')}' to 0.",
            "prompt",
        )


def _check_blocks(config: RunConfig) -> None:
    if (config.drop is None) == (config.select is None):
        either = f"'{label(config, 'drop')}' or '{label(config, 'select')}'"
        raise ConfigError(f"Either {either} decides the cut.", "Give one of the two.", "drop")
    if config.drop is not None:
        parse_cut(config.drop)
    if config.select is not None:
        CriterionSpec.parse(config.select)


def _check_recoveries(config: RunConfig) -> None:
    asked = config.recoveries()
    for spec in asked:
        parse_ridge(spec.ridge)
        if spec.rank is not None and spec.rank < 1:
            raise ConfigError(f"Rank {spec.rank} of {spec.method} is not positive.", "Use 1 or more.", "rank")
    if len(set(asked)) < len(asked):
        raise ConfigError("The same recovery is asked for twice.", "Name each one once.", "recover")


def _check_amounts(config: RunConfig, limits: Limits) -> None:
    tokens = (config.sequences + config.held_out) * config.length
    if tokens > limits.tokens:
        first, second, third = (label(config, name) for name in ("sequences", "length", "held_out"))
        raise ConfigError(
            f"{tokens:,} tokens are more than this host allows ({limits.tokens:,}).",
            f"Lower '{first}', '{second}' or '{third}'.",
            "sequences",
        )
    if len(config.recover) > limits.recoveries:
        raise ConfigError(
            f"{len(config.recover)} recoveries are asked for.",
            f"This host fits {limits.recoveries} in a run.",
            "recover",
        )
    if config.new_tokens > limits.new_tokens:
        raise _wrong(config, "new_tokens", f"This host allows {limits.new_tokens}.")


def _check_lengths(config: RunConfig, limits: Limits) -> None:
    for name in ("text", "held_out_text", "prompt"):
        size = len((getattr(config, name) or "").encode(errors="replace"))
        if size > limits.upload_bytes:
            raise ConfigError(
                f"'{label(config, name)}' is too long: {size / 1e6:.1f} MB.",
                f"This host takes up to {limits.upload_bytes / 1e6:g} MB.",
                name,
            )


def wrong_kind(name: str, value: Any, config: type[RunConfig], hint: Any) -> ConfigError:
    """The error for a value that is of another kind than the type ``hint`` of the setting ``name``."""
    kinds = [kind for kind in _parts(hint) if kind is not type(None)]
    default = next(f for f in fields(config) if f.name == name).default
    if get_origin(kinds[0]) is Literal:
        right = f"Choose from: {', '.join(get_args(kinds[0]))}"
    else:
        example = "" if default is None else f", for example {default!r}"
        right = _KINDS.get(kinds[0], "Give another value") + example
    given = "empty" if value is None else repr(value)
    shown = given if len(given) <= _SHOWN else f"{given[:_SHOWN]}\N{HORIZONTAL ELLIPSIS}"
    return ConfigError(f"'{label(config, name)}' is {shown}.", f"{right}.", name)


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if isinstance(hint, UnionType) else (hint,)
