"""What the original model does with the calibration text: asked for lazily, computed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ghostlab.calibration.capture import Batch, passes
from ghostlab.calibration.moments import BlockMoments
from ghostlab.calibration.similarity import Similarity
from ghostlab.calibration.store import StateStore
from ghostlab.config import BosPolicy
from ghostlab.cut import Block
from ghostlab.errors import TextError
from ghostlab.model.lm import Model
from ghostlab.progress import SILENT, Progress
from ghostlab.settings import Settings
from ghostlab.text.documents import Text
from ghostlab.text.windows import Windows, make_windows

FOLDS = 5


class Calibration:
    """Second moments and similarities of ``model`` on ``windows``.

    Moments of a block need a pass up to its end; similarities need all boundaries. When all states fit into
    ``state_bytes``, the pass for similarities keeps them and moments are then read from memory.
    """

    def __init__(self, model: Model, windows: Windows, *, batch: int = 8, state_bytes: int = 2 << 30) -> None:
        self.model = model
        self.windows = windows
        self.batch = batch
        self.state_bytes = state_bytes
        self._moments: dict[Block, BlockMoments] = {}
        self._similarity: Similarity | None = None
        self._store: StateStore | None = None

    @property
    def tokens(self) -> int:
        """N, tokens that the moments are sums over."""
        return self.windows.ids.numel()

    @property
    def folds(self) -> int:
        """How many folds of documents the windows are in."""
        last: int = max(self.windows.fold.tolist())
        return last + 1

    def moments(self, blocks: Iterable[Block], progress: Progress = SILENT) -> dict[Block, BlockMoments]:
        """Moments of each block, all from one pass that stops at the last block's end."""
        blocks = tuple(blocks)
        missing = [block for block in blocks if block not in self._moments]
        if missing:
            fresh = {
                block: BlockMoments.empty(block, self.folds, self.model.width, self._device)
                for block in missing
            }
            if self._store is not None:
                self._from_store(self._store, fresh, progress)
            else:
                self._from_pass(fresh, progress)
            self._moments |= fresh
        return {block: self._moments[block] for block in blocks}

    def similarity(self, progress: Progress = SILENT) -> Similarity:
        """Similarities between all boundaries, from one pass over the whole stack."""
        if self._similarity is None:
            similarity = Similarity.empty(self.model.depth)
            shape = (*self.windows.ids.shape, self.model.width)
            fits = StateStore.bytes_needed(self.model.depth, shape) <= self.state_bytes
            store = StateStore(self.model.depth, shape) if fits else None
            every = range(self.model.depth + 1)
            for batch in self._passes(every, progress, "Comparing the states at all boundaries"):
                similarity.add(batch.trace.states)
                if store is not None:
                    store.put(batch.rows, batch.trace.states)
            self._similarity, self._store = similarity, store
        return self._similarity

    def _from_pass(self, fresh: dict[Block, BlockMoments], progress: Progress) -> None:
        boundaries = {edge for block in fresh for edge in (block.start, block.stop)}
        for batch in self._passes(boundaries, progress, "Collecting moments at the boundaries"):
            states = batch.trace.states
            for block, moments in fresh.items():
                moments.add(states[block.start], states[block.stop], self.windows.fold[batch.rows])

    def _from_store(self, store: StateStore, fresh: dict[Block, BlockMoments], progress: Progress) -> None:
        for block, moments in fresh.items():
            progress.at(0.0, "Collecting moments from stored states")
            for rows, before, behind in store.pairs(block.start, block.stop, self.batch):
                moments.add(before.to(self._device), behind.to(self._device), self.windows.fold[rows])

    def _passes(self, boundaries: Iterable[int], progress: Progress, message: str) -> Iterator[Batch]:
        return passes(
            self.model, self.windows, set(boundaries), batch=self.batch, progress=progress, message=message
        )

    @property
    def _device(self) -> str:
        """Moments are float64: on the model's device unless it has no such type (Apple MPS)."""
        return "cpu" if self.model.device.type == "mps" else str(self.model.device)


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
        sequences, length: How many windows, and tokens in each.
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
