"""What zero-shot tasks say."""

from __future__ import annotations

from ghostlab.plots.formats import percent, plural
from ghostlab.results.run import RunResult
from ghostlab.results.statistics import ALPHA
from ghostlab.results.zeroshot import ZeroShot

FEW = 100
"""Fewer questions in all cannot rank variants: one answer more moves their mean by over a point."""


def tasks(result: RunResult) -> str:
    """What the best recovery and plain dropping retain, on how many tasks a loss is sure, what is missing.

    Tasks on which the original guesses count apart: neither the first figures nor the best come from them.
    """
    found = result.zero_shot
    if found is None:
        return "No zero-shot tasks were asked yet."
    first, *others = found.variants
    if not others:
        return f"{first} answers {percent(found.average(first))} of the questions rightly, mean over tasks."
    guessed = found.guessed()
    aside = guessed if len(guessed) < len(found.tasks) else []
    recovered = [name for name in others if name != "pruned"] or others
    best = max(recovered, key=lambda name: found.retained(name, without=aside).value)
    named = list(dict.fromkeys((best, "pruned") if "pruned" in others else (best,)))
    doubts = f"{_guessing(found, guessed, named)}{_few(found, others, aside)}"
    return f"{_kept(found, best, named, aside)}{_sure(found, best)}{doubts}{_left_out(found)}"


def _kept(found: ZeroShot, best: str, named: list[str], aside: list[str]) -> str:
    over = plural(len(found.told()), "task")
    over = f"the {over} on which the original is above chance," if aside else over
    kept = found.retained(best, without=aside)
    text = (
        f"Over {over} {best} retains {percent(kept.value)} [{percent(kept.low)}, {percent(kept.high)}] "
        "of the original's accuracy"
    )
    if named[1:]:
        text += f", plain dropping {percent(found.retained('pruned', without=aside).value)}"
    return text


def _sure(found: ZeroShot, best: str) -> str:
    worse = sum(_worse(found, best, task.name) for task in found.told())
    sure = "on none of them is it surely worse" if not worse else f"surely worse on {worse} of them"
    return f"; {sure} than the original (McNemar, p < {ALPHA})."


def _guessing(found: ZeroShot, guessed: list[str], named: list[str]) -> str:
    """Tasks on which the original is not above chance, and what is retained when they count too."""
    if not guessed:
        return ""
    chance = {task.name: task.chance for task in found.tasks}
    shown = ", ".join(
        f"{name} ({percent(found.accuracy(found.variants[0], name).value)}, chance {percent(chance[name])})"
        for name in guessed
    )
    said = f" {shown} {'is' if len(guessed) == 1 else 'are'} not above chance for the original"
    if len(guessed) == len(found.tasks):
        return f" But{said}: these figures say nothing."
    best, *dropping = (percent(found.retained(name).value) for name in named)
    kept = "".join(f", plain dropping {share}" for share in dropping)
    return f"{said}; with {'it' if len(guessed) == 1 else 'them'} {named[0]} would retain {best}{kept}."


def _few(found: ZeroShot, others: list[str], aside: list[str]) -> str:
    """What so few questions cannot tell; nothing where they tell variants apart."""
    asked = sum(task.documents for task in found.told())
    questions = plural(asked, "question")
    kept = [found.retained(name, without=aside) for name in others]
    if all(metric.low <= 1 <= metric.high for metric in kept):
        return f" But {questions} cannot tell any variant from the original: every interval holds 100 %."
    if asked < FEW:
        return f" But {questions} are too few to tell the variants apart."
    return ""


def _left_out(found: ZeroShot) -> str:
    if not found.left_out:
        return ""
    return f" Left out: {', '.join(found.left_out)}, whose data are out of reach."


def _worse(found: ZeroShot, name: str, task: str) -> bool:
    test = found.paired(name, task)
    return test.difference.value < 0 and test.p < ALPHA
