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
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, Generic, TypeVar

from ghostlab.errors import BusyError, Cancelled, GhostlabError
from ghostlab.jobs.record import Change, Job, JobState, JobView
from ghostlab.progress import CancelToken

Result = TypeVar("Result")
_LOG = logging.getLogger(__name__)


class JobStore(Generic[Result]):
    """Runs work one job at a time and remembers a bounded number of results.

    Args:
        waiting: The most jobs that may wait; one more raises :class:`BusyError`.
        each: The most of them that one owner may have.
        seconds: How long a job may compute; what it kept until then stays.
        kept: How many finished jobs are remembered, and how many uploads; the one looked at longest ago is
            forgotten first.
        room: Bytes that the results of finished jobs, and uploads, may take; the latest is kept whatever it
            takes.
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
        self._views: OrderedDict[str, JobView[Result]] = OrderedDict()
        self._parts: dict[str, Mapping[int, int]] = {}
        self._cancels: dict[str, CancelToken] = {}
        self._starts: dict[str, Callable[[], object]] = {}
        self._queue: list[str] = []
        self._running = ""
        self._changed = threading.Condition(threading.RLock())

    def submit(
        self, kind: str, key: str, work: Callable[[Job[Result]], Result], owner: str = "", about: str = ""
    ) -> str:
        """Queue ``work`` and return the job's id; the same request of the same owner is not queued twice.

        Args:
            kind: What sort of job, for people and logs.
            key: Names the request; equal keys of one owner mean the same work.
            work: Called with a :class:`Job` in a thread that carries the caller's context variables.
            owner: Whose job it is; owners never share a job, so that none can stop another's.
            about: What the work is, in the caller's own words; part of every view.

        Raises:
            BusyError: If too many jobs wait already.
        """
        with self._changed:
            for known in filter(None, map(self._views.get, [*self._queue, self._running])):
                same = (known.owner, known.kind, known.key) == (owner, kind, key)
                if same and not self._cancels[known.id].cancelled:
                    return known.id
            if self._running and len(self._queue) >= self._most_waiting:
                raise BusyError(
                    f"{len(self._queue)} runs are already waiting.", "Try again in a few minutes."
                )
            if sum(self._views[job_id].owner == owner for job_id in self._queue) >= self._each:
                raise BusyError(f"{self._each} of your runs are already waiting.", "Wait for one to end.")
            view: JobView[Result] = JobView(secrets.token_urlsafe(16), kind, about, owner=owner, key=key)
            self._views[view.id] = view
            self._cancels[view.id] = CancelToken()
            self._starts[view.id] = partial(contextvars.copy_context().run, self._compute, view.id, work)
            self._queue.append(view.id)
            self._advance()
            return view.id

    def put(self, kind: str, result: Result, about: str = "", uploader: str = "") -> str:
        """Keep an uploaded result as if a job had found it; return its id.

        Uploads are counted apart: they push out each other, first those of who has most, and no computed
        result.
        """
        view: JobView[Result] = JobView(
            secrets.token_urlsafe(16), kind, about, result=result, uploader=uploader
        )
        with self._changed:
            self._views[view.id], self._parts[view.id] = view, self._weigh(result)
            self._end(view.id, "done")
        return view.id

    def made_room(self, job_id: str) -> bool:
        """Whether there was a job of this id that was forgotten for newer ones."""
        with self._changed:
            return job_id in self._forgotten

    def cancel(self, job_id: str) -> None:
        """Ask a job to stop: at once while it waits, at its next step while it runs; harmless otherwise."""
        with self._changed:
            view = self._views.get(job_id)
            if view is None or view.finished:
                return
            self._cancels[job_id].cancel()
            self._set(job_id, stopping=True)
            if view.state == "waiting":
                self._queue.remove(job_id)
                self._end(job_id, "stopped")
            self._announce()

    def view(self, job_id: str) -> JobView[Result] | None:
        """The job as it is now; ``None`` if there is none of this id (any more)."""
        return self.wait(job_id, seen=-1, timeout=0.0)

    def wait(self, job_id: str, seen: int, timeout: float) -> JobView[Result] | None:
        """The job as soon as its version differs from ``seen``, at the latest after ``timeout`` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._version(job_id) != seen, timeout)
            if job_id not in self._views:
                return None
            self._views.move_to_end(job_id)
            return self._now(self._views[job_id])

    def listed(self, ids: Collection[str], owner: str = "") -> list[JobView[Result]]:
        """Those of these ids and all of an owner's, in the order they came; it keeps none of them longer."""
        with self._changed:
            found = [
                self._now(view)
                for view in self._views.values()
                if view.id in ids or (owner and view.owner == owner)
            ]
        return sorted(found, key=lambda view: view.came)

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

    def _now(self, view: JobView[Result]) -> JobView[Result]:
        position = self._queue.index(view.id) + 1 if view.state == "waiting" else 0
        return view.at(position, stopping=view.id in self._cancels and self._cancels[view.id].expired)

    def _version(self, job_id: str) -> int:
        return self._views[job_id].version if job_id in self._views else -2

    def _set(self, job_id: str, **changes: Any) -> None:
        view = self._views[job_id]
        self._views[job_id] = replace(view, version=view.version + 1, **changes)

    def _advance(self) -> None:
        """Give the free slot to the first job that waits."""
        while not self._running and self._queue:
            job_id = self._running = self._queue.pop(0)
            self._set(job_id, state="running", started=time.monotonic())
            self._cancels[job_id].allow(self._seconds)
            # what the work holds (a model, a request) must not outlive it
            start = self._starts.pop(job_id)
            try:
                threading.Thread(target=start, name=f"job-{job_id[:6]}", daemon=True).start()
            except RuntimeError:  # the machine has no thread to spare; the next job may find one
                self._set(job_id, error="The server is too busy to start this. Try again in a few minutes.")
                self._end(job_id, "failed")
                self._running = ""
        self._announce()

    def _announce(self) -> None:
        """Wake the watchers: of those that wait, places may have changed."""
        for job_id in [*self._queue, self._running]:
            if job_id:
                self._set(job_id)
        self._changed.notify_all()

    def _end(self, job_id: str, state: JobState) -> None:
        fraction = 1.0 if state == "done" else self._views[job_id].fraction
        self._set(job_id, state=state, ended=time.monotonic(), fraction=fraction)
        self._starts.pop(job_id, None)
        self._cancels.pop(job_id, None)
        self._views.move_to_end(job_id)
        self._forget()

    def _forget(self) -> None:
        """Drop the finished jobs that were looked at longest ago, beyond what may be kept."""
        finished = [view for view in reversed(self._views.values()) if view.finished]
        self._keep([view for view in finished if view.uploader is None])
        turns: Counter[str | None] = Counter()
        uploads = []
        for view in finished:
            if view.uploader is not None:
                turns[view.uploader] += 1
                uploads.append((turns[view.uploader], view))
        self._keep([view for _, view in sorted(uploads, key=itemgetter(0))])

    def _keep(self, views: list[JobView[Result]]) -> None:
        """Keep as many of them as may be, from the first."""
        held: dict[int, int] = {}
        for place, view in enumerate(views):
            held |= self._parts.get(view.id, {})
            if place >= self._most_kept or (place and sum(held.values()) > self._room):
                for old in views[place:]:
                    del self._views[old.id]
                    self._parts.pop(old.id, None)
                    self._forgotten.append(old.id)
                return

    # -- in the job's thread -----------------------------------------------------------------------------

    def _change(self, job_id: str, change: Change) -> None:
        """Change what is known of a job and wake the watchers."""
        with self._changed:
            self._views[job_id] = change(self._views[job_id])
            self._set(job_id)
            self._changed.notify_all()

    @property
    def _too_long(self) -> str:
        limit = f"{self._seconds / 60:.0f} minutes"
        return f"It took longer than the {limit} that this server allows a run. What was finished is kept."

    def _compute(self, job_id: str, work: Callable[[Job[Result]], Result]) -> None:
        """Run the work to its very end, then, and only then, free the slot."""
        state: JobState = "done"
        error = ""
        cancel = self._cancels[job_id]
        try:
            job: Job[Result] = Job(job_id, cancel, partial(self._change, job_id))
            job.keep(work(job))
        except Cancelled:
            state, error = ("failed", self._too_long) if cancel.expired else ("stopped", "")
        except GhostlabError as problem:
            state, error = "failed", str(problem)
        except BaseException:
            code = secrets.token_hex(3)
            kind = self._views[job_id].kind
            _LOG.exception("job %s (%s) failed; id %s", job_id[:6], kind, code)
            state, error = "failed", f"Internal error (id {code}). The server's log says more."
        parts = self._weight(job_id)
        with self._changed:
            self._parts[job_id] = parts
            self._set(job_id, error=error)
            self._end(job_id, state)
            self._running = ""
            self._advance()

    def _weight(self, job_id: str) -> Mapping[int, int]:
        """What the result weighs; nothing if weighing fails, for the slot must come free."""
        result = self._views[job_id].result
        try:
            return {} if result is None else self._weigh(result)
        except Exception:
            _LOG.exception("the result of job %s cannot be weighed", job_id[:6])
            return {}
