"""Recovery specifications and ridge settings."""

from __future__ import annotations

import pytest

from ghostlab.errors import ConfigError
from ghostlab.spec import RecoverySpec, parse_ridge

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "spec",
    [
        RecoverySpec(m, r, x)
        for m in ("ghost", "linear_patch")
        for r in (None, 1, 999999)
        for x in ("auto", "0", "1e-4", "abs:1e-6")
    ],
    ids=str,
)
def test_text_form_round_trip(spec: RecoverySpec) -> None:
    assert RecoverySpec.parse(str(spec)) == spec


def test_spaces_are_allowed() -> None:
    assert RecoverySpec.parse(" ghost , rank=64 ") == RecoverySpec("ghost", 64)


@pytest.mark.parametrize(
    "text",
    [
        "ghost,",
        "ghost,rank",
        "ghost,rank=",
        "ghost,rank=-1",
        "ghost,rank=²",
        "ghost,rank=1.5",
        "ghost,ridge=",
        "ghost,rank=" + "9" * 5000,
    ],
)
def test_parse_refuses_what_is_no_option(text: str) -> None:
    with pytest.raises(ConfigError, match="Unknown option"):
        RecoverySpec.parse(text)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("auto", ("auto", 0.0)),
        ("0", ("relative", 0.0)),
        ("1e-4", ("relative", 1e-4)),
        ("abs:1e-6", ("absolute", 1e-6)),
    ],
)
def test_ridge(text: str, meaning: tuple[str, float]) -> None:
    assert parse_ridge(text) == meaning


@pytest.mark.parametrize("text", ["", "none", "-1e-4", "nan", "inf", "abs:", "abs:-1", "rel:1"])
def test_ridge_refuses(text: str) -> None:
    with pytest.raises(ConfigError, match="not understood"):
        parse_ridge(text)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("", []),
        (" ,;\n", []),
        ("ghost", ["ghost"]),
        ("ghost, affine", ["ghost", "affine"]),
        ("ghost,rank=64\naffine , ridge = 1e-3; drop", ["ghost,rank=64", "affine,ridge=1e-3", "drop"]),
        ("lra rank=4 ridge=abs:1e-6 drop", ["lra,rank=4,ridge=abs:1e-6", "drop"]),
    ],
)
def test_several_recoveries_are_read_however_they_are_separated(text: str, read: list[str]) -> None:
    assert [str(spec) for spec in RecoverySpec.parse_all(text)] == read


@pytest.mark.parametrize("text", ["rank=4", "rank=4 ghost", "ghost rank=", "ghost rank=x"])
def test_options_without_a_recovery_or_a_value_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        RecoverySpec.parse_all(text)
