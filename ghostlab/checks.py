"""What of a run does not fit together, or not this host, and the sentences that say so.

A sentence calls a setting by its label in quotation marks; an error names the setting as well, so that the
app can show it beside the control, and the command can put its flag in place of the label.
"""

from __future__ import annotations

from ghostlab.config import FIELDS, RunConfig
from ghostlab.cut import parse_cut
from ghostlab.errors import ConfigError
from ghostlab.settings import Limits, Settings
from ghostlab.spec import CriterionSpec, parse_ridge

_LABELS = {name: f"'{field.label}'" for name, field in FIELDS.items()}


def check(config: RunConfig, settings: Settings | None = None) -> None:
    """Raise ConfigError (or CutError) for the first setting that cannot work, or not on this host.

    Whether a recovery, a criterion or an option of theirs exists is for the registries to say.
    """
    _check_words(config)
    _check_blocks(config)
    _check_recoveries(config)
    if settings is not None:
        _check_limits(config, settings.limits)


def _check_words(config: RunConfig) -> None:
    for name in ("model", "text"):
        if not getattr(config, name).strip():
            default = FIELDS[name].default
            raise ConfigError(f"{_LABELS[name]} is empty.", f"Give one, for example {default}.", name)
    if config.new_tokens and not config.prompt.strip():
        raise ConfigError(
            f"{_LABELS['prompt']} is empty.",
            f"Write a few words to continue, or set {_LABELS['new_tokens']} to 0.",
            "prompt",
        )


def _check_blocks(config: RunConfig) -> None:
    if (config.drop is None) == (config.select is None):
        either = f"Either {_LABELS['drop']} or {_LABELS['select']} decides the cut."
        raise ConfigError(either, "Give one of the two.", "drop")
    if config.drop is not None:
        parse_cut(config.drop)
    if config.select is not None:
        CriterionSpec.parse(config.select)


def _check_recoveries(config: RunConfig) -> None:
    recoveries = config.recoveries()
    for spec in recoveries:
        parse_ridge(spec.ridge)
        if spec.rank is not None and spec.rank < 1:
            raise ConfigError(f"Rank {spec.rank} of {spec.method} is not positive.", "Use 1 or more.", "rank")
    if len(set(recoveries)) < len(recoveries):
        raise ConfigError("The same recovery is given twice.", "Name each one once.", "recover")


def _check_limits(config: RunConfig, limits: Limits) -> None:
    tokens, at_once = (config.sequences + config.held_out) * config.length, config.batch * config.length
    if tokens > limits.tokens:
        raise ConfigError(
            f"{tokens:,} tokens are more than this server allows ({limits.tokens:,}).",
            f"Lower {_LABELS['sequences']}, {_LABELS['length']} or {_LABELS['held_out']}.",
            "sequences",
        )
    if at_once > limits.batch_tokens:
        raise ConfigError(
            f"{at_once:,} tokens in one forward pass ({_LABELS['batch']} times {_LABELS['length']}) are "
            f"more than this server allows ({limits.batch_tokens:,}).",
            f"Lower {_LABELS['batch']} to {max(limits.batch_tokens // config.length, 1)}, "
            f"or {_LABELS['length']}.",
            "batch",
        )
    most = "This server allows at most"
    if len(config.recover) > limits.recoveries:
        count = f"{len(config.recover)} recoveries are too many."
        raise ConfigError(count, f"{most} {limits.recoveries} recoveries per run.", "recover")
    if config.new_tokens > limits.new_tokens:
        count = f"{_LABELS['new_tokens']} is {config.new_tokens}."
        raise ConfigError(count, f"{most} {limits.new_tokens}.", "new_tokens")
    for name in ("text", "held_out_text", "prompt"):
        size = len((getattr(config, name) or "").encode(errors="replace"))
        if size > limits.upload_bytes:
            long = f"{_LABELS[name]} is too long: {size / 1e6:.1f} MB."
            raise ConfigError(long, f"{most} {limits.upload_bytes / 1e6:g} MB.", name)
