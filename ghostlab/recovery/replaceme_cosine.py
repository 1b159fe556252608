"""ReplaceMe by cosine distance, its default: the transform is found by gradient descent.

The optimiser is the paper's (Adam from T = I). States are read anew for every epoch instead of being held
all at once, so that memory does not grow with the text; batches are of tokens in the order of the windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ghostlab.progress import Progress
from ghostlab.recovery.base import BlockFit, FitData, Operator, Option, RecoverySpec

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from ghostlab.recovery.mlp import MlpBefore

TOKENS = 1024
"""Tokens per step, as in the paper."""

EPOCHS = 1000
"""The most passes: without a bound one request could keep a shared host busy for ever."""


def fit(data: FitData, spec: RecoverySpec) -> BlockFit:
    """Minimise the mean of 1 - cos(M T, x_e - rest) over T."""
    import torch

    from ghostlab.model.device import exact
    from ghostlab.recovery.linear import scarcity
    from ghostlab.recovery.mlp import MlpBefore, explained

    before = MlpBefore(data, "replaceme_cosine")
    epochs, rate = int(spec.option("epochs", "10")), float(spec.option("lr", "1e-4"))
    width = data.model.width
    transform = torch.eye(width, device=data.model.device).requires_grad_()
    adam = torch.optim.Adam([transform], lr=rate)
    share = 1 / (epochs + 1)
    _, plain = before.moments("none", data.progress.part(0, share))
    losses = []
    for epoch in range(1, epochs + 1):
        part = data.progress.part(epoch * share, (epoch + 1) * share)
        losses.append(_epoch(before, transform, adam, part))
    change = exact(transform.detach()).to(plain.gram.device)
    change = change - torch.eye(width, dtype=change.dtype, device=change.device)
    return BlockFit(
        before.replacement(change),
        explained_train=explained(plain, change),
        details={"cosine_distance": losses, "epochs": epochs, "lr": rate},
        warnings=scarcity(data.calib.tokens, width),
    )


def _epoch(before: MlpBefore, transform: Tensor, adam: torch.optim.Optimizer, progress: Progress) -> float:
    """One pass over the tokens; the mean loss per token during it."""
    import torch
    from torch.nn.functional import cosine_similarity

    summed, count = 0.0, 0
    for output, target in steps(_pairs(before, progress)):
        progress.check()
        with torch.enable_grad():
            loss = (1 - cosine_similarity(output @ transform, target, dim=-1)).mean()
            (transform.grad,) = torch.autograd.grad(loss, transform)
        adam.step()
        summed, count = summed + float(loss.detach()) * len(output), count + len(output)
    return summed / count


def _pairs(before: MlpBefore, progress: Progress) -> Iterator[tuple[Tensor, Tensor]]:
    """M and x_e - rest = c (D + M), up to the scale c that no cosine sees, in float32."""
    for batch in before.batches(progress):
        output = batch.output.float()
        yield output, batch.change.float() + output


def steps(pairs: Iterable[tuple[Tensor, Tensor]], tokens: int = TOKENS) -> Iterator[tuple[Tensor, Tensor]]:
    """The same tokens in batches of ``tokens``, the last one what is left."""
    import torch

    held: list[Tensor] = []
    for pair in pairs:
        merged = [torch.cat(parts) for parts in zip(held, pair, strict=True)] if held else list(pair)
        while len(merged[0]) >= tokens:
            yield merged[0][:tokens], merged[1][:tokens]
            merged = [part[tokens:] for part in merged]
        held = merged
    if held and len(held[0]):
        yield held[0], held[1]


OPERATOR = Operator(
    name="replaceme_cosine",
    title="ReplaceMe, cosine",
    summary="The same place, with the transform that brings directions closest, by gradient descent.",
    formula=r"W_{down}' = W_{down} T,\quad T = \arg\min_T \overline{1 - \cos(MT,\; x_e - x_s + M)}",
    expresses="as `replaceme_ls`; directions matched instead of errors minimised",
    source="ReplaceMe (2505.02819), cosine",
    group="merged",
    fit=fit,
    adds="0",
    options={
        "epochs": Option("passes over the calibration tokens", number=10, most=EPOCHS),
        "lr": Option("step size of Adam", number=1e-4),
    },
)
