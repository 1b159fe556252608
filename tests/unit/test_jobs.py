"""The job store: one slot, honest waiting, real stopping, nothing lost, nothing leaked."""

from __future__ import annotations

import contextvars
import gc
import itertools
import logging
import threading
import time
import weakref

import pytest

from ghostlab.errors import BusyError, Cancelled, ConfigError
from ghostlab.jobs.record import Job, JobView, time_left
from ghostlab.jobs.store import JobStore
from ghostlab.progress import Progress, ProgressUpdate

pytestmark = pytest.mark.unit
SECONDS = 10.0


class Gate:
    """Work that runs until it is let go, obeying its token in between."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.leave = threading.Event()

    def __call__(self, job: Job[str]) -> str:
        progress = Progress(job.progress, job.cancel)
        self.entered.set()
        while not self.leave.wait(0.002):
            progress.check()
        return "result"


def finish(store: JobStore[str], job_id: str) -> JobView[str]:
    deadline = time.monotonic() + SECONDS
    for view in store.follow(job_id, tick=0.05, pause=0.0):
        assert time.monotonic() < deadline, f"job still {view.state}"
    return view


def test_a_job_runs_to_its_result_and_reports_on_the_way() -> None:
    store: JobStore[str] = JobStore()

    def work(job: Job[str]) -> str:
        job.progress(ProgressUpdate(0.5, "half way"))
        job.text("original", "The light")
        return "done"

    view = finish(store, store.submit("run", "k", work))
    assert (view.state, view.result, view.message, view.fraction) == ("done", "done", "half way", 1.0)
    assert view.texts == {"original": "The light"}
    assert view.error == ""


def test_only_one_job_computes_at_a_time_even_after_a_stop() -> None:
    store: JobStore[str] = JobStore()
    intervals: list[tuple[float, float]] = []

    def slow_to_stop(job: Job[str]) -> str:
        start = time.monotonic()
        time.sleep(0.05)  # one step that cannot be interrupted
        intervals.append((start, time.monotonic()))
        Progress(cancel=job.cancel).check()
        return "result"

    ids = [store.submit("run", str(i), slow_to_stop) for i in range(5)]
    store.cancel(ids[0])
    states = [finish(store, job_id).state for job_id in ids]
    assert states == ["stopped", "done", "done", "done", "done"]
    assert len(intervals) == 5
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(intervals))


def test_jobs_wait_in_order_and_see_their_place() -> None:
    store: JobStore[str] = JobStore()
    gate = Gate()
    first = store.submit("run", "1", gate)
    second, third = (store.submit("run", str(i), lambda job: job.id) for i in (2, 3))
    assert gate.entered.wait(SECONDS)
    places = [view.position for job_id in (first, second, third) if (view := store.view(job_id))]
    assert places == [0, 1, 2]
    store.cancel(second)
    view = store.view(third)
    assert view is not None
    assert (view.state, view.position, view.elapsed) == ("waiting", 1, 0.0)
    gate.leave.set()
    assert finish(store, third).result == third


def test_cancel_is_idempotent_in_every_state() -> None:
    store: JobStore[str] = JobStore()
    gate, never = Gate(), Gate()
    running, waiting = store.submit("run", "1", gate), store.submit("run", "2", never)
    for job_id in (waiting, waiting, running, running, "no-such-job"):
        store.cancel(job_id)
    assert finish(store, running).state == "stopped"
    assert finish(store, waiting).state == "stopped"
    assert not never.entered.is_set()
    store.cancel(running)
    view = store.view(running)
    assert view is not None
    assert view.state == "stopped"


def test_a_kept_result_survives_a_stop_and_a_failure() -> None:
    store: JobStore[str] = JobStore()
    gate = Gate()

    def generate(job: Job[str]) -> str:
        job.keep("evaluated")
        return gate(job)

    def fail(job: Job[str]) -> str:
        job.keep("evaluated")
        raise ConfigError("Too long.", "Shorten it.")

    stopped = store.submit("run", "1", generate)
    assert gate.entered.wait(SECONDS)
    store.cancel(stopped)
    failed = store.submit("run", "2", fail)
    view = finish(store, stopped)
    assert (view.state, view.result) == ("stopped", "evaluated")
    view = finish(store, failed)
    assert (view.state, view.result, view.error) == ("failed", "evaluated", "Too long. Shorten it.")


@pytest.mark.parametrize(
    "problem", [ZeroDivisionError("secret/path"), SystemExit(3), MemoryError(), KeyboardInterrupt()]
)
def test_a_failing_job_tells_no_internals_and_the_next_one_runs(
    problem: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    store: JobStore[str] = JobStore()

    def fail(_: Job[str]) -> str:
        raise problem

    with caplog.at_level(logging.ERROR):
        view = finish(store, store.submit("run", "1", fail))
    assert view.state == "failed"
    assert view.error.startswith("Internal error (id ")
    assert "secret" not in view.error
    code = view.error.split("id ")[1].split(")")[0]
    assert code in caplog.text
    assert finish(store, store.submit("run", "2", lambda _: "fine")).result == "fine"


def test_the_same_request_of_one_owner_is_one_job() -> None:
    store: JobStore[str] = JobStore()
    gate = Gate()
    first = store.submit("run", "k", gate, owner="ann")
    assert store.submit("run", "k", gate, owner="ann") == first
    assert store.submit("run", "k", gate, owner="bob") != first
    assert store.submit("generate", "k", gate, owner="ann") != first
    store.cancel(first)
    again = store.submit("run", "k", gate, owner="ann")
    assert again != first, "a job that is stopping is no answer to a new request"
    gate.leave.set()
    assert finish(store, again).state == "done"


def test_the_waiting_list_is_bounded() -> None:
    store: JobStore[str] = JobStore(waiting=2)
    gate = Gate()
    ids = [store.submit("run", str(i), gate) for i in range(3)]
    with pytest.raises(BusyError, match="2 runs are already waiting"):
        store.submit("run", "3", gate)
    store.cancel(ids[2])
    ids.append(store.submit("run", "4", gate))
    gate.leave.set()
    assert finish(store, ids[-1]).state == "done"


def test_one_owner_cannot_take_all_places() -> None:
    store: JobStore[str] = JobStore(each=1)
    gate = Gate()
    store.submit("run", "0", gate, owner="ann")
    waiting = store.submit("run", "1", gate, owner="ann")
    with pytest.raises(BusyError, match="1 of your runs"):
        store.submit("run", "2", gate, owner="ann")
    other = store.submit("run", "2", gate, owner="bob")
    gate.leave.set()
    assert finish(store, other).state == finish(store, waiting).state == "done"


def test_a_job_that_takes_too_long_is_ended_and_what_it_kept_stays() -> None:
    store: JobStore[str] = JobStore(seconds=0.05)

    def endless(job: Job[str]) -> str:
        job.keep("half")
        steps = Progress(cancel=job.cancel)
        while True:
            steps.check()

    view = finish(store, store.submit("run", "k", endless))
    assert (view.state, view.result) == ("failed", "half")
    assert view.error.startswith("It took longer than")
    assert finish(store, store.submit("run", "next", lambda _: "whole")).state == "done"


def test_old_results_are_forgotten_but_never_a_running_job() -> None:
    store: JobStore[str] = JobStore(kept=2)
    done = [store.submit("run", str(i), lambda _: "r") for i in range(2)]
    for job_id in done:
        finish(store, job_id)
    gate = Gate()
    running = store.submit("run", "gate", gate)
    assert store.view(done[0]) is not None  # looked at last: kept longer
    waiting = [store.submit("run", f"w{i}", lambda _: "r") for i in range(3)]
    for job_id in waiting[1:]:
        store.cancel(job_id)
    view = store.view(running)
    assert view is not None
    assert view.state == "running"
    assert store.view(done[1]) is None
    gate.leave.set()
    finish(store, waiting[0])
    assert store.view(running) is not None


def test_a_job_that_gets_no_thread_fails_and_leaves_the_slot_free(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    store: JobStore[str] = JobStore()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        view = store.view(store.submit("run", "1", lambda _: "r"))
    assert view is not None
    assert (view.state, "too busy" in view.error) == ("failed", True)
    assert finish(store, store.submit("run", "1", lambda _: "r")).state == "done"


def test_results_are_bounded_by_bytes_and_parts_that_they_share_count_once() -> None:
    parts = {"small": {1: 10}, "shared": {1: 10, 2: 70}, "again": {2: 70, 3: 10}, "huge": {9: 1000}}
    store: JobStore[str] = JobStore(room=100, weigh=parts.__getitem__)
    ids = {name: store.submit("run", name, lambda job, name=name: name) for name in ("small", "shared")}
    for job_id in ids.values():
        finish(store, job_id)
    ids["again"] = store.submit("run", "again", lambda _: "again")
    finish(store, ids["again"])
    assert [store.view(ids[name]) is not None for name in ids] == [True, True, True]  # 90 bytes
    assert store.view(ids["small"]) is not None  # looked at last
    ids["huge"] = store.submit("run", "huge", lambda _: "huge")
    finish(store, ids["huge"])
    assert [store.view(ids[name]) is not None for name in ids] == [False, False, False, True]
    assert all(store.made_room(ids[name]) for name in ("small", "shared", "again"))
    assert not store.made_room(ids["huge"])
    assert not store.made_room("never was")
    view = store.view(ids["huge"])
    assert view is not None
    assert (view.state, view.result, view.fraction) == ("done", "huge", 1.0)


def test_uploads_push_out_no_computed_result_and_first_those_of_who_has_most() -> None:
    store: JobStore[str] = JobStore(kept=3)
    computed = store.submit("run", "k", lambda _: "mine", owner="ann")
    finish(store, computed)
    of_bob = store.put("file", "bob", uploader="bob")
    flood = [store.put("file", str(number), uploader="eve") for number in range(9)]
    kept = [job_id for job_id in (computed, of_bob, *flood) if store.view(job_id) is not None]
    assert kept == [computed, of_bob, *flood[-2:]]
    assert store.made_room(flood[0])


@pytest.mark.parametrize("ending", [ConfigError("x"), Cancelled(), None])
def test_nothing_of_a_finished_job_is_held_but_its_result(ending: Exception | None) -> None:
    store: JobStore[str] = JobStore()

    class Heavy:
        pass

    heavy = Heavy()
    alive = weakref.ref(heavy)

    def work(_: Job[str], held: Heavy = heavy) -> str:
        if ending is not None:
            raise type(ending)(str(held))
        return str(id(held))

    job_id = store.submit("run", "1", work)
    del heavy, work
    finish(store, job_id)
    deadline = time.monotonic() + SECONDS
    while alive() is not None and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert alive() is None


def test_context_variables_of_the_caller_reach_the_work() -> None:
    store: JobStore[str] = JobStore()
    user = contextvars.ContextVar("user", default="nobody")
    user.set("ann")
    assert finish(store, store.submit("run", "1", lambda _: user.get())).result == "ann"


def test_a_watcher_sleeps_until_there_is_news() -> None:
    store: JobStore[str] = JobStore()
    gate = Gate()
    job_id = store.submit("run", "1", gate)
    assert gate.entered.wait(SECONDS)
    now = store.view(job_id)
    assert now is not None
    start = time.monotonic()
    same = store.wait(job_id, now.version, timeout=0.2)
    assert same is not None
    assert same.version == now.version
    assert time.monotonic() - start >= 0.19
    threading.Timer(0.05, gate.leave.set).start()
    news = store.wait(job_id, now.version, timeout=SECONDS)
    assert news is not None
    assert news.version > now.version
    assert list(store.follow("no-such-job")) == []


def test_time_left_follows_the_latter_half_and_is_withheld_while_it_would_be_a_guess() -> None:
    steady = [(0.0, 0.0), (0.1, 4.0), (0.2, 8.0)]
    assert time_left(steady, 0.5, 1.0) is None
    assert time_left(steady, 0.04, 30.0) is None
    assert time_left(steady, 0.25, 10.0) == pytest.approx(30.0)
    slow_start = [(0.0, 0.0), (0.05, 60.0), (0.1, 60.5), (0.2, 61.5)]
    assert time_left(slow_start, 0.2, 61.5) == pytest.approx(8.0)
    assert time_left(slow_start, 0.2, 71.5) == pytest.approx(88.0), "a stall is not hidden"
    assert time_left(steady, 1.0, 40.0) == 0.0
