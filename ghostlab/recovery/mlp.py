"""A transform of the MLP output of the layer before the block, merged into that layer's weights (ReplaceMe).

Layer s - 1 hands over x_s = rest + c M, with M the output of its MLP and c the family's residual scale. With
M replaced by M T it should hand over what the block would have made of it: c M T = x_e - rest. Written as
T = I + A this is least squares of D = (x_e - x_s) / c on M, so that a ridge pulls T to the identity. With
M = u W + w, weights W T and bias w T do it: no parameter is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from ghostlab.calibration.moments import Moments, Weighting, total
from ghostlab.errors import ConfigError
from ghostlab.model.device import exact
from ghostlab.model.projections import find_projections, stored, watch, weight_of
from ghostlab.model.replacement import Replacement
from ghostlab.progress import Progress
from ghostlab.recovery.data import FitData


@dataclass(frozen=True)
class MlpBatch:
    """Some windows: M and D of their tokens, [N, C] each, mean squares of x_e [N], and tokens' folds [N]."""

    output: Tensor
    change: Tensor
    power: Tensor
    fold: Tensor


class MlpBefore:
    """The MLP of the layer before a block.

    Raises:
        ConfigError: If the block is the first of the model.
        UnsupportedModelError: If the family's MLP does not write to the residual stream as it is.
    """

    def __init__(self, data: FitData, operator: str) -> None:
        if data.block.start == 0:
            raise ConfigError(
                f"'{operator}' edits the layer before a block, and none precedes {data.block}.",
                "Use a map such as ghost_sink, or start the block at layer 1 or later.",
            )
        projections = find_projections(data.model)
        self.data = data
        self.layer = data.block.start - 1
        self.path = projections.mlp
        self.scale = projections.scale
        self.module = data.model.decoder.blocks[self.layer].get_submodule(self.path)

    def batches(self, progress: Progress) -> Iterator[MlpBatch]:
        """Run the layer on every batch of windows."""
        data = copy(self.data)
        data.progress = progress
        start, stop, decoder = data.block.start, data.block.stop, data.model.decoder
        for rows, states in data.batches({self.layer, start, stop}):
            with watch(decoder.blocks[self.layer], (self.path,)) as written:
                decoder.run_span(states[self.layer], self.layer, start, data.calls(rows))
            change = (states[stop] - states[start]).flatten(0, 1) / self.scale
            power = exact(states[stop]).square().mean(-1).flatten()
            fold = data.calib.windows.fold[rows].repeat_interleave(states[stop].shape[1])
            yield MlpBatch(written.outputs[self.path], change, power, fold.to(change.device))

    def moments(self, weighting: Weighting, progress: Progress) -> tuple[list[Moments], Moments]:
        """Moments of M and D per fold, and over all tokens with no weights."""
        calib = self.data.calib
        empty = calib.empty_moments(self.data.block).ordinary[0]
        folds, whole = [empty] * calib.folds, empty
        for batch in self.batches(progress):
            for index in sorted(set(batch.fold.tolist())):
                take = batch.fold == index
                m, d = (part[take].to(empty.x.device) for part in (batch.output, batch.change))
                power = batch.power.to(empty.x.device)[take.to(empty.x.device)]
                weight = None if weighting == "none" else 1 / power
                folds[index] = folds[index] + Moments.of(m, d, weight)
                whole = whole if weight is None else whole + Moments.of(m, d)
        return folds, total(folds) if weighting == "none" else whole

    def replacement(self, change: Tensor) -> Replacement:
        """The layer with T = I + ``change`` merged into its MLP, [C, C]."""
        weight = exact(weight_of(self.module))
        change = change.to(weight.device, torch.float64)
        weights = {f"{self.path}.weight": stored(self.module, weight + weight @ change)}
        bias = getattr(self.module, "bias", None)
        if bias is not None:
            weights[f"{self.path}.bias"] = exact(bias) + exact(bias) @ change
        return Replacement(layer=self.layer, weights={name: value.float() for name, value in weights.items()})


def explained(moments: Moments, change: Tensor) -> float:
    """Share of the gap ||x_e - x_s||^2 that T = I + ``change`` explains; the scale c cancels."""
    return 1 - moments.residual(change) / moments.total if moments.total else 0.0
