"""RunConfig: one run told as JSON, link, and command is the same run."""

from __future__ import annotations

import json
import shlex
from dataclasses import fields, replace
from typing import Any

import pytest

from ghostlab.checks import check
from ghostlab.cli.options import build_config
from ghostlab.config import FIELDS, RunConfig
from ghostlab.errors import ConfigError, CutError
from ghostlab.settings import PUBLIC_LIMITS, Settings
from ghostlab.spec import RecoverySpec
from tests.helpers.configs import random_config

pytestmark = pytest.mark.unit

SEEDS = range(150)


@pytest.mark.parametrize("seed", SEEDS)
def test_json_and_link_give_the_run_back(seed: int) -> None:
    config = random_config(seed)
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert RunConfig.from_query(config.to_query()) == config
    assert RunConfig.from_query("?".join(["", config.to_query()]).lstrip("?")).key == config.key


def test_random_configurations_reach_every_field() -> None:
    seen = [random_config(seed) for seed in SEEDS]
    for f in fields(RunConfig):
        assert len({str(getattr(config, f.name)) for config in seen}) > 1, f.name


def test_the_default_run_is_valid_and_needs_no_link_parameters() -> None:
    check(RunConfig(), Settings())
    assert RunConfig().to_query() == ""
    assert RunConfig().to_command() == (
        "ghostlab run --model embedded --text wikipedia --drop 20:25 --recover ghost --recover ghost_sink"
    )


def test_key_depends_on_values_not_on_their_number_type() -> None:
    assert RunConfig(temperature=1).key == RunConfig(temperature=1.0).key
    keys = {random_config(seed).key for seed in SEEDS}
    assert len(keys) == len({random_config(seed) for seed in SEEDS})


def test_every_field_has_a_help_sentence_of_its_own() -> None:
    texts = [FIELDS[f.name].help for f in fields(RunConfig)]
    assert all(text.endswith(".") for text in texts)
    assert len(set(texts)) == len(texts)


def test_values_arrive_as_text_from_links_and_unknown_parameters_are_left_alone() -> None:
    config = RunConfig.from_query("sequences=32&temperature=0.5&rank=&utm_source=mail&prompt=")
    assert (config.sequences, config.temperature, config.rank, config.prompt) == (32, 0.5, None, "")


def test_all_held_out_sequences_are_zero_in_a_file_and_a_word_in_a_command() -> None:
    config = RunConfig.from_query("held_out=all")
    assert config.held_out == 0
    check(config)
    assert config.to_dict()["held_out"] == 0
    assert "--held-out all" in config.to_command()
    assert config.to_query() == "held_out=all"
    assert RunConfig.from_dict({"held_out": "24"}).held_out == 24
    with pytest.raises(ConfigError, match="'Held-out' is 'every'"):
        RunConfig.from_dict({"held_out": "every"})


