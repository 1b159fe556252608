"""The whole story of a run: one frozen object that the app, the command, a link and a file all speak.

Fields are flat, so that a field, a command flag (``--new-tokens``), a query parameter (``new_tokens=``) and a
JSON key are the same thing. Each carries its label, its help text and its bounds; :data:`FIELDS` lists them
for whatever offers a field to people.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import replace
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlencode

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass

from ghostlab.errors import ConfigError
from ghostlab.spec import CriterionSpec, RecoverySpec

BosPolicy = Literal["auto", "always", "never"]
FitOrder = Literal["parallel", "sequential"]
PromptFormat = Literal["auto", "chat", "raw"]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
ALL = "all"
"""What 0 held-out sequences are called."""


def _read_recover(value: Any) -> tuple[RecoverySpec, ...]:
    specs = RecoverySpec.parse_all(value) if isinstance(value, str) else value
    if not isinstance(specs, (list, tuple)) or not all(isinstance(s, (str, RecoverySpec)) for s in specs):
        raise ConfigError(
            f"'Recoveries' is {_short(value)}.", "Give a list, for example of ghost,rank=64.", "recover"
        )
    return tuple(s if isinstance(s, RecoverySpec) else RecoverySpec.parse(s) for s in specs)


def _read_held_out(value: Any) -> Any:
    return 0 if value == ALL else value


def _read_select(value: Any) -> Any:
    """One spelling, one run."""
    return str(CriterionSpec.parse(value)) if isinstance(value, str) and value else value


_HeldOut = Annotated[int, BeforeValidator(_read_held_out)]
_Select = Annotated[str | None, BeforeValidator(_read_select)]
_Recoveries = Annotated[
    tuple[RecoverySpec, ...],
    BeforeValidator(_read_recover),
    PlainSerializer(lambda specs: [str(spec) for spec in specs]),
]


def _setting(default: Any, label: str, help: str, **bounds: Any) -> Any:
    return Field(default, title=label, description=help, **bounds)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class RunConfig:
    """Everything that decides the result of a run.

    Text is converted (``"64"`` is 64, a recovery may be its short string); a wrong kind or a value out of
    bounds raises :class:`~ghostlab.errors.ConfigError`. :func:`ghostlab.checks.check` says what does not fit
    together or exceeds the limits of the host.
    """

    model: str = _setting(
        "embedded", "Model", "Model: 'embedded', a hub id (org/name), a local folder or a .gguf file."
    )
    revision: str | None = _setting(None, "Model revision", "Branch, tag or commit of a hub model.")
    text: str = _setting(
        "wikipedia",
        "Text",
        "Text to fit and to evaluate on: a built-in corpus, wikitext2, ptb or c4, a file, "
        "hf:dataset/config:split:column, or a mixture such as 3*wikipedia+novels.",
    )
    held_out_text: str | None = _setting(
        None, "Other text to evaluate on", "Evaluate on this text instead of the held-out part of the text."
    )
    sequences: int = _setting(
        64, "Sequences", "Calibration sequences that the operators are fitted on.", ge=1
    )
    length: int = _setting(256, "Length", "Tokens per sequence, for calibration and for evaluation.", ge=8)
    held_out: _HeldOut = _setting(
        16,
        "Held-out",
        "Held-out sequences that every figure is measured on; 0 or 'all' for all that there are.",
        ge=0,
    )
    bos: BosPolicy = _setting(
        "auto",
        "Start token",
        "Token at the start of each sequence: the tokenizer's own convention, always BOS, or never.",
    )
    drop: str | None = _setting(
        "20:25", "Blocks to drop", "Blocks to drop, start:stop with stop not included: 20:25 or 10:12,20:25."
    )
    select: _Select = _setting(
        None, "Criterion", "Let this criterion choose the blocks instead of --drop: CRITERION[,option=value]."
    )
    count: int = _setting(5, "How many layers", "How many layers the criterion drops.", ge=1)
    recover: _Recoveries = _setting(
        (RecoverySpec("ghost"), RecoverySpec("ghost_sink")),
        "Recoveries",
        "Recovery operators to fit, each as METHOD[,OPTION=VALUE]; 'ghostlab methods' lists them.",
    )
    order: FitOrder = _setting(
        "parallel",
        "Several blocks",
        "For several blocks: fit each on the original's states (parallel), or on those of the model as "
        "recovered so far (sequential).",
    )
    rank: int | None = _setting(None, "Rank", "Rank for every operator that names none of its own.", ge=1)
    ridge: str = _setting(
        "auto", "Ridge", "Ridge for every operator that names none: auto, a relative number, or abs:NUMBER."
    )
    prompt: str = _setting(
        "The history of the lighthouse begins", "Prompt", "Prompt that every variant continues."
    )
    prompt_format: PromptFormat = _setting(
        "auto",
        "Prompt format",
        "Put the prompt as a chat message by the model's template (chat) or continue it as it is (raw); "
        "auto is chat where the model has a template.",
    )
    new_tokens: int = _setting(32, "New tokens", "Tokens that each variant generates; 0 for none.", ge=0)
    temperature: float = _setting(
        0.0, "Temperature", "Sampling temperature; 0 is greedy.", ge=0, allow_inf_nan=False
    )
    top_p: float = _setting(
        1.0, "Top p", "Nucleus sampling: keep the smallest set of tokens with this probability.", gt=0, le=1
    )
    seed: int = _setting(
        0, "Seed", "Seed of the calibration sample, of folds, bootstrap and sampling.", ge=0, le=2**32 - 1
    )
    batch: int = _setting(8, "Batch", "Sequences per forward pass; lower it when memory is short.", ge=1)
    dtype: Dtype = _setting(
        "auto", "Weights", "Weights in memory: auto is float32 on a CPU and bfloat16 on a GPU."
    )

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_in_a_sentence(cls, values: Any, handler: ModelWrapValidatorHandler[RunConfig]) -> RunConfig:
        try:
            return handler(values)
        except ValidationError as error:
            if not error.errors()[0]["loc"]:
                raise  # no settings at all
            raise _refusal(error) from error

    def recoveries(self) -> tuple[RecoverySpec, ...]:
        """The recoveries to fit, with the run's rank and ridge filled in where a spec names none."""
        return tuple(spec.filled(self.rank, self.ridge) for spec in self.recover)

    # -- JSON, link, command -----------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; recoveries as their short strings."""
        values: dict[str, Any] = _ADAPTER.dump_python(self, mode="json")
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, strict: bool = False) -> RunConfig:
        """Read what :meth:`to_dict` wrote; naming a criterion replaces the default blocks.

        Raises:
            ConfigError: If a value is of the wrong kind or out of bounds, or ``strict`` and a key unknown.
        """
        known = {name: value for name, value in values.items() if strict or name in FIELDS}
        if known.get("select") and "drop" not in known:
            known["drop"] = None
        return _ADAPTER.validate_python(known)

    def to_query(self, *always: str) -> str:
        """The query of a link that rebuilds this run: what differs from the defaults, and ``always``."""
        return urlencode([(field.name, word) for field, word in self._words(*always)])

    @classmethod
    def from_query(cls, query: str | Sequence[tuple[str, str]]) -> RunConfig:
        """Read a link's query string; unknown parameters are ignored, an empty value means 'none'."""
        pairs = parse_qsl(query, keep_blank_values=True) if isinstance(query, str) else query
        values: dict[str, Any] = {
            name: None if name in FIELDS and FIELDS[name].optional and not value else value
            for name, value in pairs
        }
        if "recover" in values:
            values["recover"] = [value for name, value in pairs if name == "recover" and value]
        return cls.from_dict(values)

    def to_command(self) -> str:
        """The ``ghostlab run`` line that reproduces this run."""
        flags = [
            f" {field.flag} {shlex.quote(word)}"
            for field, word in self._words("model", "text", "drop", "recover")
            if getattr(self, field.name) is not None
        ]
        return f"ghostlab run{''.join(flags)}"

    def _words(self, *always: str) -> Iterator[tuple[RunField, str]]:
        """The words of what differs from the defaults, and of ``always``; ``None`` is an empty word."""
        for name, field in FIELDS.items():
            value = getattr(self, name)
            if value != field.default or name in always:
                items = value if isinstance(value, tuple) else (value,)
                if name == "held_out" and value == 0:
                    items = (ALL,)
                yield from ((field, "" if item is None else str(item)) for item in items or ("",))

    @property
    def key(self) -> str:
        """Twelve hex digits that name this run: equal configurations have equal keys."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:12]


@plain_dataclass(frozen=True)
class RunField:
    """A field of :class:`RunConfig` as people are offered it.

    Attributes:
        kind: ``str``, ``int`` or ``float``; ``tuple`` for the recoveries.
        optional: Whether it may be ``None``.
        choices: The values it takes; none for any.
        least, most: Bounds of a number (top p lies above its least).
    """

    name: str
    label: str
    help: str
    default: Any
    kind: type
    optional: bool
    choices: tuple[str, ...]
    least: float | None
    most: float | None

    @property
    def flag(self) -> str:
        """The command's flag for it."""
        return f"--{self.name.replace('_', '-')}"


