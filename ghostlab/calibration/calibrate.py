"""What the original model does with the calibration text: asked for lazily, computed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from torch import Tensor

from ghostlab.calibration.capture import check_finite, passes
from ghostlab.calibration.moments import BlockMoments, Weighting
from ghostlab.calibration.similarity import Similarity
from ghostlab.calibration.store import StateStore
from ghostlab.config import BosPolicy
from ghostlab.cut import Block
from ghostlab.errors import TextError
from ghostlab.model.decoder import Trace
from ghostlab.model.lm import Model
from ghostlab.progress import SILENT, Progress
from ghostlab.settings import Settings
from ghostlab.text.documents import Text
from ghostlab.text.windows import Windows, make_windows

FOLDS = 5
MOMENT_BYTES = 512 << 20
"""Memory for the moments of many blocks that are looked at once each."""
StateBatch = tuple[slice, dict[int, Tensor]]
"""Some windows, and their states [B, T, C] by boundary."""


class Calibration:
    """States, moments and similarities of ``model`` on ``windows``.

    States are kept while they fit into ``state_bytes``. What is not kept is computed again, from the nearest
    kept boundary before it on.
    """

    def __init__(self, model: Model, windows: Windows, *, batch: int = 8, state_bytes: int = 2 << 30) -> None:
        self.model = model
        self.windows = windows
        self.batch = batch
        self._store = StateStore((*windows.ids.shape, model.width), state_bytes)
        self._calls: dict[int, Trace] = {}
        self._moments: dict[tuple[Block, Weighting], BlockMoments] = {}
        self._similarity: Similarity | None = None

    @property
    def tokens(self) -> int:
        """N, tokens that the moments are sums over."""
        return self.windows.ids.numel()

    @property
    def folds(self) -> int:
        """How many folds of documents the windows are in."""
        last: int = max(self.windows.fold.tolist())
        return last + 1

    def states(
        self, boundaries: Iterable[int], progress: Progress = SILENT, message: str = "Reading states"
    ) -> Iterator[StateBatch]:
        """States of all windows at ``boundaries``, batch by batch, on the model's device.

        One pass stops at the last boundary; kept states cost nothing, and later boundaries only the blocks
        from the last kept one on.
        """
        wanted = set(boundaries)
        missing = wanted - self._store.boundaries
        keep = self._store.begin(missing)
        for rows, states in self._compute(wanted, missing, progress, message):
            for boundary in keep:
                self._store.put(boundary, rows, states[boundary])
            yield rows, states
        self._store.commit()

    def calls(self, rows: slice, last: int) -> Trace:
        """What blocks ``0 .. last - 1`` are handed besides the state, for a batch of ``rows`` windows.

        Windows are of one length and unpadded, so that masks and positions depend on their number alone.
        """
        size = len(self.windows.ids[rows])
        if size not in self._calls or len(self._calls[size].calls) < last:
            self._calls[size] = self.model.decoder.trace(self.windows.ids[:size], (), last=last)
        return self._calls[size]

    def moments(
        self, blocks: Iterable[Block], progress: Progress = SILENT, *, weighting: Weighting = "none"
    ) -> dict[Block, BlockMoments]:
        """Moments of each block, all from one pass that stops at the last block's end."""
        blocks = tuple(blocks)
        missing = [block for block in blocks if (block, weighting) not in self._moments]
        if missing:
            fresh = self._collect(missing, weighting, progress)
            self._moments |= {(block, weighting): moments for block, moments in fresh.items()}
        return {block: self._moments[block, weighting] for block in blocks}

    def each_moments(
        self, blocks: Sequence[Block], progress: Progress = SILENT, *, weighting: Weighting = "none"
    ) -> Iterator[tuple[Block, BlockMoments]]:
        """Moments of many blocks, some at a time so that they fit in memory; none of them is kept."""
        size = 16 * self.folds * self.model.width**2
        group = max(1, MOMENT_BYTES // size)
        for start in range(0, len(blocks), group):
            part = blocks[start : start + group]
            step = progress.part(start / len(blocks), (start + len(part)) / len(blocks))
            yield from self._collect(part, weighting, step).items()

    def some(self, count: int, *, fold: int | None = None) -> Calibration:
        """The same model on ``count`` of the windows, spread evenly over them or over those of one fold."""
        folds = self.windows.fold
        rows = (folds == (folds if fold is None else fold)).nonzero()[:, 0]
        count = min(count, len(rows))
        chosen = rows[[i * len(rows) // count for i in range(count)]]
        picked = {name: getattr(self.windows, name)[chosen] for name in ("ids", "fold", "bytes")}
        windows = replace(self.windows, **picked)
        return Calibration(self.model, windows, batch=self.batch, state_bytes=self._store.budget)

    def empty_moments(self, block: Block, weighting: Weighting = "none") -> BlockMoments:
        """Moments to be filled, on the model's device."""
        return BlockMoments.empty(block, self.folds, self.model.width, self.model.device, weighting)

    def similarity(self, progress: Progress = SILENT) -> Similarity:
        """Similarities between all boundaries, from one pass over the whole stack."""
        if self._similarity is None:
            similarity = Similarity(self.model.depth)
            every = range(self.model.depth + 1)
            for _, states in self.states(every, progress, "Comparing the states at all boundaries"):
                similarity.add(states)
            self._similarity = similarity
        return self._similarity

    def _collect(
        self, blocks: Sequence[Block], weighting: Weighting, progress: Progress
    ) -> dict[Block, BlockMoments]:
        """Moments of blocks from one pass that stops at the last block's end."""
        fresh = {block: self.empty_moments(block, weighting) for block in blocks}
        edges = {edge for block in blocks for edge in (block.start, block.stop)}
        for rows, states in self.states(edges, progress, "Collecting moments at the boundaries"):
            for block, moments in fresh.items():
                moments.add(states[block.start], states[block.stop], self.windows.fold[rows])
        return fresh

    def _compute(
        self, wanted: set[int], missing: set[int], progress: Progress, message: str
    ) -> Iterator[StateBatch]:
        """Read what is kept and compute the rest, from a kept boundary on where there is one."""
        if not missing:
            for rows in progress.each(self._batches(), message):
                yield rows, {b: self._kept(b, rows) for b in wanted}
            return
        before = [boundary for boundary in self._store.boundaries if boundary <= min(missing)]
        if before:
            for rows in progress.each(self._batches(), message):
                yield rows, self._continue(max(before), wanted, missing, rows)
            return
        for batch in passes(
            self.model, self.windows, wanted, batch=self.batch, progress=progress, message=message
        ):
            size = len(batch.ids)
            if size not in self._calls or len(self._calls[size].calls) < len(batch.trace.calls):
                self._calls[size] = Trace(calls=batch.trace.calls)
            yield batch.rows, batch.trace.states

    def _continue(self, start: int, wanted: set[int], missing: set[int], rows: slice) -> dict[int, Tensor]:
        """Run from kept boundary ``start`` through all missing ones."""
        states = {b: self._kept(b, rows) for b in wanted - missing}
        state, position = self._kept(start, rows), start
        trace = self.calls(rows, max(missing))
        for boundary in sorted(missing):
            state = self.model.decoder.run_span(state, position, boundary, trace)
            position = boundary
            states[boundary] = state
        check_finite(self.model, self.windows.ids[rows], states)
        return states

    def _kept(self, boundary: int, rows: slice) -> Tensor:
        return self._store.get(boundary, rows).to(self.model.device, self.model.hf.dtype)

    def _batches(self) -> list[slice]:
        count = len(self.windows.ids)
        return [slice(first, min(first + self.batch, count)) for first in range(0, count, self.batch)]


def calibrate(
    model: Model,
    text: Text,
    *,
    sequences: int = 64,
    length: int = 256,
    seed: int = 0,
    bos: BosPolicy = "auto",
    batch: int = 8,
    settings: Settings | None = None,
) -> Calibration:
    """Choose windows from the calibration part of ``text``; passes run once figures are asked for.

    Args:
        model: The original model.
        text: A divided text; only its calibration part is read.
        sequences: How many windows.
        length: Tokens in each.
        seed: Decides which documents are read.
        bos: Whether each window starts with a BOS token.
        batch: Windows per forward pass.
        settings: Host settings; ``state_bytes`` of them bounds the memory for states.

    Raises:
        TextError: If the text is too short, or a window longer than the model's context.
    """
    check_length(model, length)
    windows = make_windows(
        text.calibration,
        model.tokenizer,
        count=sequences,
        length=length,
        bos=bos,
        seed=seed,
        folds=min(FOLDS, sequences),
    )
    return Calibration(model, windows, batch=batch, state_bytes=(settings or Settings()).state_bytes)


def check_length(model: Model, length: int) -> None:
    """Raise TextError if windows of ``length`` tokens do not fit the model's context."""
    if model.context is not None and length > model.context:
        raise TextError(
            f"Windows of {length} tokens are longer than the model's context of {model.context}.",
            f"Use a length of at most {model.context}.",
        )
