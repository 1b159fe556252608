"""Several configurations of one page: their order, their list, Stop, and a page that is loaded anew."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from ghostlab.config import RunConfig
from ghostlab.jobs.store import JobStore
from ghostlab.lab.requests import RunRequest, Work
from ghostlab.progress import Progress
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings
from ghostlab.ui import events
from ghostlab.ui.app import assemble
from ghostlab.ui.events import Events
from ghostlab.ui.queue import Queue
from ghostlab.ui.service.service import Service
from ghostlab.ui.tabs.compare import Compare
from tests.helpers.fakelab import FakeLab
from tests.helpers.results import make_result

pytestmark = pytest.mark.unit


class Lab(FakeLab):
    """Measures every run anew, as a real one does."""

    def run(self, request: RunRequest, work: Work) -> RunResult:
        found = super().run(request, work)
        return replace(found, runs=list(found.runs))


class Visitor:
    """A page as a browser runs it: it keeps what it is sent and follows each job that it is told to."""

    def __init__(self, page: Events, known: Any = (), session: str = "ann") -> None:
        self.page = page
        self.request: Any = SimpleNamespace(
            session_hash=session, query_params=SimpleNamespace(multi_items=lambda: [])
        )
        self.state: dict[Any, Any] = {page.page.job: "", page.page.shown: "", page.page.jobs: list(known)}
        self.drawn: list[str] = []

    def take(self, update: dict[Any, Any]) -> None:
        self.state |= {part: value for part, value in update.items() if value != gr.skip()}
        if self.page.page.drawn in update:
            self.drawn = list(dict.fromkeys([*self.drawn, update[self.page.page.drawn]]))

    def press_run(self, **changes: Any) -> None:
        controls = self.page.page.controls
        values = [changes.get(name, control.value) for name, control in controls.items()]
        self.take(self.page.run(self.request, self.state[self.page.page.job], *values))

    def follow(self) -> None:
        """All jobs, one after the other, as the page does when the id of the watched one changes."""
        followed = ""
        while (job := self.state[self.page.page.job]) != followed:
            followed = job
            shown, known = (self.state[part] for part in (self.page.page.shown, self.page.page.jobs))
            asyncio.run(self._watch(job, shown, known))

    async def _watch(self, job: str, shown: str, known: Any) -> None:
        async for update in self.page.watch(self.request, job, shown, known):
            self.take(update)

    @property
    def listed(self) -> str:
        return str(self.state[self.page.page.queue])


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Events:
    service = Service(Settings(), Lab(), make_result().save(tmp_path_factory.mktemp("ui") / "example"))
    with gr.Blocks() as demo:
        return assemble(demo, service)


@pytest.fixture
def page(built: Events, gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> Iterator[Events]:
    def wait(_: Progress) -> None:
        assert gate.wait(10)

    monkeypatch.setattr(events, "PAUSE", 0.0)
    monkeypatch.setattr(events, "TICK", 0.02)
    monkeypatch.setattr(built.service, "jobs", JobStore())
    monkeypatch.setattr(built.service, "_lab", Lab(wait))
    yield built
    gate.set()


def ids(page: Events, owner: str = "ann") -> list[str]:
    return [view.id for view in page.service.jobs.listed((), owner)]


def test_queued_runs_are_followed_in_turn_and_each_enters_compare(
    page: Events, gate: threading.Event
) -> None:
    visitor = Visitor(page)
    for sequences in (8, 9, 10):
        visitor.press_run(sequences=sequences)
    first, *_ = jobs = ids(page)
    assert visitor.state[page.page.job] == first, "the page is not taken away from the job that it follows"
    assert visitor.state[page.page.run].value == "Queue"
    gate.set()
    visitor.follow()
    assert visitor.drawn == jobs
    assert visitor.state[page.page.run].value == "Run"
    assert [config.sequences for config in page.service.lab.asked] == [8, 9, 10]  # type: ignore[attr-defined]
    assert visitor.listed.count(">Open<") == 3
    assert "Sequences 10" in visitor.listed
    assert "Length" not in visitor.listed, "only what differs is said"
    stored: list[dict[str, str]] = []
    with gr.Blocks():
        tab = Compare(page.page)
    for drawn in visitor.drawn:
        stored = tab.add(stored, drawn)
    assert [run["id"] for run in stored] == jobs


def test_the_list_says_the_places_and_a_stopped_one_leaves_it(page: Events, gate: threading.Event) -> None:
    visitor = Visitor(page)
    visitor.press_run(seed=1)
    own = Queue(page.service.jobs, [], "ann")
    (view,) = own.views
    assert own.html(view) == "", "one job is told by the progress line"
    visitor.press_run(seed=2)
    visitor.press_run(seed=3)
    _, second, third = ids(page)
    own.look()
    assert [word in own.html(view) for word in ("Computing", "Next", "Number 2 in line")] == [True] * 3
    assert own.html(view).count(">Stop<") == 3
    page.service.jobs.cancel(second)
    own.look()
    assert "Seed 2" not in own.html(view)
    assert f'data-job="{third}"' in own.html(view)
    gate.set()
    visitor.follow()
    assert visitor.drawn == [view.id, third]


def test_the_same_configuration_is_not_queued_twice(page: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(events.gr, "Info", lambda text, **_: told.append(text))
    visitor = Visitor(page)
    for seed in (1, 2, 2):
        visitor.press_run(seed=seed)
    assert len(ids(page)) == 2
    assert told == ["That configuration is in the list already."]


def test_a_page_that_is_loaded_anew_goes_by_what_ended_meanwhile(page: Events, gate: threading.Event) -> None:
    visitor = Visitor(page)
    for seed in (1, 2, 3):
        visitor.press_run(seed=seed)
    jobs = ids(page)
    kept = Queue(page.service.jobs, [], "ann").stored()
    gate.set()
    for _ in page.service.jobs.follow(jobs[-1]):
        pass
    again = Visitor(page, kept, "ann after a reload")
    again.take(page.open(again.request, kept))
    again.follow()
    assert again.drawn[-3:] == jobs
    assert again.listed.count(">Open<") == 3
    once_more = Visitor(page, again.state[page.page.jobs], "ann once more")
    once_more.take(page.open(once_more.request, once_more.state[page.page.jobs]))
    assert once_more.state[page.page.job] == "", "all of them were seen"
    assert once_more.listed.count(">Open<") == 3
    stranger = Visitor(page, session="bob")
    stranger.take(page.open(stranger.request, []))
    assert stranger.listed == ""


def test_an_earlier_run_can_be_opened_without_leaving_the_one_that_computes(
    page: Events, gate: threading.Event
) -> None:
    gate.set()
    visitor = Visitor(page)
    visitor.press_run(seed=1)
    visitor.follow()
    (first,) = ids(page)
    gate.clear()
    visitor.press_run(seed=2)
    during = page.show(first, visitor.state[page.page.job])
    assert during[page.page.shown] == first
    assert page.page.job not in during
    gate.set()
    visitor.follow()
    assert page.show(first, visitor.state[page.page.job])[page.page.job] == first


def test_what_a_browser_says_it_kept_is_not_trusted() -> None:
    store: JobStore[Any] = JobStore()
    mine = store.put("run", make_result(), RunConfig(drop="3:5").to_query())
    nonsense = [{"id": 3}, "x", None, {"id": "gone", "seen": True}, {"id": mine, "seen": "no"}]
    for stored in (nonsense, "x", {"id": mine}, None):
        own = Queue(store, stored, "")
        assert [item["id"] for item in own.stored()] == ([mine] if stored is nonsense else [])
    kept = Queue(store, [{"id": mine}], "")
    assert "layers 3:5" in kept.html(None)
    store.put("run", make_result(), "text=<script>")
    assert "<script>" not in kept.html(None)
