"""Tokens as HTML: shade and underline by surprise, the departure, what hovering says, nothing unescaped."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from ghostlab.plots import tokens
from ghostlab.results.generation import Generation, Token
from tests.helpers.results import make_result

pytestmark = pytest.mark.unit


def token(text: str = " a", lost: float = 0.0, **rest: str) -> Token:
    return Token(text, -0.5, -0.5 - lost, **rest)


def written(*made: Token, leaves: int | None = None, text: str | None = None, variant: str = "ghost") -> str:
    whole = "".join(one.text for one in made) if text is None else text
    return tokens.marked(Generation(variant, whole, len(made), 1.0, 0.2, leaves=leaves, written=list(made)))


@pytest.mark.parametrize(
    ("factor", "level"),
    [(0.01, 0), (1.0, 0), (1.9, 0), (2.1, 1), (9.9, 1), (11, 2), (99, 2), (101, 3), (1e9, 3)],
)
def test_a_step_of_shade_is_a_factor_of_likelihood(factor: float, level: int) -> None:
    one = token(lost=math.log(factor))
    assert tokens.level(one) == level
    assert (f"gl-s{level}" in written(one)) == (level > 0)


def test_every_shade_is_underlined_too_and_explained() -> None:
    css, legend = tokens.CSS.read_text(encoding="utf-8"), tokens.legend()
    for level in (1, 2, 3):
        assert re.search(rf"\.gl-s{level} {{ background: [^;]*; border-bottom: {level}px solid", css)
        assert f"gl-s{level}" in legend
    assert [words in legend for words in ("2 to 10 times", "10 to 100 times", "over 100 times")] == [True] * 3


def test_a_token_tells_both_likelihoods_and_what_the_original_would_write() -> None:
    shown = written(token(" sea", math.log(10), instead=" rocks"))
    assert 'data-tip="“ sea”\nghost: log-probability \N{MINUS SIGN}0.50 (61 %)\n' in shown
    assert "original: log-probability \N{MINUS SIGN}2.80 (6.1 %)\n" in shown
    assert "likeliest to the original: “ rocks”" in shown
    assert "below 0.1 %" in written(token(" sea", 20.0))
    assert "ghost:" not in written(token(), variant="original")


def test_a_text_is_one_stop_of_the_tab_key() -> None:
    shown = written(token(" a"), token(" b"), token(" c"))
    assert re.findall(r'tabindex="(-?\d)" data-tip', shown) == ["0", "-1", "-1"]
    assert "title=" not in shown


def test_the_departure_is_marked_in_front_of_its_token() -> None:
    shown = written(token(" a"), token(" b"), token(" c"), leaves=1)
    assert shown.count("gl-leaves") == shown.count("gl-here") == 1
    assert shown.index(">a<") < shown.index("gl-leaves") < shown.index(">b<")
    assert "gl-leaves" not in written(token(" a"), leaves=None)


def test_special_tokens_and_parts_of_characters_are_told_apart_from_text() -> None:
    shown = written(
        token(" a"), token(""), token("\N{SNOWMAN}"), token("\n"), token("<|end|>"), text=" a\N{SNOWMAN}\n"
    )
    kinds = re.findall(r'class="([^"]*)"', shown)
    assert kinds == ["gl-token", "gl-token gl-blank", "gl-token", "gl-token gl-blank", "gl-token gl-special"]
    assert "part of a character" in shown
    assert "&lt;|end|&gt;</span>" in shown


def test_markup_of_others_stays_text() -> None:
    nasty = '"><script>alert(1)</script>'
    made = Generation(nasty, nasty, 1, 1.0, 0.5, leaves=0, written=[token(nasty, 9.0, instead=nasty)])
    for shown in (tokens.marked(made), tokens.marked(replace(made, written=[]))):
        assert "<script" not in shown
        assert '""' not in shown


def test_words_on_a_continuation_are_its_own_numbers() -> None:
    original, pruned, ghost, _ = make_result().generations
    assert tokens.timing(pruned) == "first token after 0.12 s, then 7.4 tokens/s"
    assert tokens.timing(Generation("a", "b", 1, 0.0)) == "1 token"
    assert tokens.departure(original) == "8 tokens: the original's own path"
    assert tokens.departure(ghost) == "leaves the original's path at token 2 of 5"
    assert tokens.departure(replace(ghost, leaves=None)) == "on the original's path for all 5 tokens"
    assert tokens.departure(replace(ghost, written=[])) == ""
    assert (tokens.reuse(original), tokens.reuse(ghost)[:9]) == ("", "20 layers")


def test_the_sentence_names_the_most_faithful_and_how_strange_each_text_is() -> None:
    original, pruned, ghost, affine = make_result().generations
    even = replace(ghost, written=[token(lost=math.log(3.0))] * 5)
    said = tokens.sentence([original, pruned, even])
    assert said.startswith("ghost keeps to the original's path for 1 token. ")
    assert said.endswith("; ghost 3.0.")
    surer = replace(ghost, written=[token(lost=-1.0)] * 5)
    assert tokens.sentence([original, surer]).endswith(": ghost no less.")
    assert tokens.sentence([original, ghost, affine]).startswith("ghost and affine keep ")
    assert tokens.sentence([original, pruned]).startswith("Every variant leaves the original's path with its")
    assert tokens.sentence([original]) == ""
    assert tokens.sentence([replace(one, written=[]) for one in (original, ghost)]) == ""


def test_a_loop_is_said_to_be_easy_to_predict() -> None:
    original = make_result().generations[0]

    def writes(variant: str, words: list[str]) -> Generation:
        made = [token(f" {word}") for word in words]
        return Generation(variant, "", len(made), 1.0, leaves=3, written=made)

    loop = writes("ghost", ["I", "am", "a", "medical", "assistant", "."] * 4)
    distinct = [str(number) for number in range(24)]
    said = tokens.sentence(
        [original, loop, writes("pruned", distinct), writes("affine", ["the", "a", "of"] * 6)]
    )
    assert said.startswith("ghost, pruned and affine keep to the original's path for 3 tokens. ")
    assert said.endswith(" But ghost and affine repeat themselves, and a loop is easy to predict.")
    assert "loop" not in tokens.sentence([original, writes("pruned", distinct)])
    assert not tokens.repeats(writes("ghost", ["a"] * 10)), "too short to tell"
