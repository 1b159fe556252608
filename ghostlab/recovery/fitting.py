"""Fit one stand-in per block of a cut, and put them into a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ghostlab.calibration.calibrate import Calibration
from ghostlab.cut import Block, Cut
from ghostlab.model.export import restore
from ghostlab.model.lm import Model
from ghostlab.model.load import load_model
from ghostlab.model.standin import AffineMap
from ghostlab.progress import SILENT, Progress
from ghostlab.recovery.base import BlockFit
from ghostlab.recovery.registry import find_method
from ghostlab.settings import Settings
from ghostlab.spec import RecoverySpec


@dataclass(frozen=True)
class Fit:
    """A fitted recovery of a cut: one :class:`BlockFit` per block."""

    spec: RecoverySpec
    cut: Cut
    blocks: Mapping[Block, BlockFit]

    @property
    def label(self) -> str:
        """Name for tables and legends: the method, and what was asked of it."""
        options = [] if self.spec.rank is None else [f"rank {self.spec.rank}"]
        options += [] if self.spec.ridge == "auto" else [f"ridge {self.spec.ridge}"]
        return ", ".join([self.spec.method, *options])

    @property
    def standins(self) -> dict[Block, AffineMap]:
        """The modules to insert, by block."""
        return {block: fit.standin for block, fit in self.blocks.items() if fit.standin is not None}

    @property
    def parameters_added(self) -> int:
        """Numbers that the stand-ins store."""
        return sum(standin.parameters_added for standin in self.standins.values())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know, each sentence once."""
        return tuple(dict.fromkeys(w for fit in self.blocks.values() for w in fit.warnings))


def fit(
    calib: Calibration,
    cut: Cut,
    method: str | RecoverySpec = "ghost",
    *,
    rank: int | None = None,
    ridge: str = "auto",
    progress: Progress = SILENT,
) -> Fit:
    """Fit ``method`` for every block of ``cut`` on the states of the original model.

    Args:
        calib: The calibration; its moments of these blocks are computed unless they are known already.
        cut: The blocks.
        method: Registry name, or a whole :class:`RecoverySpec`.
        rank, ridge: See :class:`RecoverySpec`; ignored when a spec is given.

    Raises:
        CutError: If the cut does not fit the model.
        ConfigError: If the method is unknown or its options do not apply.
    """
    cut.check(calib.model.depth)
    spec = method if isinstance(method, RecoverySpec) else RecoverySpec(method, rank, ridge)
    entry = find_method(spec.method)
    moments = calib.moments(cut, progress.part(0.0, 0.8))
    blocks: dict[Block, BlockFit] = {}
    for block in progress.part(0.8, 1.0).each(cut.blocks, f"Fitting {entry.title}"):
        blocks[block] = entry.fit(moments[block], spec)
    return Fit(spec, cut, blocks)


def apply(model: Model, cut: Cut, fit: Fit | None = None) -> Model:
    """The pruned model, or with ``fit`` the recovered one; both share the original's weights.

    Raises:
        CutError: If the cut does not fit the model or is not the one that was fitted.
    """
    return model.without(cut, None if fit is None else fit.standins)


def load_recovered(folder: str | Path, *, settings: Settings | None = None) -> Model:
    """Load a model that ``Model.save`` wrote.

    Raises:
        ModelNotFoundError: If it is no model folder.
        ResultError: If its operators are missing, damaged or do not fit.
    """
    return restore(load_model(str(folder), settings=settings), Path(folder))
