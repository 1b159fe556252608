"""Several texts as one: ``wikipedia+novels``, with weights ``3*wikipedia+1*novels``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ghostlab.errors import TextError
from ghostlab.text.documents import Documents, Text

_PART = re.compile(r"\s*(?:(?P<weight>[\d.]+)\s*\*)?\s*(?P<source>\S.*?)\s*")


@dataclass(frozen=True)
class Part:
    """A source of a mixture and its weight."""

    source: str
    weight: float = 1.0


def parse_mixture(text: str) -> list[Part]:
    """The parts of ``3*wikipedia+novels``; a part without a weight has weight 1.

    Raises:
        TextError: If it has another form, or a source comes twice.
    """
    parts = []
    for word in text.split("+"):
        match = _PART.fullmatch(word)
        try:
            weight = float(match["weight"] or 1) if match else 0.0
        except ValueError:
            weight = 0.0
        if match is None or not 0 < weight < math.inf:
            raise TextError(f"Invalid mixture '{text}'.", "Write wikipedia+novels or 3*wikipedia+1*novels.")
        parts.append(Part(match["source"], weight))
    names = [part.source for part in parts]
    if len(set(names)) < len(names):
        raise TextError(f"'{text}' names a text twice.", "Give it a weight: 2*wikipedia+novels.")
    return parts


def mix(texts: Sequence[Text], parts: Sequence[Part], name: str) -> Text:
    """One text in which each part has its weight's share of the characters, calibration and held-out alike.

    As much is taken as the shares allow, whole documents from the beginning of each part. Windows are then
    drawn from all of it; a paper's own windows do not apply to a mixture.
    """
    weights = [part.weight for part in parts]
    names = [f"{part.weight:g}*{part.source}" for part in parts]
    return Text(
        name=name,
        title=" + ".join(text.title for text in texts) if len(set(weights)) == 1 else " + ".join(names),
        licence="; ".join(dict.fromkeys(text.licence for text in texts)),
        calibration=_mixed([text.calibration for text in texts], weights, f"{name}, calibration"),
        held_out=_mixed([text.held_out for text in texts], weights, f"{name}, held out"),
        whole=_mixed([text.whole for text in texts], weights, name),
    )


def _mixed(parts: Sequence[Documents], weights: Sequence[float], name: str) -> Documents:
    weighted = list(zip(parts, weights, strict=True))
    unit = min(part.characters / weight for part, weight in weighted)
    return Documents(name, tuple(text for part, weight in weighted for text in _first(part, unit * weight)))


def _first(documents: Documents, characters: float) -> list[str]:
    """Documents from the beginning, up to the one with which ``characters`` is reached best; at least one."""
    beginning: list[str] = []
    size = 0
    for text in documents:
        if beginning and size + len(text) / 2 > characters:
            break
        beginning.append(text)
        size += len(text)
    return beginning
