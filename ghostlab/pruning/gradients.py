"""Gradients of the likelihood for the weights of one layer after another, from the last to the first.

A layer is run again on the states it received, with twins of its parameters that share their memory and ask
for gradients: the model itself is never touched, and gradients of one layer exist at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ghostlab.calibration.calibrate import Calibration
from ghostlab.model.decoder import hidden
from ghostlab.model.device import exact_device
from ghostlab.model.likelihood import nll_gradient
from ghostlab.progress import Progress

Gradients = dict[str, Tensor]


def layer_gradients(calib: Calibration, progress: Progress) -> Iterator[tuple[int, Gradients]]:
    """Gradients of the summed negative log-likelihood of all windows, float32, for layers L-1, ..., 0."""
    decoder, depth = calib.model.decoder, calib.model.depth
    upstream = [
        nll_gradient(decoder, states[depth], calib.windows.ids[rows].to(calib.model.device))
        for rows, states in calib.states(range(depth + 1), progress.part(0.0, 0.25))
    ]
    for done, layer in enumerate(reversed(range(depth))):
        low, high = (0.25 + 0.75 * step / depth for step in (done, done + 1))
        summed: Gradients = {}
        batches = calib.states({layer}, progress.part(low, high), f"Gradients of layer {layer}")
        for number, (rows, states) in enumerate(batches):
            call = calib.calls(rows, depth).calls[layer]
            upstream[number], found = _backward(decoder.blocks[layer], states[layer], call, upstream[number])
            for name, gradient in found.items():
                summed[name] = summed[name] + gradient.float() if name in summed else gradient.float()
        yield layer, summed


def taylor(calib: Calibration, windows: int, progress: Progress) -> list[float]:
    """Sum over each layer's parameters of |w * dL/dw|, L the mean negative log-likelihood of some windows.

    Gradients keep their sign until all windows are summed; only then are magnitudes taken.
    """
    sample = calib.some(windows)
    values = [0.0] * calib.model.depth
    for layer, gradients in layer_gradients(sample, progress):
        weights = dict(calib.model.decoder.blocks[layer].named_parameters())
        products = [_magnitude(weights[name].float() * g) for name, g in gradients.items()]
        values[layer] = sum(products) / (sample.windows.count * sample.windows.predicted)
    return values


def _magnitude(product: Tensor) -> float:
    """Sum of magnitudes, added up in float64."""
    return float(product.abs().to(exact_device(product.device)).sum(dtype=torch.float64))


def _backward(
    block: nn.Module, state: Tensor, call: tuple[tuple[Any, ...], dict[str, Any]], upstream: Tensor
) -> tuple[Tensor, Gradients]:
    """Gradients for the input of a layer and for its parameters, from the gradient for its output."""
    args, kwargs = call
    with torch.enable_grad():
        weights = {name: p.detach().requires_grad_() for name, p in block.named_parameters()}
        given = state.detach().requires_grad_()
        output = hidden(functional_call(block, weights, (given, *args), kwargs))
        first, *rest = torch.autograd.grad(
            output, [given, *weights.values()], upstream, allow_unused=True, materialize_grads=True
        )
    return first, dict(zip(weights, rest, strict=True))
