"""Progress and cancellation, passed explicitly from the caller down to each loop.

A :class:`Progress` reports to one listener how far a piece of work is and raises
:class:`~ghostlab.errors.Cancelled` as soon as its :class:`CancelToken` is set. Work that has several
stages hands each of them a slice of its own range, so that the fraction seen outside never goes back.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from ghostlab.errors import Cancelled

Item = TypeVar("Item")


@dataclass(frozen=True)
class ProgressUpdate:
    """The fraction of the whole that is done (0 to 1), and what is happening."""

    fraction: float
    message: str


ProgressSink = Callable[[ProgressUpdate], None]


class CancelToken:
    """A flag that one thread sets and the working thread checks between two steps."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._until = math.inf

    def allow(self, seconds: float) -> None:
        """Cancel automatically after ``seconds`` from now."""
        self._until = time.monotonic() + seconds

    def cancel(self) -> None:
        """Ask the work to stop; harmless when repeated."""
        self._event.set()

    @property
    def cancelled(self) -> bool:
        """Whether a stop was requested or the time is up."""
        return self._event.is_set() or self.expired

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self._until


class Progress:
    """The part ``[low, high]`` of longer work: ``sink`` hears of each step, ``cancel`` may stop it."""

    def __init__(
        self,
        sink: ProgressSink | None = None,
        cancel: CancelToken | None = None,
        low: float = 0.0,
        high: float = 1.0,
    ) -> None:
        self.sink = sink
        self.cancel = cancel
        self.low = low
        self.high = high

    def check(self) -> None:
        """Raise :class:`Cancelled` if a stop was requested."""
        if self.cancel is not None and self.cancel.cancelled:
            raise Cancelled

    def at(self, fraction: float, message: str) -> None:
        """Report ``fraction`` (0 to 1) of this part as done; checks the token first."""
        self.check()
        if self.sink is not None:
            share = min(max(fraction, 0.0), 1.0)
            self.sink(ProgressUpdate(self.low + share * (self.high - self.low), message))

    def part(self, low: float, high: float) -> Progress:
        """The slice from ``low`` to ``high`` (fractions of this part) as a progress of its own."""
        width = self.high - self.low
        return Progress(self.sink, self.cancel, self.low + low * width, self.low + high * width)

    def shares(self, count: int) -> list[Progress]:
        """This part in ``count`` equal slices, one for each of several pieces of work."""
        return [self.part(number / count, (number + 1) / count) for number in range(count)]

    def each(self, items: Sequence[Item], message: str) -> Iterator[Item]:
        """Iterate over ``items``, reporting after each how many are done."""
        return self.over(items, len(items), message)

    def over(self, items: Iterable[Item], total: int, message: str) -> Iterator[Item]:
        """Iterate over ``total`` items of any iterable, reporting after each how many are done."""
        self.at(0.0, message)
        for done, item in enumerate(items, start=1):
            yield item
            self.at(done / max(total, 1), f"{message} ({done}/{total})")


SILENT = Progress()


def shared_context(
    make: Callable[[], AbstractContextManager[None]],
) -> Callable[[], AbstractContextManager[None]]:
    """A process-wide context for threads that overlap: the first one enters it, the last one leaves it.

    Without this, the thread that leaves last would bring back the state that it found: another's.
    """
    lock, entered, inside = threading.Lock(), ExitStack(), 0

    @contextmanager
    def context() -> Iterator[None]:
        nonlocal inside
        with lock:
            if not inside:
                entered.enter_context(make())
            inside += 1
        try:
            yield
        finally:
            with lock:
                inside -= 1
                if not inside:
                    entered.close()

    return context
