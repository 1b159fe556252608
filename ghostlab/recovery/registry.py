"""The operators, in the order in which they are offered; a new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Iterable

from ghostlab.recovery.base import Operator
from ghostlab.registry import Registry, markdown_table
from ghostlab.spec import RecoverySpec

OPERATORS = Registry(
    "operator",
    Operator,
    (
        "ghostlab.recovery.drop:OPERATOR",
        "ghostlab.recovery.mean_shift:OPERATOR",
        "ghostlab.recovery.scalar:OPERATOR",
        "ghostlab.recovery.linearpatch:DIAGONAL",
        "ghostlab.recovery.linearpatch:ROTATED",
        "ghostlab.recovery.diag_ls:OPERATOR",
        "ghostlab.recovery.hadamard_ls:OPERATOR",
        "ghostlab.recovery.procrustes:OPERATOR",
        "ghostlab.recovery.symmetric:OPERATOR",
        "ghostlab.recovery.replaceme_ls:OPERATOR",
        "ghostlab.recovery.replaceme_cosine:OPERATOR",
        "ghostlab.recovery.lra:OPERATOR",
        "ghostlab.recovery.ghost:OPERATOR",
        "ghostlab.recovery.affine:OPERATOR",
        "ghostlab.recovery.ghost_sink:OPERATOR",
        "ghostlab.recovery.refit_layer:OPERATOR",
        "ghostlab.recovery.ghost_layer:OPERATOR",
    ),
    group="ghostlab.operators",
)


def resolve(
    specs: Iterable[RecoverySpec], rank: int | None = None, ridge: str = "auto"
) -> list[RecoverySpec]:
    """Specs with the run's rank and ridge filled in where an operator takes them and the spec names none.

    Raises:
        ConfigError: If an operator is unknown or an option does not apply to it.
    """
    found = []
    for spec in specs:
        operator = OPERATORS.find(spec.method)
        operator.check(spec)
        takes = operator.options
        found.append(spec.filled(rank if "rank" in takes else None, ridge if "ridge" in takes else "auto"))
    return found


def table() -> str:
    """The table of docs/operators.md."""
    return markdown_table(
        ("name", "formula", "parameters added", "what it can express", "source"),
        ((f"`{o.name}`", f"$`{o.formula}`$", o.adds, o.expresses, o.source) for o in OPERATORS.values()),
    )
