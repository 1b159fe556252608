"""Refit one layer of a block in closed form, so that it does the work of all of them.

LLM-Streamline trains one layer to stand in for a block. The same can be had without training: layer j, run on
the state X before the block, writes to the residual stream in two places, and both are linear in what they
are given. In the layer's own order, on all tokens but the first of each window:

1. attention: W_o, from the heads H of layer j on X to the change Y - X; the features F of the MLP as they are
   take part in the solve, so that heads are not asked to do what the MLP does better;
2. MLP: with x2 = X + H W_o, the features F of layer j on x2, W_d from F to Y - x2.

With a map beside the layer, X and a constant are regressors next to H, then next to F. Of a block that is one
layer the solution is that layer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ghostlab.calibration.moments import Moments, total
from ghostlab.calibration.solve import fit_affine
from ghostlab.model.decoder import hidden
from ghostlab.model.device import exact
from ghostlab.model.projections import Projections, stored, watch, weight_of
from ghostlab.recovery.data import FitData

WIDE = 1024
"""With more regressors than this one fold validates the ridge: each costs an eigendecomposition of K x K."""


@dataclass(frozen=True)
class Setup:
    """How a layer is refitted.

    Attributes:
        places: Where the layer writes.
        beside: Whether there is a linear map with bias beside the layer.
        weighted: Whether tokens count by 1 / mean-square(y).
        ridge: The ridge setting, relative to regressors of unit scale.
        attention: Fit W_o ``joint``ly with the MLP's features, or ``alone``.
    """

    places: Projections
    beside: bool
    weighted: bool
    ridge: str
    attention: str = "joint"


@dataclass(frozen=True)
class Refit:
    """One layer, refitted.

    Attributes:
        layer: j.
        weights: New parameters of its projections, by path, as the module stores them.
        matrix: The map beside it, [C, C], or ``None``.
        bias: Its bias, [C], or ``None``.
        ridge: Ridge of the second solve.
        warning: What the user should know about it.
        error: Cross-validated ||Y' - Y||^2 / ||Y||^2 on tokens that are not first (weighted if the fit is).
    """

    layer: int
    weights: dict[str, Tensor]
    matrix: Tensor | None
    bias: Tensor | None
    ridge: float
    warning: str
    error: float


@dataclass(frozen=True)
class Rows:
    """Tokens of some windows that are not first: folds [N], regressors [N, K], targets and states [N, C]."""

    fold: Tensor
    regressors: Tensor
    target: Tensor
    after: Tensor


@dataclass(frozen=True)
class Solution:
    """What a regression found.

    Attributes:
        matrix: Coefficients [K, C].
        bias: [C]; zero if none was fitted.
        ridge: Ridge used, relative to regressors of unit scale.
        warning: What the user should know about it.
        error: Squared error over ||Y||^2: cross-validated, or on the fitted rows where nothing could be.
    """

    matrix: Tensor
    bias: Tensor
    ridge: float
    warning: str
    error: float


class Regression:
    """Moments of regressors Z [N, K] and targets D [N, C], fold by fold, float64.

    Args:
        weighted: Count each row by 1 / mean-square of its state y, so that the loss is a relative error.
    """

    def __init__(self, *, weighted: bool) -> None:
        self.weighted = weighted
        self.power = 0.0
        self._folds: dict[int, Moments] = {}

    def add(self, fold: Tensor, regressors: Tensor, target: Tensor, state: Tensor) -> None:
        """Take in rows: folds [N], Z [N, K], D [N, C], and the states y [N, C] that weights come from."""
        regressors, target, state = exact(regressors), exact(target), exact(state)
        power = state.square().sum(-1)
        weight = state.shape[-1] / power if self.weighted else torch.ones_like(power)
        self.power += float((power * weight).sum())
        for index in sorted(set(fold.tolist())):
            take = (fold == index).to(state.device)
            part = Moments.of(regressors[take], target[take], weight[take])
            self._folds[index] = self._folds[index] + part if index in self._folds else part

    def solve(self, setting: str, *, centre: bool) -> Solution:
        """Fit; regressors of different kinds are brought to unit scale before the ridge is applied.

        Args:
            setting: As in :class:`~ghostlab.spec.RecoverySpec`.
            centre: Whether an unpenalised bias is fitted along.
        """
        folds = list(self._folds.values())
        whole = total(folds)
        diagonal = (whole.centred() if centre else whole).gram.diagonal()
        unit = torch.where(diagonal > 0, diagonal, torch.ones_like(diagonal)).rsqrt()
        folds = [fold.scaled(unit) for fold in folds]
        validations = 1 if len(unit) > WIDE else None
        matrix, bias, ridge = fit_affine(folds, setting, bias=centre, validations=validations)
        whole = total(folds)
        gap = (whole.centred() if centre else whole).total
        left = 1 - max(ridge.curve) if ridge.curve else whole.residual(matrix, bias) / gap
        bias = torch.zeros_like(whole.change) if bias is None else bias
        error = left * gap / self.power
        return Solution(unit[:, None] * matrix, bias, ridge.relative, ridge.warning, error)


def refit(data: FitData, layer: int, setup: Setup, *, batches: Collection[int] | None = None) -> Refit:
    """Refit one layer of the block.

    Args:
        data: The block's data.
        layer: j, in the original's numbering.
        setup: How.
        batches: Read these batches of windows only, to screen candidates.
    """
    own = data.model.decoder.blocks[layer]
    places = setup.places
    first = _regress(_attention_rows(data, own, layer, setup, batches), own, places.attention, setup)
    weights = _parameters(own, places.attention, first, setup)
    second = _regress(
        _mlp_rows(data, with_parameters(own, weights), layer, setup, batches), own, places.mlp, setup
    )
    weights |= _parameters(own, places.mlp, second, setup)
    return Refit(
        layer,
        weights,
        places.scale * second.matrix[-data.model.width :] if setup.beside else None,
        places.scale * second.bias if setup.beside else None,
        second.ridge,
        second.warning,
        second.error,
    )


def outputs(data: FitData, fitted: Refit) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """States before the block, after it, and what the refitted layer (and its map) makes, [B, T, C] each."""
    layer = with_parameters(data.model.decoder.blocks[fitted.layer], fitted.weights)
    for rows, before, after in _pairs(data):
        output = _run(layer, before, data, rows, fitted.layer)
        if fitted.matrix is not None and fitted.bias is not None:
            output = output + before @ fitted.matrix.to(before) + fitted.bias.to(before)
        yield before, after, output


def with_parameters(layer: nn.Module, parameters: Mapping[str, Tensor]) -> nn.Module:
    """A copy of a layer that shares all its parameters but the given ones."""
    shared = {id(tensor): tensor for tensor in (*layer.parameters(), *layer.buffers())}
    twin = deepcopy(layer, shared)
    for path, value in parameters.items():
        owner, _, name = path.rpartition(".")
        like = layer.get_parameter(path)
        setattr(twin.get_submodule(owner), name, nn.Parameter(value.to(like), requires_grad=False))
    return twin


def _attention_rows(
    data: FitData, layer: nn.Module, index: int, setup: Setup, batches: Collection[int] | None
) -> Iterator[Rows]:
    places = setup.places
    paths = (places.attention, places.mlp) if setup.attention == "joint" else (places.attention,)
    for rows, before, after in _pairs(data, batches):
        with watch(layer, paths) as written:
            _run(layer, before, data, rows, index)
        seen = torch.cat([written.inputs[path] for path in paths], dim=1)
        yield _rows(data, rows, setup, seen, (before, (after - before) / places.scale, after))


def _mlp_rows(
    data: FitData, layer: nn.Module, index: int, setup: Setup, batches: Collection[int] | None
) -> Iterator[Rows]:
    path, scale = setup.places.mlp, setup.places.scale
    for rows, before, after in _pairs(data, batches):
        with watch(layer, (path,)) as written:
            output = _run(layer, before, data, rows, index)
        halfway = output - scale * written.outputs[path].view_as(output)
        yield _rows(data, rows, setup, written.inputs[path], (before, (after - halfway) / scale, after))


def _rows(
    data: FitData, rows: slice, setup: Setup, seen: Tensor, states: tuple[Tensor, Tensor, Tensor]
) -> Rows:
    """Drop the first token of each window, and put the state beside the inputs where a map is fitted too."""
    before, target, after = (state[:, 1:].flatten(0, 1) for state in states)
    windows, length, _ = states[0].shape
    seen = seen.view(windows, length, -1)[:, 1:].flatten(0, 1)
    regressors = torch.cat([seen, before], dim=1) if setup.beside else seen
    fold = data.calib.windows.fold[rows].repeat_interleave(length - 1)
    return Rows(fold.to(target.device), regressors, target, after)


def _regress(rows: Iterator[Rows], layer: nn.Module, path: str, setup: Setup) -> Solution:
    regression = Regression(weighted=setup.weighted)
    for part in rows:
        regression.add(part.fold, part.regressors, part.target, part.after)
    has_bias = getattr(layer.get_submodule(path), "bias", None) is not None
    return regression.solve(setup.ridge, centre=setup.beside or has_bias)


def _parameters(layer: nn.Module, path: str, solution: Solution, setup: Setup) -> dict[str, Tensor]:
    """The projection's new weight and, where it has one, bias (0 if the map beside the layer holds it).

    Its own inputs come first among the regressors.
    """
    module = layer.get_submodule(path)
    matrix = solution.matrix[: weight_of(module).shape[0]]
    found = {f"{path}.weight": stored(module, matrix)}
    if getattr(module, "bias", None) is not None:
        found[f"{path}.bias"] = torch.zeros_like(solution.bias) if setup.beside else solution.bias
    return found


def _pairs(data: FitData, batches: Collection[int] | None = None) -> Iterator[tuple[slice, Tensor, Tensor]]:
    start, stop = data.block.start, data.block.stop
    for number, (rows, states) in enumerate(data.batches({start, stop})):
        if batches is None or number in batches:
            yield rows, states[start], states[stop]


@torch.no_grad()
def _run(layer: nn.Module, state: Tensor, data: FitData, rows: slice, index: int) -> Tensor:
    args, kwargs = data.calls(rows).calls[index]
    return hidden(layer(state, *args, **kwargs))
