"""Second moments and similarities of the original model's states: asked for lazily, computed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from ghostlab.calibration.activations import Activations
from ghostlab.calibration.moments import BlockMoments, Weighting
from ghostlab.calibration.similarity import Similarity
from ghostlab.calibration.store import Budget
from ghostlab.config import BosPolicy
from ghostlab.cut import Block
from ghostlab.errors import TextError
from ghostlab.model.model import Model
from ghostlab.progress import SILENT, Progress
from ghostlab.settings import Settings
from ghostlab.text.documents import Documents, Text
from ghostlab.text.windows import make_windows

FOLDS = 5
MOMENT_BYTES = 512 << 20
"""Memory for the moments of many blocks that are looked at once each."""


class Calibration(Activations):
    """States, moments and similarities of ``model`` on calibration windows; see :class:`Activations`."""

    @cached_property
    def _moments(self) -> dict[tuple[Block, Weighting], BlockMoments]:
        return {}

    _similarity: Similarity | None = None

    @property
    def folds(self) -> int:
        """How many folds of documents the windows are in."""
        last: int = max(self.windows.fold.tolist())
        return last + 1

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
    evaluated: Documents | None = None,
) -> Calibration:
    """Choose windows from the calibration part of ``text``; passes run once figures are asked for.

    Args:
        sequences, length: How many windows, of how many tokens.
        seed: Decides which documents are read.
        bos: Whether each window starts with a BOS token.
        batch: Windows per forward pass.
        settings: Host settings; they bound what kept states may take.
        evaluated: What figures will be measured on, if not the held-out part of ``text``. Under ``auto`` its
            windows decide where BOS stands, so that operators are fitted on windows that begin alike.

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
        like=evaluated or text.held_out,
    )
    return Calibration(model, windows, batch=batch, budget=budget(settings or Settings()))


def check_length(model: Model, length: int) -> None:
    """Raise TextError if windows of ``length`` tokens do not fit the model's context."""
    if model.context is not None and length > model.context:
        raise TextError(
            f"Windows of {length} tokens are longer than the model's context of {model.context}.",
            f"Use a length of at most {model.context}.",
        )


def budget(settings: Settings) -> Budget:
    """What the host lets hidden states take."""
    return Budget(settings.state_bytes, settings.state_disk_bytes, settings.cache / "states")