def test_naming_a_criterion_replaces_the_default_blocks() -> None:
    assert RunConfig.from_dict({"select": "shortgpt"}).drop is None
    both = RunConfig.from_dict({"select": "shortgpt", "drop": "1:2"})
    with pytest.raises(ConfigError, match="Either 'Blocks to drop' or 'Criterion'"):
        check(both)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"sequences": "many"}, "'Sequences' is 'many'. Give a whole number, for example 64."),
        ({"sequences": 1.5}, "'Sequences' is 1.5. Give a whole number, for example 64."),
        ({"temperature": "hot"}, "'Temperature' is 'hot'. Give a number, for example 0.0."),
        ({"rank": "x" * 99}, f"'Rank' is '{'x' * 59}\N{HORIZONTAL ELLIPSIS}. Give a whole number."),
        ({"bos": "sometimes"}, "'Start token' is 'sometimes'. Choose from: auto, always, never."),
        ({"dtype": "int8"}, "'Weights' is 'int8'. Choose from: auto, float32, bfloat16, float16."),
        ({"text": None}, "'Text' is empty. Write text, for example 'wikipedia'."),
        ({"drop": 5}, "'Blocks to drop' is 5. Write text, for example '20:25'."),
        ({"recover": 5}, "'Recoveries' is 5. Give a list, for example of ghost,rank=64."),
        ({"recover": [5]}, "'Recoveries' is [5]."),
        ({"recover": {"ghost": 1}}, "'Recoveries' is {'ghost': 1}."),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_in_a_sentence(values: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RunConfig.from_dict(values)
    assert says in str(caught.value)
    assert caught.value.setting in values


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sequences": 0}, "'Sequences' is 0. It must be at least 1."),
        ({"length": 7}, "at least 8"),
        ({"held_out": -1}, "'Held-out' is -1"),
        ({"count": 0}, "'How many layers' is 0"),
        ({"new_tokens": -1}, "'New tokens' is -1"),
        ({"batch": 0}, "Batch"),
        ({"seed": -1}, "Seed"),
        ({"seed": 2**32}, "Seed"),
        ({"temperature": -0.1}, "Temperature"),
        ({"temperature": float("nan")}, "Temperature"),
        ({"temperature": float("inf")}, "Temperature"),
        ({"top_p": 0.0}, "Top p"),
        ({"top_p": 1.01}, "Top p"),
        ({"top_p": float("nan")}, "Top p"),
        ({"prompt": " "}, "'Prompt' is empty. Write a few words to continue, or set 'New tokens' to 0."),
        ({"model": ""}, "'Model' is empty. Give one, for example embedded."),
        ({"text": " "}, "'Text' is empty. Give one, for example wikipedia."),
        ({"drop": None}, "Either 'Blocks to drop' or 'Criterion'"),
        ({"ridge": "-1"}, "Ridge '-1'"),
        ({"ridge": "abs:inf"}, "Ridge"),
        ({"rank": 0}, "'Rank' is 0. It must be at least 1."),
        ({"recover": (RecoverySpec("ghost"),) * 2}, "twice"),
        ({"recover": (RecoverySpec("ghost"), RecoverySpec("ghost", rank=8)), "rank": 8}, "twice"),
    ],
)
def test_check_names_what_cannot_work(change: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(replace(RunConfig(), **change))  # type: ignore[arg-type]
    assert says in str(caught.value)


def test_check_refuses_a_malformed_cut() -> None:
    with pytest.raises(CutError, match="overlap"):
        check(RunConfig(drop="1:4,3:5"))


def test_host_limits_are_checked_only_against_a_host() -> None:
    public = Settings(profile="public", limits=PUBLIC_LIMITS)
    large = RunConfig(sequences=1000, length=1024)
    check(large)
    with pytest.raises(ConfigError, match=r"1,040,384 tokens are more than this server allows \(131,072\)"):
        check(large, public)
    with pytest.raises(ConfigError, match="This server allows at most 128"):
        check(RunConfig(new_tokens=129), public)
    ranks = tuple(RecoverySpec("ghost", rank) for rank in range(1, 10))
    with pytest.raises(ConfigError, match="This server allows at most 8 recoveries per run"):
        check(RunConfig(recover=ranks), public)
    for name in ("text", "held_out_text", "prompt"):
        with pytest.raises(
            ConfigError, match=f"'{FIELDS[name].label}' is too long: 1.2 MB. This server allows at most 1 MB"
        ):
            check(replace(RunConfig(), **{name: "paste:" + "\N{SNOWMAN}" * 400_000}), public)
    at_once = RunConfig(batch=65)
    check(at_once)
    with pytest.raises(
        ConfigError, match=r"16,640 tokens in one forward pass .* Lower 'Batch' to 64"
    ) as caught:
        check(at_once, public)
    assert caught.value.setting == "batch"
    check(RunConfig(), public)


@pytest.mark.parametrize(
    ("recover", "specs"),
    [
        ("ghost_sink", (RecoverySpec("ghost_sink"),)),
        ("ghost,rank=64", (RecoverySpec("ghost", 64),)),
        ("ghost, affine,rank=4", (RecoverySpec("ghost"), RecoverySpec("affine", 4))),
        (["ghost", "affine,rank=16"], (RecoverySpec("ghost"), RecoverySpec("affine", 16))),
        (("ghost", RecoverySpec("drop")), (RecoverySpec("ghost"), RecoverySpec("drop"))),
        ([], ()),
        ("", ()),
    ],
)
def test_recoveries_may_be_given_as_text(recover: Any, specs: tuple[RecoverySpec, ...]) -> None:
    config = RunConfig(recover=recover)
    assert config.recover == specs == RunConfig.from_dict({"recover": recover}).recover
    assert RunConfig.from_dict(config.to_dict()) == config
    check(config)


def test_an_unknown_setting_is_refused_where_it_would_be_a_silent_wrong_experiment() -> None:
    assert RunConfig.from_dict({"sequence": 8}) == RunConfig()
    for refused in (lambda: RunConfig.from_dict({"sequence": 8}, strict=True), lambda: RunConfig(sequence=8)):  # type: ignore[call-arg]
        with pytest.raises(ConfigError, match=r"Unknown setting 'sequence'. Did you mean 'sequences'\?"):
            refused()


def test_every_field_says_what_a_control_of_it_needs() -> None:
    assert list(FIELDS) == [f.name for f in fields(RunConfig)]
    assert (FIELDS["top_p"].kind, FIELDS["top_p"].least, FIELDS["top_p"].most) == (float, 0, 1)
    assert (FIELDS["rank"].kind, FIELDS["rank"].least, FIELDS["rank"].optional) == (int, 1, True)
    assert FIELDS["bos"].choices == ("auto", "always", "never")
    assert FIELDS["new_tokens"].flag == "--new-tokens"
    assert all(getattr(RunConfig, name) == field.default for name, field in FIELDS.items())


def test_rank_and_ridge_of_the_run_fill_in_where_a_recovery_names_none() -> None:
    config = RunConfig(recover=(RecoverySpec("ghost"), RecoverySpec("affine", 4, "0")), rank=8, ridge="1e-3")
    assert config.recoveries() == (RecoverySpec("ghost", 8, "1e-3"), RecoverySpec("affine", 4, "0"))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_config_file_gives_the_run_back(seed: int, tmp_path) -> None:
    config = random_config(seed)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(config.to_dict()))
    assert build_config(path, {}) == config


def test_the_command_line_quotes_for_a_shell() -> None:
    words = shlex.split(RunConfig(prompt="it's $HOME; rm -rf *").to_command())
    assert words[words.index("--prompt") + 1] == "it's $HOME; rm -rf *"
