"""Made-up answers to zero-shot tasks."""

from __future__ import annotations

from collections.abc import Sequence

from ghostlab.results.zeroshot import Accuracy, TaskInfo, ZeroShot

CHANCE = {"arc_easy": 0.25, "boolq": 0.5, "copa": 0.5, "piqa": 0.5}


def make_zero_shot(variants: Sequence[str], tasks: Sequence[str], documents: int = 60) -> ZeroShot:
    """The second variant has lost most of what the first knew, the others less; only arc tasks normalise."""
    found: dict[str, dict[str, Accuracy]] = {}
    for order, name in enumerate(variants):
        right = documents * (8 if not order else 4 if order == 1 else 7) // 10
        correct = [1] * right + [0] * (documents - right)
        found[name] = {task: Accuracy(right / documents, 0.05, correct) for task in tasks}
    normed = {name: {t: a for t, a in row.items() if t.startswith("arc")} for name, row in found.items()}
    infos = [
        TaskInfo(task, "1.0", "validation", "shipped", documents, chance=CHANCE.get(task)) for task in tasks
    ]
    return ZeroShot("a small model", list(variants), infos, found, normed, documents, {"race": "no network"})
