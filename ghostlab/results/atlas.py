"""The atlas: for every block of consecutive layers, what dropping it costs and what a map brings back.

Plain data, like :mod:`ghostlab.results.run`; :func:`ghostlab.analysis.atlas.survey` makes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import TypeAdapter, ValidationError

from ghostlab.config import RunConfig, only
from ghostlab.errors import ConfigError, ResultError
from ghostlab.storage import Record

if TYPE_CHECKING:
    import pandas as pd


DEFAULT_LENGTHS = tuple(range(1, 11))
SETTINGS = ("model", "revision", "text", "sequences", "length", "bos", "seed", "batch", "dtype")
"""What of a run's configuration plays a part in an atlas."""


def surveyed(config: RunConfig) -> RunConfig:
    """A configuration with everything that plays no part in an atlas as it is by default."""
    return only(config, *SETTINGS)


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


def parse_lengths(text: str) -> tuple[int, ...]:
    """Read block lengths: ``1-10``, ``4,6`` or ``1-3,8``, ascending.

    Raises:
        ConfigError: If it is none of these.
    """
    found: set[int] = set()
    try:
        for part in text.split(","):
            low, dash, high = part.strip().partition("-")
            found |= set(range(int(low), int(high if dash else low) + 1))
    except ValueError:
        found = set()
    if not found or min(found) < 1:
        raise ConfigError(f"'{text}' are no block lengths.", "Write for example 1-10 or 2,4,6.")
    return tuple(sorted(found))


@dataclass(frozen=True)
class Atlas(Record):
    """Figures of every block.

    Attributes:
        config: Says which model, text and windows; what it drops and recovers plays no part.
        model: Name of the model.
        layers: Its number of layers.
        fitted, tried: Ordinary tokens that maps were fitted on, and that errors are taken on.
        special: Tokens that are first in their window or massive.
        blocks: One entry per block, by start, then stop.
        seconds: What it took.
        versions: Of the software.
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
        """The entry of a block, if it was surveyed."""
        return next((b for b in self.blocks if (b.start, b.stop) == (start, stop)), None)

    def best(self, length: int) -> AtlasBlock | None:
        """The block of ``length`` layers of which ``ghost_sink`` leaves least."""
        found = [block for block in self.blocks if block.length == length]
        return min(found, key=lambda block: block.ghost_sink, default=None)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        values: dict[str, Any] = _ADAPTER.dump_python(self, mode="json", exclude={"config"})
        return {"config": self.config.to_dict(), **values}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Atlas:
        """Read what :meth:`to_dict` wrote.

        Raises:
            ResultError: If a part is missing or of another kind.
        """
        try:
            config = RunConfig.from_dict(values["config"])
            return _ADAPTER.validate_python({**values, "config": config})
        except (KeyError, TypeError, ConfigError, ValidationError) as error:
            raise ResultError("This is no atlas.", "Make one with ghostlab atlas --out FILE.") from error

    def rounded(self, digits: int) -> Atlas:
        """The same with every figure to so many significant digits."""
        return replace(self, blocks=[_rounded(block, digits) for block in self.blocks])

    def weight(self) -> dict[int, int]:
        """Identity -> bytes in memory, as :meth:`ghostlab.results.run.RunResult.weight`."""
        return {id(self.blocks): 1000 * len(self.blocks)}

    def to_frame(self) -> pd.DataFrame:
        """One row per block."""
        import pandas as pd

        frame: pd.DataFrame = pd.DataFrame([_BLOCK.dump_python(block) for block in self.blocks])
        return frame


def _rounded(block: AtlasBlock, digits: int) -> AtlasBlock:
    values: dict[str, Any] = asdict(block)
    for name, value in values.items():
        if isinstance(value, float):
            values[name] = float(f"{value:.{digits}g}")
    return AtlasBlock(**values)


_ADAPTER = TypeAdapter(Atlas)
_BLOCK = TypeAdapter(AtlasBlock)
