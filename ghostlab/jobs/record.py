"""A job: what is known of it, and how its own work reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar

from ghostlab.progress import CancelToken, ProgressUpdate

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)
JobState = Literal["waiting", "running", "done", "failed", "stopped"]


@dataclass(frozen=True)
class JobView(Generic[Result_co]):
    """What is known of a job at one moment: the store keeps the newest, watchers are given it.

    Attributes:
        about: What the work is, in the words of whoever submitted it.
        version: Grows with every change; compare to know whether there is news.
        fraction: Share of the work that is done, 0 to 1.
        position: Place in the waiting list, from 1; 0 for a job that does not wait.
        elapsed: Seconds of compute so far.
        remaining: Estimated seconds left, or ``None`` while there is too little to judge by.
        texts: Variant -> text generated so far.
        result: What the work returned, or kept before it was stopped or failed.
        error: The sentence for the user when the job failed.
        owner, key: Whose it is, and the name of the request: equal ones are the same work.
        uploader: Who uploaded the result; ``None`` for a job that computed it.
        started, ended: Seconds of the monotonic clock; 0 for not yet.
        pace: (fraction, elapsed) of the updates so far, for the estimate.
    """

    id: str
    kind: str
    about: str = ""
    state: JobState = "waiting"
    version: int = 0
    fraction: float = 0.0
    message: str = ""
    position: int = 0
    elapsed: float = 0.0
    remaining: float | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    result: Result_co | None = None
    error: str = ""
    stopping: bool = False
    owner: str = ""
    key: str = ""
    uploader: str | None = None
    came: float = field(default_factory=time.monotonic)
    started: float = 0.0
    ended: float = 0.0
    pace: tuple[tuple[float, float], ...] = ((0.0, 0.0),)

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen."""
        return self.state not in ("waiting", "running")

    def advanced(self, fraction: float, message: str) -> JobView[Result_co]:
        """With a report of how far the work is; the pace keeps steps of at least half a per cent."""
        step = ((fraction, time.monotonic() - self.started),) if fraction - self.pace[-1][0] >= 0.005 else ()
        return replace(self, fraction=fraction, message=message, pace=(*self.pace, *step))

    def at(self, position: int, *, stopping: bool) -> JobView[Result_co]:
        """As it is now, at this place of the waiting list."""
        elapsed = (self.ended or time.monotonic()) - self.started if self.started else 0.0
        remaining = time_left(self.pace, self.fraction, elapsed)
        times: dict[str, Any] = {"elapsed": elapsed, "remaining": remaining}
        return replace(self, position=position, stopping=self.stopping or stopping, **times)


Change = Callable[[JobView[Any]], JobView[Any]]


class Job(Generic[Result]):
    """A job as its own work sees it: where to report, what to keep, whether to stop.

    Args:
        id: The job's id.
        cancel: The token that stops it.
        change: Changes what is known of it and wakes the watchers.
    """

    def __init__(self, id: str, cancel: CancelToken, change: Callable[[Change], None]) -> None:
        self.id = id
        self.cancel = cancel
        self._change = change

    def progress(self, update: ProgressUpdate) -> None:
        """Report how far the work is; fits :data:`~ghostlab.progress.ProgressSink`."""
        self._change(lambda view: view.advanced(update.fraction, update.message))

    def text(self, variant: str, text: str) -> None:
        """Show ``text`` as what ``variant`` has generated so far."""
        self._change(lambda view: replace(view, texts={**view.texts, variant: text}))

    def keep(self, result: Result) -> None:
        """Keep a result that must survive a later stop or failure."""
        self._change(lambda view: replace(view, result=result))


def time_left(pace: Sequence[tuple[float, float]], fraction: float, elapsed: float) -> float | None:
    """Seconds left at the speed of the latter half of what is done; ``None`` while that would be a guess.

    A slow start (a model that is loaded first) says little about the rest, so the first half is left out.

    Args:
        pace: (fraction, elapsed seconds) of earlier updates, ascending, from (0, 0).
        fraction: Share of the work that is done.
        elapsed: Seconds so far; growing while nothing is reported, which makes the estimate grow too.
    """
    if elapsed < 2.0 or fraction < 0.05:
        return None
    share, seconds = next(point for point in reversed(pace) if point[0] <= fraction / 2)
    return (elapsed - seconds) / (fraction - share) * (1.0 - fraction)
