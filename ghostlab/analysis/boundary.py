"""What is left of the gap at a boundary once a replacement has done its work, measured token by token."""

from __future__ import annotations

import torch
from torch import Tensor

from ghostlab.calibration.moments import massive_tokens
from ghostlab.model.device import exact
from ghostlab.results.records import BoundaryReport


class BoundaryErrors:
    """Errors of one replacement at the end of one block, accumulated over batches of held-out windows."""

    def __init__(self) -> None:
        self._tokens: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        self._channels: Tensor | None = None

    @torch.no_grad()
    def add(self, before: Tensor, after: Tensor, recovered: Tensor) -> None:
        """Take in states [B, T, C]: the original's before and after the block, and the replacement's."""
        target = exact(after)
        missed = (exact(recovered) - target).square()
        gap = (target - exact(before)).square()
        self._tokens.append(
            (
                missed.sum(-1).cpu(),
                gap.sum(-1).cpu(),
                target.square().sum(-1).cpu(),
                massive_tokens(before, after).cpu(),
            )
        )
        channels = torch.stack([missed.sum((0, 1)), gap.sum((0, 1))]).cpu()
        self._channels = channels if self._channels is None else self._channels + channels

    def report(self, explained_train: float | None) -> BoundaryReport:
        """The figures of all batches so far; at least one must have been added.

        Errors per channel and per position are ||Y' - Y||^2 / ||Y - X||^2 of that channel or position:
        what is left of the gap, 1 for plain dropping.
        """
        assert self._channels is not None
        missed, gap, power, massive = (torch.cat(parts) for parts in zip(*self._tokens, strict=True))
        ordinary = ~massive
        some = ordinary.sum(0) > 0
        left = _ratio((missed * ordinary).sum(0), (gap * ordinary).sum(0)).tolist()
        return BoundaryReport(
            explained=1 - float(_ratio(missed.sum(), gap.sum())),
            explained_train=explained_train,
            relative_error=float(_ratio(missed.sum(), power.sum()).sqrt()),
            relative_error_ordinary=float(_ratio(missed[ordinary].sum(), power[ordinary].sum()).sqrt()),
            explained_ordinary=1 - float(_ratio(missed[ordinary].sum(), gap[ordinary].sum())),
            channel_error=_ratio(*self._channels).tolist(),
            position_error=_ratio(missed.sum(0), gap.sum(0)).tolist(),
            position_error_ordinary=[
                value if known else None for value, known in zip(left, some.tolist(), strict=True)
            ],
        )


def pool(reports: list[BoundaryReport]) -> BoundaryReport:
    """One report for a cut of several blocks: the plain mean of theirs (one block: that block's own)."""
    if len(reports) == 1:
        return reports[0]

    def mean(name: str) -> float:
        values: list[float] = [getattr(report, name) for report in reports]
        return sum(values) / len(values)

    train = [report.explained_train for report in reports if report.explained_train is not None]
    return BoundaryReport(
        explained=mean("explained"),
        explained_train=sum(train) / len(train) if len(train) == len(reports) else None,
        relative_error=mean("relative_error"),
        relative_error_ordinary=mean("relative_error_ordinary"),
        explained_ordinary=mean("explained_ordinary"),
    )


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    return torch.where(whole > 0, part / whole.clamp(min=torch.finfo(whole.dtype).tiny), 0.0)