_ADAPTER = TypeAdapter(RunConfig)
_TYPES: dict[str, type] = {"string": str, "integer": int, "number": float, "array": tuple}


def _run_field(name: str, schema: Mapping[str, Any]) -> RunField:
    """What the JSON schema says of a field."""
    kinds = schema.get("anyOf", [schema])  # optional ones: its own, and null
    return RunField(
        name=name,
        label=schema["title"],
        help=schema["description"],
        default=getattr(_DEFAULT, name),
        kind=_TYPES[kinds[0]["type"]],
        optional=len(kinds) > 1,
        choices=tuple(kinds[0].get("enum", ())),
        least=kinds[0].get("minimum", kinds[0].get("exclusiveMinimum")),
        most=kinds[0].get("maximum"),
    )


_DEFAULT = RunConfig()
FIELDS = {name: _run_field(name, schema) for name, schema in _ADAPTER.json_schema()["properties"].items()}
"""Every field of :class:`RunConfig` by its name, in order."""
for _field in FIELDS.values():
    setattr(RunConfig, _field.name, _field.default)  # as on every dataclass: RunConfig.length is 256
_KINDS = {int: "Give a whole number", float: "Give a number", str: "Write text"}
_REPEATED = 60
"""Characters of a wrong value that are repeated."""


