"""What is said of windows, and what their perplexities may be compared with."""

from __future__ import annotations

import pytest

from ghostlab.results.windows import WindowRule, comparable, describe

pytestmark = pytest.mark.unit
GPTQ = WindowRule("GPTQ", "\n\n", "start of the text", "consecutive")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (WindowRule(), "16 windows of 2,048 tokens from shuffled sections of its documents; no start token"),
        (
            WindowRule(bos="every window", order="consecutive"),
            "16 windows of 2,048 tokens one after the other; each begins with the start token",
        ),
        (
            GPTQ,
            "16 windows of 2,048 tokens one after the other as the papers do (GPTQ), documents joined by an "
            "empty line; the start token is only where a text begins",
        ),
        (
            WindowRule("GPTQ", None, "nowhere", "random documents"),
            "16 windows of 2,048 tokens from random places of random documents as the papers do (GPTQ); "
            "no start token",
        ),
    ],
)
def test_a_rule_in_words(rule: WindowRule, words: str) -> None:
    assert describe(rule, 16, 2048) == words


def test_only_all_windows_of_a_paper_are_compared_with_its_table() -> None:
    assert "not with published tables" in comparable(WindowRule(), 2048, complete=True)
    assert "some of the papers'" in comparable(GPTQ, 2048, complete=False)
    assert "each other" in comparable(WindowRule("GPTQ", bos="every window"), 2048, complete=True)
    whole = comparable(GPTQ, 2048, complete=True)
    assert whole == "The windows are all of the papers', as for published perplexities at 2,048 tokens."
    assert comparable(GPTQ, 128, complete=True).endswith("at 128 tokens; most tables have 2,048.")
