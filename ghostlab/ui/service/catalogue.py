"""What the app says of operators and criteria before torch is loaded: a written copy of the two registries.

``python -m ghostlab.ui.service.catalogue`` writes the copy anew; a test tells when that is due.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ghostlab.spec import Group, Option

WRITTEN = Path(__file__).with_name("offers.json")


@dataclass(frozen=True)
class OperatorOffer:
    """A recovery operator, as its registry entry describes it."""

    name: str
    title: str
    summary: str
    formula: str
    source: str
    group: Group
    adds: str
    options: dict[str, Option]


@dataclass(frozen=True)
class CriterionOffer:
    """A selection criterion, as its registry entry describes it."""

    name: str
    title: str
    summary: str
    formula: str
    source: str
    unit: str
    cost: str
    options: dict[str, Option]


@dataclass(frozen=True)
class Offers:
    """Everything that can be asked for, in the order in which it is offered."""

    operators: list[OperatorOffer]
    criteria: list[CriterionOffer]


@cache
def offers() -> Offers:
    """The written copy."""
    return TypeAdapter(Offers).validate_json(WRITTEN.read_bytes())


def copied() -> Offers:
    """A fresh copy of the registries; loads torch."""
    from ghostlab.pruning import CRITERIA
    from ghostlab.recovery import METHODS

    return Offers(
        [OperatorOffer(**_shared(OperatorOffer, entry)) for entry in METHODS.values()],
        [CriterionOffer(**_shared(CriterionOffer, entry)) for entry in CRITERIA.values()],
    )


def _shared(kind: type[OperatorOffer] | type[CriterionOffer], entry: Any) -> Mapping[str, Any]:
    values = {field.name: getattr(entry, field.name) for field in fields(kind)}
    return {**values, "options": dict(entry.options)}


if __name__ == "__main__":
    WRITTEN.write_text(json.dumps(asdict(copied()), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
