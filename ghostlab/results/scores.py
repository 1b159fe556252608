"""Scores of a criterion before anything is dropped: what they depend on, and those that an atlas tells.

Plain data, like :mod:`ghostlab.results.run`; :func:`ghostlab.lab.atlas.score` computes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from ghostlab.config import RunConfig, only
from ghostlab.cut import Block, Cut
from ghostlab.results import atlas as maps
from ghostlab.results.atlas import Atlas, AtlasBlock
from ghostlab.results.records import SelectionInfo
from ghostlab.spec import CriterionSpec

SETTINGS = (*maps.SETTINGS, "held_out_text", "select", "count")
"""What of a run's configuration decides its scores (``bos`` looks at the held-out text)."""
_COARSE = 2e-5
"""Figures of a stored atlas have five digits: candidates nearer than this may stand in either order."""


@dataclass(frozen=True)
class Scoring:
    """The scores of a criterion, and what was asked: a configuration as :func:`scored` returns it."""

    config: RunConfig
    selection: SelectionInfo

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"config": self.config.to_dict(), "selection": asdict(self.selection)}

    def weight(self) -> dict[int, int]:
        """Identity -> bytes in memory, as :meth:`ghostlab.results.run.RunResult.weight`."""
        return {id(self.selection): 200 * len(self.selection.labels)}


def scored(config: RunConfig) -> RunConfig:
    """A configuration with everything that plays no part in its criterion's scores as it is by default."""
    return only(config, *SETTINGS, drop=None)


def alike(one: RunConfig, other: RunConfig) -> bool:
    """Whether two configurations ask for the same scores."""
    return replace(scored(one), batch=other.batch) == scored(other)


@dataclass(frozen=True)
class _Reading:
    """How a criterion's score is read off a block of an atlas, under the one convention that it has."""

    value: Callable[[AtlasBlock], float]
    convention: str
    words: str
    single: bool = False


_READINGS = {
    "streamline": _Reading(lambda b: 1 - b.cosine, "token", "cosine per token, averaged over tokens"),
    "shortgpt": _Reading(lambda b: 1 - b.cosine, "token", "cosine per token, averaged over tokens", True),
    "angular": _Reading(
        lambda b: b.angle, "last", "angle of the last token of each window, averaged over windows"
    ),
}


def from_atlas(atlas: Atlas, config: RunConfig) -> SelectionInfo | None:
    """The scores that a configuration's criterion would give, read off an atlas of the same model and text.

    Returns:
        ``None`` if the atlas is of something else, does not hold what the criterion averages, or has too few
        digits to tell which candidates go.
    """
    spec = CriterionSpec.parse(config.select or "")
    reading = _READINGS.get(spec.name)
    same = alike(replace(atlas.config, drop=None, select=config.select, count=config.count), config)
    if reading is None or not same or any(o != ("convention", reading.convention) for o in spec.options):
        return None
    length = 1 if reading.single else config.count
    blocks = [block for block in atlas.blocks if block.length == length]
    if not 0 < config.count < atlas.layers or len(blocks) != atlas.layers - length + 1:
        return None
    values = [reading.value(block) for block in blocks]
    going = config.count if reading.single else 1
    order = sorted(range(len(values)), key=lambda index: (values[index], index))
    if going < len(order) and values[order[going]] - values[order[going - 1]] < _COARSE:
        return None
    gone = (layer for i in order[:going] for layer in range(blocks[i].start, blocks[i].stop))
    return SelectionInfo(
        criterion=config.select or "",
        convention=reading.words,
        labels=[str(Block(block.start, block.stop)) for block in blocks],
        scores=values,
        lower_is_better=True,
        chosen=str(Cut.of_layers(gone)),
    )
