"""What zero-shot tasks found: plain data with its statistics, shared by the library, the command and the app.

Accuracies are lm-evaluation-harness's own. Each keeps which documents were answered rightly, so that two
models are compared document by document.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ghostlab.errors import ConfigError
from ghostlab.results.records import Metric
from ghostlab.results.statistics import Verdict, above_chance, compare_answers, ratio_of_answers
from ghostlab.storage import Record

if TYPE_CHECKING:
    import pandas as pd

Which = Literal["acc", "acc_norm"]
"""``acc`` takes the likeliest choice; ``acc_norm`` the likeliest per character, where the task has it."""

SUITES: dict[str, tuple[str, ...]] = {
    "ghosted-layers": (
        *("arc_easy", "arc_challenge", "hellaswag", "winogrande", "boolq"),
        *("openbookqa", "rte", "copa", "race"),
    ),
    "linearpatch": (
        *("arc_challenge", "arc_easy", "boolq", "hellaswag", "piqa"),
        *("winogrande", "wsc273", "race", "copa"),
    ),
    "shift-llm": ("boolq", "piqa", "hellaswag", "winogrande", "arc_easy", "arc_challenge", "openbookqa"),
}
"""The tasks of the papers' tables, without examples in the prompt; SHIFT-LLM's are those of LLM-Pruner."""


@dataclass(frozen=True)
class TaskInfo:
    """One task as it was evaluated.

    Attributes:
        name, version: As lm-evaluation-harness names them.
        split: Which part of the data set was used.
        source: ``shipped`` for data that are installed, otherwise the data set of the hub.
        documents: The number of questions.
        note: Where the data differ from what the harness would fetch.
        chance: Share of right answers that guessing gives: the mean of one over the number of choices.
    """

    name: str
    version: str
    split: str
    source: str
    documents: int
    note: str = ""
    chance: float | None = None


@dataclass(frozen=True)
class Accuracy:
    """Share of correct answers, its standard error, and 1 or 0 for each document in order."""

    value: float
    stderr: float
    correct: list[int] = field(repr=False)


@dataclass(frozen=True)
class ZeroShot(Record):
    """Accuracies of several variants of a model on several tasks.

    Attributes:
        model: Name of the model.
        variants: Their names; the first is what the others are compared with.
        tasks: The tasks that were evaluated.
        acc, acc_norm: Variant -> task -> accuracy; ``acc_norm`` only where the task has it.
        limit: The most documents of each task, the first ones; ``None`` for all.
        left_out: Task -> why it could not be evaluated.
    """

    WHAT: ClassVar[str] = "result of zero-shot tasks"
    model: str
    variants: list[str]
    tasks: list[TaskInfo]
    acc: dict[str, dict[str, Accuracy]]
    acc_norm: dict[str, dict[str, Accuracy]]
    limit: int | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    schema: int = Record.SCHEMA

    def accuracy(self, variant: str, task: str, which: Which = "acc") -> Accuracy:
        """The accuracy of a variant on a task; ``acc`` where a task has no ``acc_norm``."""
        if which == "acc_norm" and task in self.acc_norm.get(variant, {}):
            return self.acc_norm[variant][task]
        return self.acc[variant][task]

    def average(self, variant: str, which: Which = "acc") -> float:
        """Mean accuracy over the tasks."""
        return float(np.mean([self.accuracy(variant, task.name, which).value for task in self.tasks]))

    def at_chance(self, which: Which = "acc") -> list[str]:
        """Tasks on which the first variant is not significantly above chance, so that ratios say nothing."""
        first = self.variants[0]
        return [
            task.name
            for task in self.tasks
            if task.chance is not None
            and not above_chance(self.accuracy(first, task.name, which).correct, task.chance)
        ]

    def informative(self, which: Which = "acc") -> list[TaskInfo]:
        """Tasks on which the first variant is above chance; all of them if there is none."""
        guessed = self.at_chance(which)
        return [task for task in self.tasks if task.name not in guessed] or self.tasks

    def retained(
        self, variant: str, which: Which = "acc", seed: int = 0, *, without: Container[str] = ()
    ) -> Metric:
        """Retained performance: the mean over tasks of the ratio to the first variant's accuracy.

        The interval is a bootstrap over the documents of each task, paired. Tasks of which the first variant
        gets nothing right have no ratio and are left out, and so are those named by ``without``; with none
        left the value is NaN.
        """
        pairs = [
            [self.accuracy(name, task.name, which).correct for name in (variant, self.variants[0])]
            for task in self.tasks
            if task.name not in without
        ]
        return ratio_of_answers([(ours, theirs) for ours, theirs in pairs if any(theirs)], seed)

    def paired(
        self, variant: str, task: str, which: Which = "acc", *, other: str | None = None, seed: int = 0
    ) -> Verdict:
        """``variant`` against ``other`` (the first variant) on the same documents."""
        ours = self.accuracy(variant, task, which).correct
        theirs = self.accuracy(other or self.variants[0], task, which).correct
        return compare_answers(ours, theirs, seed)

    def to_frame(self) -> pd.DataFrame:
        """One row per variant and task: accuracies, standard errors, and the test against the first."""
        import pandas as pd

        rows = [self._row(variant, task) for variant in self.variants for task in self.tasks]
        frame: pd.DataFrame = pd.DataFrame(rows)
        return frame

    def _row(self, variant: str, task: TaskInfo) -> dict[str, Any]:
        row: dict[str, Any] = {"variant": variant, "task": task.name, "documents": task.documents}
        row["chance"] = task.chance
        for which, table in (("acc", self.acc), ("acc_norm", self.acc_norm)):
            found = table.get(variant, {}).get(task.name)
            row |= {which: found and found.value, f"{which}_stderr": found and found.stderr}
        test = self.paired(variant, task.name)
        return row | {
            "difference": test.difference.value,
            "low": test.difference.low,
            "high": test.difference.high,
            "p": test.p,
        }


def parse_tasks(names: str | Sequence[str]) -> list[str]:
    """Task names from ``arc_easy,hellaswag``, from a list, or from the name of a suite; each once.

    Raises:
        ConfigError: If there is none.
    """
    words = names.split(",") if isinstance(names, str) else list(names)
    found = [task for word in words if word.strip() for task in SUITES.get(word.strip(), (word.strip(),))]
    if not found:
        raise ConfigError(
            "No task is given.", f"Give tasks, such as arc_easy,hellaswag, or a suite: {', '.join(SUITES)}."
        )
    return list(dict.fromkeys(found))
