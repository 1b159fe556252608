"""Perplexity of one model, whether original, pruned or recovered."""

from __future__ import annotations

from ghostlab.calibration.activations import Activations
from ghostlab.calibration.calibrate import check_length
from ghostlab.calibration.store import Budget
from ghostlab.config import BosPolicy
from ghostlab.evaluation.scoreboard import score
from ghostlab.model.model import Model
from ghostlab.progress import SILENT, Progress
from ghostlab.results.records import Metric
from ghostlab.text.documents import Documents
from ghostlab.text.windows import HELD_OUT_SEED, make_windows


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
        progress: Told how far it is; a stop is obeyed between batches.

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
