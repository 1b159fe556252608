"""Which layer to keep, and whether first tokens need an offset of their own."""

from __future__ import annotations

import torch
from torch import Tensor

from ghostlab.errors import ConfigError
from ghostlab.model.device import exact
from ghostlab.model.projections import find_projections
from ghostlab.model.replacement import AffineMap, Replacement
from ghostlab.recovery.base import BlockFit
from ghostlab.recovery.data import FitData
from ghostlab.recovery.linear import scarcity
from ghostlab.recovery.refit import Refit, Setup, outputs, refit
from ghostlab.spec import RecoverySpec

SCREENING_BATCHES = 2
"""Candidates are compared on at least this many batches of windows, and on a quarter of many."""

TORN = 0.3
"""Relative error of the first token from which on it gets an offset: a massive activation was born inside."""


def fit_kept_layer(data: FitData, spec: RecoverySpec, *, beside: bool) -> BlockFit:
    """Refit the best layer of the block, or the one that the spec names; see :mod:`ghostlab.recovery.refit`.

    Raises:
        UnsupportedModelError: If the family's layers cannot be refitted in closed form.
        ConfigError: If that layer is not one of the block.
    """
    setup = Setup(
        places=find_projections(data.model),
        beside=beside,
        weighted=data.weighting == "relative",
        ridge=spec.ridge,
        attention=spec.option("attention", "joint"),
    )
    layer, screened = _choose(data, spec.option("layer", "auto"), setup)
    fitted = refit(data, layer, setup)
    offset = _first_offset(data, fitted, spec.option("first", "auto"))
    fitted_map = None
    if beside or offset is not None:
        fitted_map = AffineMap(fitted.matrix, bias=fitted.bias, first=offset)
    return BlockFit(
        Replacement(fitted_map, layer, fitted.weights),
        ridge=fitted.ridge,
        explained_train=_explained(data, fitted, offset),
        first_apart=offset is not None,
        details={
            "layer": layer,
            "first": "layer" if offset is None else "offset",
            "relative_error": fitted.error**0.5,
            "screened": {str(index): error**0.5 for index, error in screened.items()},
        },
        warnings=tuple(filter(None, (*scarcity(data.calib.tokens, data.model.width), fitted.warning))),
    )


def _choose(data: FitData, asked: str, setup: Setup) -> tuple[int, dict[int, float]]:
    """The layer to keep, and the error of each candidate."""
    layers = range(data.block.start, data.block.stop)
    if asked != "auto":
        if not asked.isdecimal() or int(asked) not in layers:
            raise ConfigError(
                f"Layer '{asked}' is not one of block {data.block}.",
                f"Use auto, or {layers[0]} to {layers[-1]}.",
            )
        return int(asked), {}
    if len(layers) == 1:
        return layers[0], {}
    batches = screening_batches(data.calib.windows.fold, data.calib.batch)
    errors = {layer: refit(data, layer, setup, batches=batches).error for layer in layers}
    return min(errors, key=lambda layer: errors[layer]), errors


def screening_batches(folds: Tensor, size: int) -> set[int]:
    """Batches that candidates are compared on: a quarter of many, and of two folds if there are two.

    With one fold alone, ridges could not be validated and candidates would be ranked by training error.

    Args:
        folds: The fold of each window, [W].
        size: Windows per batch.
    """
    present = [set(folds[start : start + size].tolist()) for start in range(0, len(folds), size)]
    chosen = set(range(0, len(present), max(1, min(4, len(present) // SCREENING_BATCHES))))
    if len(set().union(*(present[batch] for batch in chosen))) == 1:
        chosen |= {next((batch for batch, own in enumerate(present) if own != present[0]), 0)}
    return chosen


def _first_offset(data: FitData, fitted: Refit, asked: str) -> Tensor | None:
    """Mean change of first tokens, unless the layer itself gets them right."""
    if asked == "layer":
        return None
    change = data.moments().first_change()
    if asked == "offset":
        return change
    missed = torch.cat(
        [
            (output[:, 0] - after[:, 0]).norm(dim=-1) / after[:, 0].norm(dim=-1)
            for _, after, output in outputs(data, fitted)
        ]
    )
    return change if float(missed.mean()) > TORN else None


def _explained(data: FitData, fitted: Refit, offset: Tensor | None) -> float:
    """Share of the gap that is explained on the calibration tokens."""
    missed = gap = 0.0
    for before, after, output in outputs(data, fitted):
        if offset is not None:
            output[:, 0] = before[:, 0] + offset.to(before)
        missed += float(exact(output - after).square().sum())
        gap += float(exact(after - before).square().sum())
    return 1 - missed / gap if gap else 0.0
