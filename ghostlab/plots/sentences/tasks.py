"""What zero-shot tasks say."""

from __future__ import annotations

from ghostlab.plots.formats import percent, plural
from ghostlab.results import RunResult
from ghostlab.zeroshot import ZeroShot

SURE = 0.05
FEW = 100
"""Fewer questions in all cannot rank variants: one answer more moves their mean by over a point."""


def tasks(result: RunResult) -> str:
    """What the best recovery and plain dropping retain, on how many tasks a loss is sure, what is missing."""
    found = result.zero_shot
    if found is None:
        return "No zero-shot tasks were asked yet."
    first, *others = found.variants
    if not others:
        return f"{first} answers {percent(found.average(first))} of the questions rightly, mean over tasks."
    recovered = [name for name in others if name != "pruned"] or others
    best = max(recovered, key=lambda name: found.retained(name).value)
    kept = found.retained(best)
    text = (
        f"Over {plural(len(found.tasks), 'task')} {best} retains {percent(kept.value)} "
        f"[{percent(kept.low)}, {percent(kept.high)}] of the original's accuracy"
    )
    if best != "pruned" and "pruned" in others:
        text += f", plain dropping {percent(found.retained('pruned').value)}"
    worse = sum(_worse(found, best, task.name) for task in found.tasks)
    sure = "on none of them is it surely worse" if not worse else f"surely worse on {worse} of them"
    left_out = (
        f" Left out: {', '.join(found.left_out)}, whose data are out of reach." if found.left_out else ""
    )
    return f"{text}; {sure} than the original (McNemar, p < {SURE}).{_doubt(found, others)}{left_out}"


def _doubt(found: ZeroShot, others: list[str]) -> str:
    """What so few questions cannot tell; nothing where they tell variants apart."""
    questions = plural(sum(task.documents for task in found.tasks), "question")
    kept = [found.retained(name) for name in others]
    if all(metric.low <= 1 <= metric.high for metric in kept):
        return f" But {questions} cannot tell any variant from the original: every interval holds 100 %."
    if sum(task.documents for task in found.tasks) < FEW:
        return f" But {questions} are too few to tell the variants apart."
    return ""


def _worse(found: ZeroShot, name: str, task: str) -> bool:
    test = found.paired(name, task)
    return test.difference.value < 0 and test.p < SURE
