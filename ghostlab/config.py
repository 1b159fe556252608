"""The whole story of a run: one frozen object that the app, the command, a link and a file all speak.

Each field's ``label`` and ``help`` are the one name and text shown for it everywhere. Fields are flat, so
that a field, a command flag (``--new-tokens``), a query parameter (``new_tokens=``) and a JSON key are the
same thing.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal, get_args, get_type_hints
from urllib.parse import parse_qsl, urlencode

from pydantic import TypeAdapter, ValidationError

from ghostlab import checks
from ghostlab.errors import ConfigError
from ghostlab.settings import Settings
from ghostlab.spec import CriterionSpec, RecoverySpec

BosPolicy = Literal["auto", "always", "never"]
FitOrder = Literal["parallel", "sequential"]
PromptFormat = Literal["auto", "chat", "raw"]
ALL = "all"
"""What 0 held-out sequences are called."""


def _setting(default: Any, label: str, help: str) -> Any:
    return field(default=default, metadata={"label": label, "help": help})


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides the result of a run. Frozen; see :meth:`check` for what is accepted."""

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
        None, "Other text to evaluate on", "Evaluate on this text instead of the held-out part of --text."
    )
    sequences: int = _setting(64, "Sequences", "Calibration sequences that the operators are fitted on.")
    length: int = _setting(256, "Length", "Tokens per sequence, for calibration and for evaluation.")
    held_out: int = _setting(
        16,
        "Held-out",
        "Held-out sequences that every shown figure is measured on; 0 or 'all' for all that there are.",
    )
    bos: BosPolicy = _setting(
        "auto",
        "Start token",
        "Token at the start of each sequence: the tokenizer's own convention, always BOS, or never.",
    )
    drop: str | None = _setting(
        "20:25", "Blocks to drop", "Blocks to drop, start:stop with stop not included: 20:25 or 10:12,20:25."
    )
    select: str | None = _setting(
        None, "Criterion", "Let this criterion choose the blocks instead of --drop: CRITERION[,option=value]."
    )
    count: int = _setting(5, "How many layers", "How many layers the criterion drops.")
    recover: tuple[RecoverySpec, ...] = _setting(
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
    rank: int | None = _setting(None, "Rank", "Rank for every operator that names none of its own.")
    ridge: str = _setting(
        "auto", "Ridge", "Ridge for every operator that names none: auto, a relative number, or abs:NUMBER."
    )
    prompt: str = _setting(
        "The history of the lighthouse begins", "Prompt", "Prompt that every variant continues."
    )
    prompt_format: PromptFormat = _setting(
        "auto",
        "Prompt format",
        "Put the prompt as a chat message by the model's template (chat) or continue it as it stands (raw); "
        "auto is chat where the model has a template.",
    )
    new_tokens: int = _setting(32, "New tokens", "Tokens that each variant generates; 0 for none.")
    temperature: float = _setting(0.0, "Temperature", "Sampling temperature; 0 is greedy.")
    top_p: float = _setting(
        1.0, "Top p", "Nucleus sampling: keep the smallest set of tokens with this probability."
    )
    seed: int = _setting(0, "Seed", "Seed of the calibration sample, of folds, bootstrap and sampling.")
    batch: int = _setting(8, "Batch", "Sequences per forward pass; lower it when memory is short.")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = _setting(
        "auto", "Weights", "Weights in memory: auto is float32 on a CPU and bfloat16 on a GPU."
    )

    def check(self, settings: Settings | None = None) -> None:
        """Raise ConfigError (or CutError) for the first setting that cannot work, here or on this host."""
        checks.check(self, settings)

    def recoveries(self) -> tuple[RecoverySpec, ...]:
        """The recoveries to fit, with the run's rank and ridge filled in where a spec names none."""
        return tuple(spec.filled(self.rank, self.ridge) for spec in self.recover)

    # -- JSON, link, command -----------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; recoveries as their short strings."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**values, "recover": [str(spec) for spec in self.recover]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """Read what :meth:`to_dict` wrote; unknown keys are ignored, "64" is read as 64.

        Raises:
            ConfigError: If a known key has a value of the wrong kind.
        """
        known = {f.name: values[f.name] for f in fields(cls) if f.name in values}
        if known.get("select") and "drop" not in known:
            known["drop"] = None  # naming a criterion replaces the default blocks
        if isinstance(known.get("select"), str) and known["select"]:
            known["select"] = str(CriterionSpec.parse(known["select"]))  # one spelling, one run
        if known.get("held_out") == ALL:
            known["held_out"] = 0
        if "recover" in known:
            known["recover"] = _read_recover(known["recover"])
        try:
            return _ADAPTER.validate_python(known)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0])
            raise checks.wrong_kind(name, first["input"], cls, _HINTS[name]) from error

    def to_query(self, *always: str) -> str:
        """The query of a link that rebuilds this run: what differs from the defaults, and ``always``."""
        shown = {f.name for f, _ in self._changed()} | set(always)
        named = [(f.name, getattr(self, f.name)) for f in fields(self) if f.name in shown]
        return urlencode([(name, word) for name, value in named for word in _words(name, value)])

    @classmethod
    def from_query(cls, query: str | Sequence[tuple[str, str]]) -> RunConfig:
        """Read a link's query string; unknown parameters are ignored, an empty value means 'none'."""
        pairs = parse_qsl(query, keep_blank_values=True) if isinstance(query, str) else query
        recover = [value for name, value in pairs if name == "recover" and value]
        named: dict[str, Any] = {n: None if n in _OPTIONAL and not value else value for n, value in pairs}
        if "recover" in named:
            named["recover"] = recover
        return cls.from_dict(named)

    def to_command(self) -> str:
        """The ``ghostlab run`` line that reproduces this run."""
        words = ["ghostlab", "run"]
        shown = {f.name for f, _ in self._changed()} | {"model", "text", "recover"}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name not in shown or value is None:
                continue
            for word in _words(f.name, value):
                words += [f"--{f.name.replace('_', '-')}", shlex.quote(word)]
        if self.drop is not None and "drop" not in shown:
            words += ["--drop", shlex.quote(self.drop)]
        return " ".join(words)

    def _changed(self) -> list[tuple[Field[Any], Any]]:
        return [(f, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default]

    @property
    def key(self) -> str:
        """Twelve hex digits that name this run: equal configurations have equal keys."""
        same_types = RunConfig.from_dict(self.to_dict())  # a temperature of 1 and of 1.0 is one run
        canonical = json.dumps(same_types.to_dict(), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]


_ADAPTER = TypeAdapter(RunConfig)
_HINTS = get_type_hints(RunConfig)
_OPTIONAL = {name for name, hint in _HINTS.items() if type(None) in get_args(hint)}


def _read_recover(value: Any) -> tuple[RecoverySpec, ...]:
    specs = [value] if isinstance(value, str) else value
    if not isinstance(specs, (list, tuple)) or not all(isinstance(s, (str, RecoverySpec)) for s in specs):
        raise ConfigError(
            f"'{label_of('recover')}' is {value!r}.", "Give a list, for example of ghost,rank=64.", "recover"
        )
    return tuple(s if isinstance(s, RecoverySpec) else RecoverySpec.parse(s) for s in specs)


def _words(name: str, value: Any) -> list[str]:
    """A field's value as the words of a link or command; no recovery at all is one empty word."""
    if name == "held_out" and value == 0:
        return [ALL]
    items = value if isinstance(value, tuple) else (value,)
    return ["" if item is None else str(item) for item in items] or [""]


def label_of(name: str) -> str:
    """What people see a field of :class:`RunConfig` called."""
    return checks.label(RunConfig, name)


def help_of(name: str) -> str:
    """The one help text of a field of :class:`RunConfig`."""
    return str(next(f for f in fields(RunConfig) if f.name == name).metadata["help"])


def differing(one: RunConfig, other: RunConfig) -> list[tuple[str, str, str]]:
    """Label and both values of every setting in which two runs differ."""
    return [
        (label_of(f.name), _spelled(getattr(one, f.name)), _spelled(getattr(other, f.name)))
        for f in fields(RunConfig)
        if getattr(one, f.name) != getattr(other, f.name)
    ]


def _spelled(value: Any) -> str:
    items = value if isinstance(value, tuple) else (value,)
    return ", ".join("none" if item in (None, "") else str(item) for item in items) or "none"
