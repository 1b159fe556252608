"""Fit one replacement per block of a cut, and put them into a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ghostlab.calibration.calibrate import Calibration
from ghostlab.config import FitOrder
from ghostlab.cut import Block, Cut
from ghostlab.model.model import Model
from ghostlab.model.replacement import AffineMap, Replacement
from ghostlab.progress import SILENT, Progress
from ghostlab.recovery.base import BlockFit
from ghostlab.recovery.data import FitData
from ghostlab.recovery.registry import OPERATORS, resolve
from ghostlab.spec import RecoverySpec


@dataclass(frozen=True)
class Fit:
    """A fitted recovery of a cut: one :class:`BlockFit` per block."""

    spec: RecoverySpec
    cut: Cut
    blocks: Mapping[Block, BlockFit]
    data: Mapping[Block, FitData]
    """What each block was fitted on."""
    notes: tuple[str, ...] = ()
    """What the user should know about the calibration it was fitted on."""

    @property
    def label(self) -> str:
        """Name for tables and legends."""
        return self.spec.label

    @property
    def replacements(self) -> dict[Block, Replacement]:
        """What to insert, by block."""
        return {block: fit.replacement for block, fit in self.blocks.items() if fit.replacement is not None}

    @property
    def maps(self) -> dict[Block, AffineMap]:
        """The maps that replace a block on their own, with no layer beside them."""
        alone = {
            block: replacement.map
            for block, replacement in self.replacements.items()
            if replacement.layer is None
        }
        return {block: map_ for block, map_ in alone.items() if map_ is not None}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know, each sentence once."""
        of_blocks = (warning for fit in self.blocks.values() for warning in fit.warnings)
        return tuple(dict.fromkeys([*self.notes, *of_blocks]))


def fit(
    calib: Calibration,
    cut: Cut,
    method: str | RecoverySpec = "ghost",
    *,
    rank: int | None = None,
    ridge: str = "auto",
    order: FitOrder = "parallel",
    progress: Progress = SILENT,
) -> Fit:
    """Fit ``method`` for every block of ``cut``.

    Args:
        calib: The calibration; its states around these blocks are computed unless they are known already.
        cut: The blocks.
        method: Registry name, a spec as text (``ghost,rank=64``), or a :class:`RecoverySpec`.
        rank, ridge: Used where the spec names none and the operator takes them.
        order: ``parallel`` fits every block on states of the original, as the papers do; ``sequential`` fits
            each on states of the model in which the blocks before it are recovered already, to the
            original's targets, so that later operators undo what earlier ones got wrong.

    Raises:
        CutError: If the cut does not fit the model.
        ConfigError: If the operator is unknown or an option does not apply.
    """
    cut.check(calib.model.depth)
    asked = method if isinstance(method, RecoverySpec) else RecoverySpec.parse(method)
    (spec,) = resolve([asked], rank, ridge)
    entry = OPERATORS.find(spec.method)
    blocks: dict[Block, BlockFit] = {}
    data: dict[Block, FitData] = {}
    found = Fit(spec, cut, blocks, data, _rounding(calib))  # grows with each block
    share = 1 / len(cut)
    for number, block in enumerate(cut):
        step = progress.part(number * share, (number + 1) * share)
        step.at(0.0, f"Fitting {entry.title}")
        data[block] = fit_data(calib, cut, block, spec, found.replacements, order=order, progress=step)
        blocks[block] = entry.fit(data[block], spec)
    return found


def fit_data(
    calib: Calibration,
    cut: Cut,
    block: Block,
    spec: RecoverySpec,
    replacements: Mapping[Block, Replacement],
    *,
    order: FitOrder,
    progress: Progress = SILENT,
) -> FitData:
    """What the replacement of ``block`` is fitted on: the states before it, and how tokens count.

    Args:
        calib, cut, order, progress: As :func:`fit` takes them.
        block: A block of the cut.
        spec: The recovery.
        replacements: What takes the place of the blocks before it; only a sequential fit looks at them.
    """
    earlier = tuple(other for other in cut if other.stop <= block.start)
    patched = None
    if order == "sequential" and earlier:
        patched = calib.model.without(
            Cut(earlier), {b: replacements[b] for b in earlier if b in replacements}
        )
    return FitData(calib, block, patched, progress, weighting=OPERATORS.find(spec.method).weighting(spec))


def _rounding(calib: Calibration) -> tuple[str, ...]:
    """A warning where states had to be kept in 16 bits: what that lost."""
    lost = calib.store.rounding
    if lost is None:
        return ()
    return (
        "Hidden states of the calibration text exceed the room for them in full precision; some were kept in "
        f"16 bits, which changed them by {lost:.2%}. Use fewer or shorter sequences to avoid it.",
    )


def apply(model: Model, cut: Cut, fit: Fit | None = None) -> Model:
    """The pruned model, or with ``fit`` the recovered one; both share the original's weights.

    Raises:
        CutError: If the cut does not fit the model or is not the one that was fitted.
    """
    return model.without(cut, None if fit is None else fit.replacements)
