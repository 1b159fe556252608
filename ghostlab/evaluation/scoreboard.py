"""Score the original and all its variants on the same held-out windows, each block run as rarely as possible.

A variant differs from the original only from the start of its first dropped block on. The original's state
there is at hand from its own pass, or from one before it, so a variant costs its suffix and the head, not a
forward pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ghostlab.calibration.activations import Activations, Batch
from ghostlab.calibration.calibrate import check_length
from ghostlab.calibration.store import Budget
from ghostlab.config import BosPolicy
from ghostlab.errors import NumericsError, memory_errors
from ghostlab.evaluation.metrics import summarise
from ghostlab.model.likelihood import TokenScores, score_tokens
from ghostlab.model.model import Model
from ghostlab.progress import SILENT, Progress
from ghostlab.results.records import Metric, Scores
from ghostlab.text.documents import Documents
from ghostlab.text.tokens import kinds_of
from ghostlab.text.windows import HELD_OUT_SEED, Windows, make_windows


class Scoreboard:
    """Scores of ``original`` and of ``variants`` made from it, accumulated over batches.

    Feed it every batch of the original's :class:`~ghostlab.calibration.activations.Activations` at
    :attr:`boundaries`.
    """

    def __init__(self, original: Model, variants: Sequence[Model]) -> None:
        self.original = original
        self.variants = list(variants)
        self._parts: list[list[TokenScores]] = [[] for _ in range(1 + len(self.variants))]

    @property
    def boundaries(self) -> set[int]:
        """Boundaries whose states a batch must hold."""
        return {self.original.depth, *(variant.first_change for variant in self.variants)}

    def add(self, batch: Batch, progress: Progress = SILENT) -> None:
        """Run the suffix of each variant on the batch and score all models.

        A batch takes long with many variants, so it can be cancelled within one.

        Raises:
            Cancelled: Between two variants or two chunks of tokens.
            NumericsError: If a variant's likelihoods are not numbers.
            MemoryLimitError: If there is no room for a chunk of logits.
        """
        with memory_errors():
            last = batch.trace.states[self.original.depth]
            finals = [self.original.decoder.run_tail(last)]
            for variant in self.variants:
                progress.check()
                finals.append(variant.resume(batch.trace))
            decoders = [model.decoder for model in (self.original, *self.variants)]
            scored = score_tokens(decoders, finals, batch.ids, progress.check)
        for part, scores in zip(self._parts, scored, strict=True):
            if not torch.isfinite(scores.nll).all():
                raise NumericsError(
                    "A variant's likelihoods hold NaN or infinity.", "Load the model in float32."
                )
            part.append(scores)

    def scores(self, windows: Windows, seed: int) -> list[Scores]:
        """Metrics of the original, then of each variant, on the windows that the batches were."""
        original, *others = (TokenScores.concatenate(part) for part in self._parts)
        kinds = kinds_of(windows.ids, self.original.tokenizer)
        measured = [
            summarise(scores, windows.bytes, seed, original=original, kinds=kinds) for scores in others
        ]
        return [summarise(original, windows.bytes, seed), *measured]


def score(
    activations: Activations, variants: Sequence[Model], *, seed: int = 0, progress: Progress = SILENT
) -> list[Scores]:
    """Scores of the original, then of each variant, on the windows of ``activations``."""
    board = Scoreboard(activations.model, variants)
    for batch in activations.batches(board.boundaries, progress, "Scoring"):
        board.add(batch, progress)
    return board.scores(activations.windows, seed)


def perplexity(
    model: Model,
    documents: Documents,
    *,
    sequences: int | None = 16,
    length: int = 256,
    bos: BosPolicy = "auto",
    batch: int = 8,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Metric:
    """exp of the mean negative log-likelihood per predicted token, over windows of ``documents``.

    The windows are those that a run evaluates on. They do not overlap; each predicts all its tokens but
    the first. The interval is a bootstrap over windows.

    Args:
        model: Original or variant.
        documents: The text. One of a paper (``load_text("wikitext2").held_out``) is cut as the paper cuts it.
        sequences: How many windows; ``None`` for all that the text holds, as the papers do.
        length: Tokens per window. It matters much: the papers have 2048, some 128.
        bos: See :func:`~ghostlab.text.windows.make_windows`.
        batch: Windows per forward pass.
        seed: Seed of the bootstrap.

    Raises:
        TextError: If there is too little text or a window exceeds the model's context.
    """
    check_length(model, length)
    windows = make_windows(
        documents, model.tokenizer, count=sequences, length=length, bos=bos, seed=HELD_OUT_SEED
    )
    activations = Activations(model, windows, batch=batch, budget=Budget(memory=0))
    (scores,) = score(activations, (), seed=seed, progress=progress)
    return scores.perplexity
