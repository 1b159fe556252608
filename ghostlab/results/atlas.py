"""The atlas: for every block of consecutive layers, what dropping it costs and what a map brings back.

And the scores of a criterion before anything is dropped, some of which can be read off an atlas.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ghostlab.config import RunConfig, only
from ghostlab.cut import Block, Cut
from ghostlab.errors import ConfigError
from ghostlab.results.records import SelectionInfo
from ghostlab.spec import CriterionSpec
from ghostlab.storage import Record

if TYPE_CHECKING:
    import pandas as pd


DEFAULT_LENGTHS = tuple(range(1, 11))
ATLAS_SETTINGS = ("model", "revision", "text", "sequences", "length", "bos", "seed", "batch", "dtype")
"""What of a run's configuration plays a part in an atlas."""


def atlas_config(config: RunConfig) -> RunConfig:
    """A configuration with everything that plays no part in an atlas as it is by default."""
    return only(config, *ATLAS_SETTINGS)


@dataclass(frozen=True)
class AtlasBlock:
    """One block ``start:stop`` (layers start .. stop - 1).

    Errors are ||Y' - Y|| / ||Y|| on held-out ordinary tokens, with Y the states after the block and Y' what
    takes their place; ordinary tokens are neither first in their window nor massive at any boundary.

    Attributes:
        cosine: Mean cosine of the states before and after the block, per token, all calibration tokens.
        angle: Mean arccos of the same over pi, of the last token of each window.
        gap: Error of plain dropping, ||X - Y|| / ||Y||.
        scalar: Error after one number, least squares on all tokens.
        symmetric: Error after the best symmetric map, on all tokens, at the ridge of ``ghost``.
        ghost: Error after the unconstrained map, on all tokens.
        ghost_sink: Error after an affine map fitted on ordinary tokens.
        effective_rank: (sum l)^2 / sum l^2 of the eigenvalues l of M'GM: along how many directions the
            correction of ``ghost_sink`` moves the states.
        kl: KL(original || recovered with ``ghost_sink``) in nats per token, for the best blocks only.
    """

    start: int
    stop: int
    cosine: float
    angle: float
    gap: float
    scalar: float
    symmetric: float
    ghost: float
    ghost_sink: float
    effective_rank: float
    kl: float | None = None

    @property
    def length(self) -> int:
        """Number of layers."""
        return self.stop - self.start


MOST_LENGTH = 2000
"""The longest block that may be requested, in layers; no model has as many."""
_LENGTHS = re.compile(r"([0-9]{1,4})(?:\s*-\s*([0-9]{1,4}))?")


def parse_lengths(text: str) -> tuple[int, ...]:
    """Read block lengths: ``1-10``, ``4,6`` or ``1-3,8``, ascending.

    Raises:
        ConfigError: If it is none of these, or longer than any model.
    """
    lengths: set[int] = set()
    for part in text.split(","):
        match = _LENGTHS.fullmatch(part.strip())
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= low <= high <= MOST_LENGTH:
            raise ConfigError(f"Invalid block lengths '{text[:40]}'.", "Write for example 1-10 or 2,4,6.")
        lengths |= set(range(low, high + 1))
    return tuple(sorted(lengths))


@dataclass(frozen=True)
class Atlas(Record):
    """Figures of every block.

    Attributes:
        config: Says which model, text and windows; what it drops and recovers plays no part.
        fitted, tried: Ordinary tokens that maps were fitted on, and that errors are taken on.
        special: Tokens that are first in their window or massive.
        blocks: One entry per block, by start, then stop.
    """

    WHAT: ClassVar[str] = "atlas"
    config: RunConfig
    model: str
    layers: int
    fitted: int
    tried: int
    special: int
    blocks: list[AtlasBlock]
    seconds: float
    versions: dict[str, str]

    @property
    def lengths(self) -> list[int]:
        """How many layers blocks have, ascending."""
        return sorted({block.length for block in self.blocks})

    def block(self, start: int, stop: int) -> AtlasBlock | None:
        """The entry of a block, if it was measured."""
        return next((b for b in self.blocks if (b.start, b.stop) == (start, stop)), None)

    def best(self, length: int) -> AtlasBlock | None:
        """The block of ``length`` layers of which ``ghost_sink`` leaves least."""
        found = [block for block in self.blocks if block.length == length]
        return min(found, key=lambda block: block.ghost_sink, default=None)

    def rounded(self, digits: int) -> Atlas:
        """The same with every figure to so many significant digits."""

        def short(value: Any) -> Any:
            return float(f"{value:.{digits}g}") if isinstance(value, float) else value

        rounded = [{name: short(value) for name, value in vars(block).items()} for block in self.blocks]
        return replace(self, blocks=[AtlasBlock(**values) for values in rounded])

    def weight(self) -> dict[int, int]:
        """Identity -> bytes in memory, as :meth:`ghostlab.results.run.RunResult.weight`."""
        return {id(self.blocks): 1000 * len(self.blocks)}

    def to_frame(self) -> pd.DataFrame:
        """One row per block."""
        import pandas as pd

        frame: pd.DataFrame = pd.DataFrame([asdict(block) for block in self.blocks])
        return frame


SCORE_SETTINGS = (*ATLAS_SETTINGS, "held_out_text", "select", "count")
"""What of a run's configuration decides its scores (``bos`` looks at the held-out text)."""
_COARSE = 2e-5
"""Figures of a stored atlas have five digits: candidates nearer than this may stand in either order."""


@dataclass(frozen=True)
class BlockScores(Record):
    """The scores of a criterion and their configuration, as :func:`scores_config` returns it."""

    WHAT: ClassVar[str] = "scores of a criterion"
    config: RunConfig
    selection: SelectionInfo

    def weight(self) -> dict[int, int]:
        """Identity -> bytes in memory, as :meth:`ghostlab.results.run.RunResult.weight`."""
        return {id(self.selection): 200 * len(self.selection.labels)}


def scores_config(config: RunConfig) -> RunConfig:
    """A configuration with everything that plays no part in its criterion's scores as it is by default."""
    return only(config, *SCORE_SETTINGS, drop=None)


def same_scores(one: RunConfig, other: RunConfig) -> bool:
    """Whether two configurations ask for the same scores."""
    return replace(scores_config(one), batch=other.batch) == scores_config(other)


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


def scores_from_atlas(atlas: Atlas, config: RunConfig) -> SelectionInfo | None:
    """The scores that a configuration's criterion would give, read off an atlas of the same model and text.

    Returns:
        ``None`` if the atlas is of something else, does not hold what the criterion averages, or has too few
        digits to tell which candidates go.
    """
    spec = CriterionSpec.parse(config.select or "")
    reading = _READINGS.get(spec.name)
    same = same_scores(replace(atlas.config, drop=None, select=config.select, count=config.count), config)
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
        chosen=str(Cut.of_layers(gone)),
    )
