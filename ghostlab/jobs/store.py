"""Jobs: compute that outlives the page that asked for it.

One job computes at a time; the others wait in the order they came. A job's id is the only key to it (it
cannot be guessed), so a link with the id re-attaches any page, and no user can reach another's job.
"""

from __future__ import annotations

import contextvars
import logging
import math
import secrets
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Generic, TypeVar

from ghostlab.errors import BusyError, Cancelled, GhostlabError
from ghostlab.jobs.record import Job as Job  # noqa: PLC0414 - whoever queues work takes it from here
from ghostlab.jobs.record import JobRecord, JobState, JobView

Result = TypeVar("Result")
_LOG = logging.getLogger(__name__)


class JobStore(Generic[Result]):
    """Runs work one job at a time and remembers a bounded number of results.

    Args:
        waiting: The most jobs that may wait; one more raises :class:`BusyError`.
        each: The most of them that one owner may have.
        seconds: How long a job may compute; what it kept until then stays.
        kept: How many finished jobs are remembered; the one looked at longest ago is forgotten first.
        room: Bytes that the results of finished jobs may take; the latest is kept whatever it takes.
        weigh: Identity of each part of a result -> its bytes; parts that results share count once.
    """

    def __init__(
        self,
        waiting: int = 16,
        kept: int = 32,
        room: int = sys.maxsize,
        weigh: Callable[[Result], Mapping[int, int]] = lambda _: {},
        *,
        each: int = sys.maxsize,
        seconds: float = math.inf,
    ) -> None:
        self._most_waiting = waiting
        self._each = each
        self._seconds = seconds
        self._most_kept = kept
        self._room = room
        self._weigh = weigh
        self._forgotten: deque[str] = deque(maxlen=4096)
        self._records: OrderedDict[str, JobRecord[Result]] = OrderedDict()
        self._queue: list[JobRecord[Result]] = []
        self._running: JobRecord[Result] | None = None
        self._changed = threading.Condition(threading.RLock())

    def submit(
        self, kind: str, key: str, work: Callable[[Job[Result]], Result], owner: str = "", about: str = ""
    ) -> str:
        """Queue ``work`` and return the job's id; the same request of the same owner is not queued twice.

        Args:
            kind: What sort of job, for people and logs.
            key: Names the request; equal keys of one owner mean the same work.
            work: Called with a :class:`Job` in a thread that carries the caller's context variables.
            owner: Who asks; owners never share a job, so that none can stop another's.
            about: What the work is, in the caller's own words; part of every view.

        Raises:
            BusyError: If too many jobs wait already.
        """
        identity = (owner, kind, key)
        with self._changed:
            for known in [*self._queue, self._running]:
                if known is not None and known.identity == identity and not known.cancel.cancelled:
                    return known.id
            if self._running and len(self._queue) >= self._most_waiting:
                raise BusyError(f"{len(self._queue)} runs are waiting already.", "Try again in some minutes.")
            if sum(record.identity[0] == owner for record in self._queue) >= self._each:
                raise BusyError(f"{self._each} of your runs are waiting already.", "Let one end first.")
            record: JobRecord[Result] = JobRecord(secrets.token_urlsafe(16), kind, identity, about)
            record.start = partial(contextvars.copy_context().run, self._compute, record, work)
            self._records[record.id] = record
            self._queue.append(record)
            self._advance()
            return record.id

    def put(self, kind: str, result: Result, about: str = "") -> str:
        """Keep a result that came from elsewhere as if a job had found it; return its id."""
        record: JobRecord[Result] = JobRecord(secrets.token_urlsafe(16), kind, ("", kind, ""), about)
        record.result, record.parts = result, self._weigh(result)
        with self._changed:
            self._records[record.id] = record
            self._end(record, "done")
        return record.id

    def made_room(self, job_id: str) -> bool:
        """Whether there was a job of this id that was forgotten for newer ones."""
        with self._changed:
            return job_id in self._forgotten

    def cancel(self, job_id: str) -> None:
        """Ask a job to stop: at once while it waits, at its next step while it runs; harmless otherwise."""
        with self._changed:
            record = self._records.get(job_id)
            if record is None or record.state not in ("waiting", "running"):
                return
            record.cancel.cancel()
            if record.state == "waiting":
                self._queue.remove(record)
                self._end(record, "stopped")
            self._announce()

    def view(self, job_id: str) -> JobView[Result] | None:
        """The job as it is now; ``None`` if there is none of this id (any more)."""
        return self.wait(job_id, seen=-1, timeout=0.0)

    def wait(self, job_id: str, seen: int, timeout: float) -> JobView[Result] | None:
        """The job as soon as its version differs from ``seen``, at the latest after ``timeout`` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._version(job_id) != seen, timeout)
            record = self._records.get(job_id)
            if record is None:
                return None
            self._records.move_to_end(job_id)
            return record.look(self._place(record))

    def listed(self, ids: Collection[str], owner: str = "") -> list[JobView[Result]]:
        """Those of these ids and all of an owner's, in the order they came; it keeps none of them longer."""
        with self._changed:
            found = [
                record
                for record in self._records.values()
                if record.id in ids or (owner and record.identity[0] == owner)
            ]
            return [record.look(self._place(record)) for record in sorted(found, key=lambda each: each.came)]

    def follow(self, job_id: str, tick: float = 1.0, pause: float = 0.5) -> Iterator[JobView[Result]]:
        """Views of a job until it is finished: at each change, not closer than ``pause``, at least every
        ``tick`` seconds. Ends at once for an unknown id."""
        seen = -1
        while (view := self.wait(job_id, seen, tick)) is not None:
            yield view
            if view.finished:
                return
            seen = view.version
            time.sleep(pause)

    # -- under the lock ----------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Give the free slot to the first job that waits."""
        while self._running is None and self._queue:
            record = self._running = self._queue.pop(0)
            record.state, record.started = "running", time.monotonic()
            record.cancel.allow(self._seconds)
            try:
                threading.Thread(target=record.start, name=f"job-{record.id[:6]}", daemon=True).start()
            except RuntimeError:  # the machine has no thread to spare; the next job may find one
                record.error = "The server is too busy to start this. Try again in some minutes."
                self._end(record, "failed")
                self._running = None
            record.start = None  # what the work holds (a model, a request) must not outlive it
        self._announce()

    def _announce(self) -> None:
        for record in [*self._queue, self._running]:
            if record is not None:
                record.version += 1
        self._changed.notify_all()

    def _end(self, record: JobRecord[Result], state: JobState) -> None:
        record.state, record.ended = state, time.monotonic()
        record.fraction = 1.0 if state == "done" else record.fraction
        record.start = None
        record.version += 1
        self._records.move_to_end(record.id)
        self._forget()

    def _forget(self) -> None:
        """Drop the finished jobs that were looked at longest ago, beyond what may be kept."""
        held: dict[int, int] = {}
        finished = [r for r in reversed(self._records.values()) if r.state not in ("waiting", "running")]
        for place, record in enumerate(finished):
            held |= record.parts
            if place >= self._most_kept or (place and sum(held.values()) > self._room):
                for old in finished[place:]:
                    del self._records[old.id]
                    self._forgotten.append(old.id)
                return

    def _place(self, record: JobRecord[Result]) -> int:
        return self._queue.index(record) + 1 if record.state == "waiting" else 0

    def _version(self, job_id: str) -> int:
        record = self._records.get(job_id)
        return -2 if record is None else record.version

    # -- in the job's thread -----------------------------------------------------------------------------

    @contextmanager
    def _change(self, record: JobRecord[Result]) -> Iterator[JobRecord[Result]]:
        """A locked change of ``record`` that wakes the watchers."""
        with self._changed:
            yield record
            record.version += 1
            self._changed.notify_all()

    @property
    def _too_long(self) -> str:
        limit = f"{self._seconds / 60:.0f} minutes"
        return f"It took longer than the {limit} that this host gives a run. What was finished is kept."

    def _compute(self, record: JobRecord[Result], work: Callable[[Job[Result]], Result]) -> None:
        """Run the work to its very end, then, and only then, free the slot."""
        state: JobState = "done"
        error = ""
        try:
            job = Job(record, partial(self._change, record))
            job.keep(work(job))
        except Cancelled:
            state, error = ("failed", self._too_long) if record.cancel.expired else ("stopped", "")
        except GhostlabError as problem:
            state, error = "failed", str(problem)
        except BaseException:
            code = secrets.token_hex(3)
            _LOG.exception("job %s (%s) failed; id %s", record.id[:6], record.kind, code)
            state, error = "failed", f"Internal error (id {code}). The server's log says more."
        parts = self._parts(record)
        with self._changed:
            record.error, record.parts = error, parts
            self._end(record, state)
            self._running = None
            self._advance()

    def _parts(self, record: JobRecord[Result]) -> Mapping[int, int]:
        """What the result weighs; nothing if that cannot be told, for the slot must come free."""
        try:
            return {} if record.result is None else self._weigh(record.result)
        except Exception:
            _LOG.exception("the result of job %s cannot be weighed", record.id[:6])
            return {}
