"""The hidden states of the original model on some windows: asked for lazily, computed once."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from ghostlab.calibration.store import Budget, StateStore
from ghostlab.errors import NumericsError, memory_errors
from ghostlab.model.decoder import Trace
from ghostlab.model.model import Model
from ghostlab.progress import SILENT, Progress
from ghostlab.text.windows import Windows

Own = TypeVar("Own", bound="Activations")
StateBatch = tuple[slice, dict[int, Tensor]]
"""Some windows, and their states [B, T, C] by boundary."""


@dataclass(frozen=True)
class Batch:
    """Windows ``rows`` of a pass: their token ids [B, T] and the trace of the model on them."""

    rows: slice
    ids: Tensor
    trace: Trace


class Activations:
    """States of ``model``, the original, on ``windows``; ``batch`` of them go through it at a time.

    A pass keeps the states at the boundaries that it comes by, as far as the budget goes; if they may be
    ``rounded``, see :class:`StateStore`. What is not kept is computed again, from the nearest kept boundary
    before it on.
    """

    def __init__(
        self,
        model: Model,
        windows: Windows,
        *,
        batch: int = 8,
        budget: Budget | None = None,
        rounded: bool = True,
    ) -> None:
        self.model = model
        self.windows = windows
        self.batch = batch
        self.rounded = rounded
        self.store = StateStore(
            (*windows.ids.shape, model.width),
            model.depth,
            model.hf.dtype,
            budget or Budget(),
            f"{model.fingerprint}-{digest(windows.ids)}",
            rounded=rounded,
        )
        self._calls: defaultdict[int, Trace] = defaultdict(Trace)  # by number of windows

    @property
    def tokens(self) -> int:
        """Number of tokens in all windows."""
        return self.windows.ids.numel()

    def states(
        self, boundaries: Iterable[int], progress: Progress = SILENT, message: str = "Reading states"
    ) -> Iterator[StateBatch]:
        """States of all windows at ``boundaries``, batch by batch, on the model's device.

        One pass stops at the last boundary; kept states cost nothing, and later boundaries only the blocks
        from the last kept one on.
        """
        wanted = set(boundaries)
        kept = self.store.open()
        missing = wanted - kept.keys()
        start = max((b for b in kept if missing and b <= min(missing)), default=None)
        keep = self.store.begin(missing, range(start or 0, max(missing))) if missing else set()
        try:
            for rows in progress.each(self._batches(), message):
                given = None if start is None else self._own(kept[start][rows])
                states = self._compute(rows, missing | keep, start, given) if missing else {}
                for boundary in keep:
                    self.store.put(boundary, rows, states[boundary])
                yield rows, {b: states[b] if b in states else self._own(kept[b][rows]) for b in wanted}
            self.store.commit()
        finally:
            self.store.end()

    def batches(
        self, boundaries: Collection[int], progress: Progress = SILENT, message: str = "Reading states"
    ) -> Iterator[Batch]:
        """The same with token ids and with what every block is handed besides the state."""
        for rows, states in self.states(boundaries, progress, message):
            ids = self.windows.ids[rows].to(self.model.device)
            yield Batch(rows, ids, Trace(states, self.calls(rows, self.model.depth).calls))

    def calls(self, rows: slice, last: int) -> Trace:
        """What blocks ``0 .. last - 1`` are handed besides the state, for a batch of ``rows`` windows.

        Windows are of one length and unpadded, so that masks and positions depend on their number alone.
        """
        size = len(self.windows.ids[rows])
        if len(self._calls[size].calls) < last:
            self._calls[size] = self.model.decoder.trace(self.windows.ids[:size], (), last=last)
        return self._calls[size]

    def some(self: Own, count: int, *, fold: int | None = None) -> Own:
        """The same model on ``count`` of the windows, spread evenly over them or over those of one fold.

        States that are kept here need not be computed there.
        """
        folds = self.windows.fold
        rows = (folds == (folds if fold is None else fold)).nonzero()[:, 0]
        count = min(count, len(rows))
        chosen = rows[[i * len(rows) // count for i in range(count)]]
        picked = {name: getattr(self.windows, name)[chosen] for name in ("ids", "fold", "bytes")}
        windows = replace(self.windows, **picked)
        budget = replace(self.store.budget, disk=0)
        part = type(self)(self.model, windows, batch=self.batch, budget=budget, rounded=self.rounded)
        part.store.take(self.store, chosen)
        return part

    def _compute(
        self, rows: slice, boundaries: Collection[int], start: int | None, given: Tensor | None
    ) -> dict[int, Tensor]:
        """States of windows ``rows``, computed from the embedding on or from those ``given`` at ``start``."""
        ids = self.windows.ids[rows].to(self.model.device)
        with memory_errors():
            if start is None or given is None:
                trace = self.model.decoder.trace(ids, boundaries)
                if len(self._calls[len(ids)].calls) < len(trace.calls):
                    self._calls[len(ids)] = Trace(calls=trace.calls)
                states = trace.states
            else:
                trace, states = self.calls(rows, max(boundaries)), {}
                for boundary in sorted(boundaries):
                    given = self.model.decoder.run_span(given, start, boundary, trace)
                    start, states[boundary] = boundary, given
        check_finite(self.model, ids, states)
        return states

    def _own(self, states: Tensor) -> Tensor:
        """Kept states where and as the model computes."""
        return states.to(self.model.device, self.model.hf.dtype)

    def _batches(self) -> list[slice]:
        count = len(self.windows.ids)
        return [slice(first, min(first + self.batch, count)) for first in range(0, count, self.batch)]


def digest(ids: Tensor) -> str:
    """Sixteen hex digits that name token ids [W, T]."""
    shape = str(tuple(ids.shape)).encode()
    return hashlib.sha256(shape + ids.to(torch.int64).contiguous().numpy().tobytes()).hexdigest()[:16]


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
