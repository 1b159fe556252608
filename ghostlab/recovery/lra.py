"""SHIFT-LLM's linear residual adapters: one affine map per removed layer, merged exactly.

Each layer's adapter is fitted to the original's own states on both sides of that layer, then adjacent ones
are multiplied out: I + A = (I + A1)(I + A2), b = b1 (I + A2) + b2. A rank is taken as SHIFT-LLM takes it, of
each layer's adapter before merging; the product of n adapters of rank r then has rank n r, and is stored as
factors of that rank where they are smaller than the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ghostlab.cut import Block
from ghostlab.recovery.base import LEAST_SQUARES, BlockFit, FitData, Operator, Option, RecoverySpec

if TYPE_CHECKING:
    from torch import Tensor

    from ghostlab.calibration.moments import BlockMoments, Moments
    from ghostlab.recovery.linear import LinearFit
    from ghostlab.recovery.lowrank import Factors

BIAS = Option(
    "free: not penalised; penalised: the ridge pulls the bias too, as the paper writes it",
    ("free", "penalised"),
)
FACTOR = Option("how the rank of each layer's adapter is taken", ("truncated_svd", "reduced_rank"))


@dataclass(frozen=True)
class Adapter:
    """x -> x + x A + b in float64; ``factors`` multiply out to A where it has a low rank."""

    matrix: Tensor
    bias: Tensor
    factors: Factors | None = None


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """Fit every layer of the block, merge, and report the merged map."""
    from ghostlab.model.replacement import AffineMap
    from ghostlab.recovery.linear import block_fit

    block = data.block
    fits = [_fit_layer(data, layer, spec) for layer in range(block.start, block.stop)]
    merged = merge([Adapter(f.matrix, _bias(f), f.factors) for f in fits])
    small = merged.factors is not None and 2 * merged.factors[0].shape[1] < len(merged.bias)
    fitted = AffineMap(
        None if small else merged.matrix, factors=merged.factors if small else None, bias=merged.bias
    )
    ridges = {"ridge_by_layer": [f.ridge.relative for f in fits]}
    reported = block_fit(data, fitted, free=True, details=ridges)
    warnings = dict.fromkeys(f.ridge.warning for f in fits if f.ridge.warning)
    return replace(reported, warnings=(*reported.warnings, *warnings))


def merge(adapters: Sequence[Adapter]) -> Adapter:
    """One adapter that does what all of them do one after the other; at least one."""
    import torch

    merged, *rest = adapters
    for after in rest:
        # (I + A)(I + A2) = I + A + (I + A) A2, and (I + A) down2 = down2 + down (up down2)
        factors = None
        if merged.factors is not None and after.factors is not None:
            (down, up), (down2, up2) = merged.factors, after.factors
            factors = torch.cat([down, down2 + down @ (up @ down2)], 1), torch.cat([up, up2])
        matrix = merged.matrix + after.matrix + merged.matrix @ after.matrix
        merged = Adapter(matrix, merged.bias + merged.bias @ after.matrix + after.bias, factors)
    return merged


def _fit_layer(data: FitData, layer: int, spec: RecoverySpec) -> LinearFit:
    from ghostlab.recovery.linear import least_squares

    folds = _layer_moments(data, layer).folds()
    if spec.option("bias", "free") == "free":
        return least_squares(folds, spec, bias=True, factoring="truncated_svd")
    return _penalised(folds, spec)


def _layer_moments(data: FitData, layer: int) -> BlockMoments:
    """Moments of one layer; collected for one layer at a time and not kept, to bound memory."""
    block = data.block
    share = 1 / len(range(block.start, block.stop))
    done = (layer - block.start) * share
    step = FitData(
        data.calib,
        Block(layer, layer + 1),
        data.patched if layer == block.start else None,  # after the start, states are the original's
        data.progress.part(done, done + share),
    )
    moments = data.calib.empty_moments(step.block, data.weighting)
    for rows, states in step.batches({layer, layer + 1}):
        moments.add(states[layer], states[layer + 1], data.calib.windows.fold[rows])
    return moments


def _penalised(folds: Sequence[Moments], spec: RecoverySpec) -> LinearFit:
    """Theta = ([X, 1]'[X, 1] + ridge I)^-1 [X, 1]'D, its last row the bias."""
    from ghostlab.calibration.moments import total
    from ghostlab.calibration.solve import fit_affine
    from ghostlab.recovery.linear import LinearFit
    from ghostlab.recovery.lowrank import factor

    augmented = [with_ones(fold) for fold in folds]
    theta, _, ridge = fit_affine(augmented, spec.ridge, bias=False)
    matrix, bias = theta[:-1], theta[-1]
    if spec.rank is None:
        return LinearFit(matrix, None, bias, ridge)
    cross = total(augmented).gram[:-1, :-1] @ matrix
    factors = factor(spec, matrix, cross, "truncated_svd")
    return LinearFit(factors[0] @ factors[1], factors, bias, ridge)


def with_ones(moments: Moments) -> Moments:
    """The same moments with a channel of ones after X."""
    import torch

    ones = moments.x.new_tensor([moments.count])
    x = torch.cat([moments.x, ones])
    gram = torch.cat([torch.cat([moments.gram, moments.x[:, None]], 1), x[None]])
    return replace(moments, x=x, gram=gram, cross=torch.cat([moments.cross, moments.change[None]]))


def _bias(fitted: LinearFit) -> Tensor:
    assert fitted.bias is not None
    return fitted.bias


OPERATOR = Operator(
    name="lra",
    title="Linear residual adapters",
    summary="An affine map for every removed layer, fitted one by one and merged exactly into one.",
    formula=r"\hat y = x + xA + b,\quad I + A = \prod_l (I + A_l),\quad"
    r" [A_l; b_l] = ([X_l, 1]^\top [X_l, 1] + \lambda I)^{-1} [X_l, 1]^\top \Delta_l",
    expresses="any affine map; the product of one per layer, so not the best for the whole block",
    source="SHIFT-LLM",
    group="map",
    fit=fit,
    adds="C² + C",
    options={**LEAST_SQUARES, "factor": FACTOR, "bias": BIAS},
)
