"""Take layers out of a running model, one at a time, at the cost of the layers after them.

Blocks are replayed with what the original handed them, so that the final state equals that of the variant
that :meth:`ghostlab.model.model.Model.without` would build.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from torch import Tensor

from ghostlab.calibration.calibrate import Calibration
from ghostlab.model.decoder import Decoder, Trace
from ghostlab.model.model import Model
from ghostlab.progress import Progress


@dataclass
class Ablation:
    """Some windows in a model from which layers have been dropped.

    Attributes:
        decoder: The original's.
        ids: Token ids [B, T].
        trace: The original's trace of them.
        kept: Layers that are still there.
        inputs: State [B, T, C] that each kept layer receives; under L, that of the final norm.
    """

    decoder: Decoder
    ids: Tensor
    trace: Trace
    kept: list[int]
    inputs: dict[int, Tensor] = field(repr=False)

    @classmethod
    def of(cls, model: Model, ids: Tensor, trace: Trace) -> Ablation:
        """Nothing dropped yet; ``trace`` holds the states at all boundaries."""
        return cls(model.decoder, ids, trace, list(range(model.depth)), dict(trace.states))

    def final(self) -> Tensor:
        """What the head is given, [B, T, C]."""
        return self.decoder.run_tail(self.inputs[self.decoder.depth])

    def without(self, layer: int) -> Tensor:
        """What the head would be given if ``layer`` were dropped as well."""
        state = self.inputs[layer]
        for _, received in self._rest(layer):
            state = received
        return self.decoder.run_tail(state)

    def drop(self, layer: int) -> None:
        """Drop ``layer`` for good."""
        self.inputs |= dict(self._rest(layer))
        self.kept.remove(layer)
        del self.inputs[layer]

    def _rest(self, layer: int) -> Iterator[tuple[int, Tensor]]:
        """What each later receiver would get without ``layer``.

        Not :meth:`ghostlab.model.model.Model.resume`: the start is a state of the ablated model, and all
        later states are kept.
        """
        state = self.inputs[layer]
        later = [other for other in self.kept if other > layer]
        for current, receiver in zip([layer, *later], [*later, self.decoder.depth], strict=True):
            if current != layer:
                state = self.decoder.run_span(state, current, current + 1, self.trace)
            yield receiver, state


def ablations(calib: Calibration, windows: int) -> Iterator[Ablation]:
    """Batches of some calibration windows, nothing dropped yet."""
    sample = calib.some(windows)
    every = range(sample.model.depth + 1)
    for batch in sample.batches(every):
        yield Ablation.of(sample.model, batch.ids, batch.trace)


def steps(calib: Calibration, windows: int, progress: Progress) -> Iterator[tuple[Ablation, Progress]]:
    """Each batch of :func:`ablations` with its share of the progress."""
    count = -(-min(windows, calib.windows.count) // calib.batch)
    for number, batch in enumerate(ablations(calib, windows)):
        yield batch, progress.part(number / count, (number + 1) / count)


def predicted(calib: Calibration, windows: int) -> int:
    """Predicted tokens in that many calibration windows."""
    return min(windows, calib.windows.count) * calib.windows.predicted