def _refusal(error: ValidationError) -> ConfigError:
    """What is wrong with the first value that was refused, and what would be right."""
    first = error.errors()[0]
    where, value = first["loc"][0], first["input"]
    name = list(FIELDS)[where] if isinstance(where, int) and where < len(FIELDS) else str(where)
    if name not in FIELDS:
        near = difflib.get_close_matches(name, FIELDS, 1)
        hint = f"Did you mean '{near[0]}'?" if near else f"Settings are {', '.join(FIELDS)}."
        return ConfigError(f"Unknown setting '{name[:_REPEATED]}'.", hint)
    given = value if "ctx" in first and FIELDS[name].kind is not str else _short(value)
    return ConfigError(f"'{FIELDS[name].label}' is {given}.", _remedy(FIELDS[name], first), name)


def _short(value: Any) -> str:
    given = "empty" if value is None else repr(value)
    return given if len(given) <= _REPEATED else f"{given[:_REPEATED]}\N{HORIZONTAL ELLIPSIS}"


def _remedy(field: RunField, error: Mapping[str, Any]) -> str:
    bounds = error.get("ctx", {})
    for bound, words in (("ge", "at least"), ("gt", "above"), ("le", "at most")):
        if bound in bounds:
            return f"It must be {words} {bounds[bound]:.12g}."
    if field.choices:
        return f"Choose from: {', '.join(field.choices)}."
    example = "" if field.default is None else f", for example {field.default!r}"
    return f"{_KINDS.get(field.kind, 'Give another value')}{example}."


def only(config: RunConfig, *names: str, **rest: Any) -> RunConfig:
    """The default configuration with ``names`` as in ``config``: what decides a part of the work."""
    return replace(RunConfig(**rest), **{name: getattr(config, name) for name in names})


def differing(one: RunConfig, other: RunConfig) -> list[tuple[str, str, str]]:
    """Label and both values of every setting in which two runs differ."""
    return [
        (field.label, _spelled(getattr(one, name)), _spelled(getattr(other, name)))
        for name, field in FIELDS.items()
        if getattr(one, name) != getattr(other, name)
    ]


def _spelled(value: Any) -> str:
    items = value if isinstance(value, tuple) else (value,)
    return ", ".join("none" if item in (None, "") else str(item) for item in items) or "none"
