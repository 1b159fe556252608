"""What the kinds of tokens say."""

from __future__ import annotations

from ghostlab.plots.formats import number, percent
from ghostlab.results.compare import best_first
from ghostlab.results.records import RecoveryRun, TokenClass
from ghostlab.results.run import RunResult

FEW = 20
"""A kind with fewer tokens is only named as left out."""


def by_kind(result: RunResult) -> str:
    """Where dropping costs most and least, where the best recovery still loses most, and if that is sure."""
    pruned = _spoken(result.baseline.pruned.agreement)
    if not pruned:
        return "Kinds of tokens were not told apart in this run."
    worst, mildest = (pick(pruned, key=lambda kind: kind.shift.value) for pick in (min, max))
    text = (
        f"Dropping costs most on {_named(worst)} ({number(-worst.shift.value)} nats per token) and least on "
        f"{_named(mildest)} ({number(-mildest.shift.value)})"
    )
    found = best_first((run for run in result.runs if _spoken(run.agreement)), lambda run: run)
    if found:
        text += f"; {_left(found[0])}"
    return f"{text}.{_rare(result.baseline.pruned.agreement)}"


def _rare(agreement: object) -> str:
    """Which kinds the sentence leaves out; nothing when there are none."""
    names = [_named(kind) for kind in getattr(agreement, "classes", []) if 0 < kind.tokens < FEW]
    return f" Left out, with fewer than {FEW} tokens: {', '.join(names)}." if names else ""


def _left(run: RecoveryRun) -> str:
    worst = min(_spoken(run.agreement), key=lambda kind: kind.shift.value)
    sure = "" if worst.shift.high < 0 else ", which may be chance"
    name = run.label or run.method
    assert run.agreement is not None
    five = percent(run.agreement.top5_agreement.value)
    return (
        f"{name} still loses most on {_named(worst)} ({number(-worst.shift.value)}{sure}) and has the "
        f"original's favourite among its five likeliest for {five} of all tokens"
    )


def _spoken(agreement: object) -> list[TokenClass]:
    return [kind for kind in getattr(agreement, "classes", []) if kind.tokens >= FEW]


def _named(kind: TokenClass) -> str:
    return {
        "first": "the first token of a window",
        "digit": "digits",
        "punctuation": "punctuation",
        "word start": "beginnings of words",
        "word piece": "later pieces of words",
        "newline": "line breaks",
    }.get(kind.name, kind.name)
