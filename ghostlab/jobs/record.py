"""What is known of a job: the store's record of it, and the view that watchers get."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from ghostlab.progress import CancelToken, ProgressUpdate

Result = TypeVar("Result")
Seen_co = TypeVar("Seen_co", covariant=True)
JobState = Literal["waiting", "running", "done", "failed", "stopped"]


@dataclass(frozen=True)
class JobView(Generic[Seen_co]):
    """What a watcher sees of a job at one moment.

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
    """

    id: str
    kind: str
    about: str
    state: JobState
    version: int
    fraction: float
    message: str
    position: int
    elapsed: float
    remaining: float | None
    texts: Mapping[str, str]
    result: Seen_co | None
    error: str
    stopping: bool

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen."""
        return self.state not in ("waiting", "running")


@dataclass(eq=False)
class JobRecord(Generic[Result]):
    """The store's own notes on a job; touched only while the store's lock is held.

    ``identity`` is owner, kind and key; ``start`` runs the work and is cleared once a thread has it;
    ``parts`` are the identities and bytes of what the result holds.
    """

    id: str
    kind: str
    identity: tuple[str, str, str]
    about: str = ""
    start: Callable[[], object] | None = None
    came: float = field(default_factory=time.monotonic)
    cancel: CancelToken = field(default_factory=CancelToken)
    state: JobState = "waiting"
    version: int = 0
    fraction: float = 0.0
    message: str = ""
    started: float = 0.0
    ended: float = 0.0
    texts: dict[str, str] = field(default_factory=dict)
    result: Result | None = None
    error: str = ""
    parts: Mapping[int, int] = field(default_factory=dict)
    pace: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 0.0)])

    def advance(self, fraction: float, message: str) -> None:
        """Note how far the work is; the way there in steps of at least half a per cent."""
        self.fraction, self.message = fraction, message
        if fraction - self.pace[-1][0] >= 0.005:
            self.pace.append((fraction, time.monotonic() - self.started))

    def look(self, position: int) -> JobView[Result]:
        """A frozen view of the job as it is now, at this place of the waiting list."""
        elapsed = (self.ended or time.monotonic()) - self.started if self.started else 0.0
        return JobView(
            id=self.id,
            kind=self.kind,
            about=self.about,
            state=self.state,
            version=self.version,
            fraction=self.fraction,
            message=self.message,
            position=position,
            elapsed=elapsed,
            remaining=time_left(self.pace, self.fraction, elapsed),
            texts=dict(self.texts),
            result=self.result,
            error=self.error,
            stopping=self.cancel.cancelled,
        )


class Job(Generic[Result]):
    """A job as its own work sees it: where to report, what to keep, whether to stop.

    Args:
        record: The store's notes on it.
        change: A locked change of the record that wakes the watchers.
    """

    def __init__(
        self,
        record: JobRecord[Result],
        change: Callable[[], AbstractContextManager[JobRecord[Result]]],
    ) -> None:
        self._change = change
        self.id = record.id
        self.cancel = record.cancel

    def progress(self, update: ProgressUpdate) -> None:
        """Report how far the work is; fits :data:`~ghostlab.progress.ProgressSink`."""
        with self._change() as record:
            record.advance(update.fraction, update.message)

    def text(self, variant: str, text: str) -> None:
        """Show ``text`` as what ``variant`` has generated so far."""
        with self._change() as record:
            record.texts[variant] = text

    def keep(self, result: Result) -> None:
        """Keep a result that must survive a later stop or failure."""
        with self._change() as record:
            record.result = result


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
