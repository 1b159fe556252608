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
    with pytest.raises(ConfigError, match="is no option of a recovery"):
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
