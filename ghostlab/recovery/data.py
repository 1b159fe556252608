"""What an operator may look at: the calibration text as one block of the cut sees it; loads no torch."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from ghostlab.cut import Block
from ghostlab.progress import SILENT, Progress

if TYPE_CHECKING:
    from torch import Tensor

    from ghostlab.calibration.activations import StateBatch
    from ghostlab.calibration.calibrate import Calibration
    from ghostlab.calibration.moments import BlockMoments, Weighting
    from ghostlab.model.decoder import Trace
    from ghostlab.model.model import Model

View: TypeAlias = "tuple[Block, Weighting, int | None]"
"""A block, how tokens count, and which patched model the states before it are of, if any."""


class FitData:
    """States and moments for fitting the replacement of one block.

    Args:
        calib: The calibration.
        block: The block.
        patched: A variant in which the blocks before this one are dropped and recovered already. Given,
            states up to the start of the block are its states (*sequential* fit), else the original's
            (*parallel*). States after the start, which are targets, are always the original's.
        progress: Progress callback; raises Cancelled.
        weighting: How tokens count.
    """

    def __init__(
        self,
        calib: Calibration,
        block: Block,
        patched: Model | None = None,
        progress: Progress = SILENT,
        *,
        weighting: Weighting = "none",
    ) -> None:
        self.calib = calib
        self.block = block
        self.patched = patched
        self.progress = progress
        self.weighting = weighting
        self._own: dict[Weighting, BlockMoments] = {}

    @property
    def model(self) -> Model:
        """The original model."""
        return self.calib.model

    def moments(self, weighting: Weighting | None = None) -> BlockMoments:
        """Moments of the state before the block and of the change to the original's state after it.

        Tokens count as in the fit unless ``weighting`` says otherwise.
        """
        weighting = weighting or self.weighting
        if self.patched is None:
            return self.calib.moments([self.block], self.progress, weighting=weighting)[self.block]
        if weighting not in self._own:
            moments = self.calib.empty_moments(self.block, weighting)
            for rows, states in self.batches({self.block.start, self.block.stop}):
                moments.add(states[self.block.start], states[self.block.stop], self.calib.windows.fold[rows])
            self._own[weighting] = moments
        return self._own[weighting]

    @property
    def view(self) -> View:
        """Equal for two fits of a block that see the same tokens in the same way."""
        return self.block, self.weighting, None if self.patched is None else id(self.patched)

    def before(self, trace: Trace) -> Tensor:
        """The state before the block as this fit sees it, [B, T, C].

        Args:
            trace: The original's on any text, with states at the block's start and where ``patched`` parts
                from it.
        """
        start = self.block.start
        return trace.states[start] if self.patched is None else self.patched.resume(trace, start)

    def batches(self, boundaries: Collection[int]) -> Iterator[StateBatch]:
        """Windows and their states [B, T, C] at ``boundaries``, batch by batch."""
        message = f"Reading states around block {self.block}"
        if self.patched is None:
            yield from self.calib.states(boundaries, self.progress, message)
            return
        early = sorted(b for b in boundaries if b <= self.block.start)
        wanted = {self.patched.first_change, *boundaries}
        for rows, states in self.calib.states(wanted, self.progress, message):
            trace = replace(self.calls(rows), states=states)
            found = {b: self.patched.resume(trace, b) for b in early}
            yield rows, {**{b: states[b] for b in boundaries}, **found}

    def calls(self, rows: slice) -> Trace:
        """What the blocks up to the end of this one are handed besides the state."""
        return self.calib.calls(rows, self.block.stop)
