"""One pass of the original model over token windows, stopping after the last boundary needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ghostlab.errors import NumericsError, memory_errors
from ghostlab.model.decoder import Trace
from ghostlab.model.model import Model
from ghostlab.progress import SILENT, Progress
from ghostlab.text.windows import Windows

LESS_MEMORY = "Lower batch, length or the number of sequences, or choose a smaller model."


@dataclass(frozen=True)
class Batch:
    """Windows ``rows`` of a pass: their token ids [B, T] and the trace of the model on them."""

    rows: slice
    ids: Tensor
    trace: Trace


def passes(
    model: Model,
    windows: Windows,
    boundaries: Collection[int],
    *,
    batch: int = 8,
    progress: Progress = SILENT,
    message: str = "Reading",
) -> Iterator[Batch]:
    """Run ``model`` over all windows up to the last of ``boundaries``; the states of all of them are kept.

    Raises:
        NumericsError: If a state holds NaN or infinity; names the block that made it.
        MemoryLimitError: If a batch does not fit in memory.
        Cancelled: Between two batches.
    """
    starts = range(0, len(windows.ids), batch)
    for start in progress.each(starts, message):
        rows = slice(start, min(start + batch, len(windows.ids)))
        ids = windows.ids[rows].to(model.device)
        with memory_errors(LESS_MEMORY):
            trace = model.decoder.trace(ids, boundaries)
        check_finite(model, ids, trace.states)
        yield Batch(rows, ids, trace)


def check_finite(model: Model, ids: Tensor, states: Mapping[int, Tensor]) -> None:
    """Raise NumericsError, naming the block that made it, if a state holds NaN or infinity."""
    if all(torch.isfinite(state).all() for state in states.values()):
        return
    every = model.decoder.trace(ids, range(model.depth + 1))
    first = min(b for b, state in every.states.items() if not torch.isfinite(state).all())
    where = "the embedding" if first == 0 else f"layer {first - 1}"
    raise NumericsError(
        f"The model's activations hold NaN or infinity from {where} on.",
        "Load it in another precision (for example float32), or check its weights.",
    )
