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

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ghostlab.model.decoder import hidden
from ghostlab.model.projections import Projections, stored, watch, weight_of
from ghostlab.recovery.data import FitData
from ghostlab.recovery.regression import Regression, Solution


@dataclass(frozen=True)
class Setup:
    """What is asked of a refit.

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
        error: Cross-validated ||Y' - Y||^2 / ||Y||^2 on tokens that are not first (weighted if asked).
    """

    layer: int
    weights: dict[str, Tensor]
    matrix: Tensor | None
    bias: Tensor | None
    ridge: float
    error: float


@dataclass(frozen=True)
class Rows:
    """Tokens of some windows that are not first: folds [N], regressors [N, K], targets and states [N, C]."""

    fold: Tensor
    regressors: Tensor
    target: Tensor
    after: Tensor


def refit(data: FitData, layer: int, setup: Setup, *, every: int = 1) -> Refit:
    """Refit one layer of the block.

    Args:
        data: The block's data.
        layer: j, in the original's numbering.
        setup: What is asked.
        every: Read every n-th batch of windows only, to screen candidates.
    """
    own = data.model.decoder.blocks[layer]
    places = setup.places
    first = _regress(_attention_rows(data, own, layer, setup, every), own, places.attention, setup)
    weights = _parameters(own, places.attention, first, setup)
    second = _regress(
        _mlp_rows(data, with_parameters(own, weights), layer, setup, every), own, places.mlp, setup
    )
    weights |= _parameters(own, places.mlp, second, setup)
    return Refit(
        layer,
        weights,
        places.scale * second.matrix[-data.model.width :] if setup.beside else None,
        places.scale * second.bias if setup.beside else None,
        second.ridge,
        second.error,
    )


def outputs(data: FitData, fitted: Refit) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """States before the block, after it, and what the refitted layer (and its map) makes, [B, T, C] each."""
    layer = with_parameters(data.model.decoder.blocks[fitted.layer], fitted.weights)
    for rows, before, after in _pairs(data, every=1):
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


def _attention_rows(data: FitData, layer: nn.Module, index: int, setup: Setup, every: int) -> Iterator[Rows]:
    places = setup.places
    paths = (places.attention, places.mlp) if setup.attention == "joint" else (places.attention,)
    for rows, before, after in _pairs(data, every):
        with watch(layer, paths) as written:
            _run(layer, before, data, rows, index)
        seen = torch.cat([written.inputs[path] for path in paths], dim=1)
        yield _rows(data, rows, setup, seen, (before, (after - before) / places.scale, after))


def _mlp_rows(data: FitData, layer: nn.Module, index: int, setup: Setup, every: int) -> Iterator[Rows]:
    path, scale = setup.places.mlp, setup.places.scale
    for rows, before, after in _pairs(data, every):
        with watch(layer, (path,)) as written:
            output = _run(layer, before, data, rows, index)
        halfway = output - scale * written.outputs[path].view_as(output)
        yield _rows(data, rows, setup, written.inputs[path], (before, (after - halfway) / scale, after))


def _rows(
    data: FitData, rows: slice, setup: Setup, seen: Tensor, states: tuple[Tensor, Tensor, Tensor]
) -> Rows:
    """Drop the first token of each window, and put the state next to what the projection saw if asked."""
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


def _pairs(data: FitData, every: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
    start, stop = data.block.start, data.block.stop
    for number, (rows, states) in enumerate(data.batches({start, stop})):
        if number % every == 0:
            yield rows, states[start], states[stop]


@torch.no_grad()
def _run(layer: nn.Module, state: Tensor, data: FitData, rows: slice, index: int) -> Tensor:
    args, kwargs = data.calls(rows).calls[index]
    return hidden(layer(state, *args, **kwargs))
