"""Which recoveries of a run can be ordinary checkpoints, and why the others cannot."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ghostlab.results.run import RunResult


@dataclass(frozen=True)
class Stock:
    """An answer for one recovery, or for all that are kept from it by the same.

    Attributes:
        names: Of which recoveries.
        reason: Why they cannot be ordinary checkpoints; empty if they can.
    """

    names: tuple[str, ...]
    reason: str

    @property
    def command(self) -> str:
        """What writes the checkpoint; empty if nothing can."""
        if self.reason:
            return ""
        return f"ghostlab export --result result/ --method {shlex.quote(self.names[0])} --stock --out stock/"


def stock(result: RunResult) -> list[Stock]:
    """An answer for every recovery of a run."""
    together: dict[tuple[str, str], list[str]] = {}
    for run in result.runs:
        alone = "" if run.not_stock else run.label  # each that can be has a command of its own
        together.setdefault((run.not_stock, alone), []).append(run.label)
    return [Stock(tuple(names), reason) for (reason, _), names in together.items()]
