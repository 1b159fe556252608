"""What figures are drawn from: one row per variant, of one run or of the two sides of a comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ghostlab.plots.style import ORIGINAL, PRUNED, Role, roles
from ghostlab.results.compare import best_first
from ghostlab.results.operator import OperatorReport
from ghostlab.results.probe import Probe
from ghostlab.results.records import BoundaryReport, RecoveryRun, Scores
from ghostlab.results.run import RunResult


@dataclass(frozen=True)
class Row:
    """One variant in a figure: how it is drawn, what its run calls it, and what was measured of it.

    Attributes:
        run: The recovery; ``None`` for the original and the pruned model of a run.
        block: Which dropped block is looked at; ``None`` for all together.
        side: Whether it is one of two that are compared.
    """

    role: Role
    variant: str
    scores: Scores
    result: RunResult
    run: RecoveryRun | None = None
    block: int | None = None
    side: bool = False

    @property
    def name(self) -> str:
        """What it is called in the figure."""
        return self.role.name

    @property
    def is_original(self) -> bool:
        """Whether it is the original of a run that others are held against."""
        return self.variant == "original" and not self.side

    @property
    def probes(self) -> list[Probe]:
        """Its altered maps, in the order in which they were measured."""
        return [probe for probe in self.result.probes if probe.label == self.variant]

    @property
    def state(self) -> BoundaryReport | None:
        """How well it restores the state, of the block or over all of them."""
        if self.run is None:
            return None
        if self.block is None:
            return self.run.boundary
        return self.run.blocks[self.block] if self.block < len(self.run.blocks) else None

    @property
    def operator(self) -> OperatorReport | None:
        """The fitted map of the block, or of the first one."""
        block = self.block or 0
        return self.run.operators[block] if self.run and block < len(self.run.operators) else None


Rows = Sequence[Row]
Item = TypeVar("Item")


def rows(result: RunResult, block: int | None = None) -> list[Row]:
    """The original, the pruned model and each recovery of a run, in order."""
    ends = result.baseline
    return [
        Row(ORIGINAL, "original", ends.original, result, block=block),
        Row(PRUNED, "pruned", ends.pruned, result, block=block),
        *(
            Row(role, run.label, run, result, run, block)
            for role, run in zip(roles(run.label for run in result.runs), result.runs, strict=True)
        ),
    ]


def where(has: Callable[[Row], object]) -> Callable[[Rows], Rows]:
    """A function that keeps the rows for which ``has`` holds."""
    return lambda given: [row for row in given if has(row)]


def recoveries(given: Rows) -> list[tuple[Row, RecoveryRun]]:
    """Rows that are recoveries."""
    return [(row, row.run) for row in given if row.run is not None]


def ranked(given: Rows) -> list[tuple[Row, RecoveryRun]]:
    """Recoveries, the best first; those without a finite likelihood left out."""
    return best_first(recoveries(given), lambda pair: pair[1])


def states(given: Rows) -> list[tuple[Row, BoundaryReport]]:
    """Rows with a restored state."""
    return [(row, row.state) for row in given if row.state is not None]


def operators(given: Rows) -> list[tuple[Row, OperatorReport]]:
    """Rows with a fitted map."""
    return [(row, row.operator) for row in given if row.operator is not None]


def greatest(pairs: Sequence[tuple[Row, Item]], of: Callable[[Item], float]) -> tuple[Row, Item]:
    """The pair whose value is greatest; one that is not finite comes last."""

    def value(pair: tuple[Row, Item]) -> float:
        return of(pair[1]) if math.isfinite(of(pair[1])) else -math.inf

    return max(pairs, key=value)
