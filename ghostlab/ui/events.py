"""What happens when Run is pressed or a page opens. Compute never runs here, only in jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from functools import cached_property, partial
from typing import Any
from urllib.parse import parse_qsl

import gradio as gr

from ghostlab.config import RunConfig
from ghostlab.errors import GhostlabError, ResultError
from ghostlab.results.run import RunResult
from ghostlab.ui import address, html
from ghostlab.ui.page import Outputs, Page, Tab, Update, on
from ghostlab.ui.queue import PAUSE, Queue
from ghostlab.ui.service import requests
from ghostlab.ui.service.files import WANTED
from ghostlab.ui.service.service import View
from ghostlab.ui.sidebar import controls, scores

TICK = 0.5
"""Seconds between two looks at the job that a page follows; no thread waits meanwhile."""
DRAWING: dict[str, Any] = {"concurrency_id": "drawing", "concurrency_limit": 4}
"""Figures take seconds and a core: so many pages at once are drawn, the others wait."""
SILENCE = 1.0
"""Seconds after which a page is told again how long its job has taken, even if nothing else is new."""


class Events:
    """Handlers of the whole page; they hold no state of any visitor."""

    def __init__(self, page: Page, tabs: Sequence[Tab]) -> None:
        self.page = page
        self.service = page.service
        self.tab = sum(tabs, Tab())

    def bind(self) -> None:
        """Wire every event that is no tab's own."""
        page, inputs = self.page, list(self.page.controls.values())
        page.bind()
        words, figures = self.tab.words.components, self.tab.figures.components
        result = [page.shown, page.drawn, page.source, *self.tab.live.components]
        lists = [page.jobs, page.queue]
        places = list(page.found.values())
        run = on(page.run.click, self.run, [page.job, *inputs], page.start_outputs, validator=self.validate)
        run.success(None, None, None, js="ghostlab.foldSidebar")
        opened = [page.job, *page.progress_lines, *result]
        on(page.queue.click, self.press, page.job, opened)
        if page.open_file is not None:
            file = on(page.open_file.upload, self.accept, [page.open_file, page.job], [*opened, *inputs])
            file.success(None, None, None, js="ghostlab.foldSidebar")
        address_event = on(page.job.change, partial(address.query_of, self.service), page.job, page.query)
        address_event.success(None, page.query, None, js="ghostlab.showAddress")
        follows = [*opened, *lists, *places, *page.job_switches]
        on(page.job.change, self.watch, [page.job, page.shown, page.jobs], follows, trigger_mode="multiple")
        # Not from `watch`: what a stream sends to a tab that was never opened is lost with its next message.
        on(page.shown.change, self.words, page.shown, words, **DRAWING)
        on(page.drawn.change, self.figures, page.drawn, figures, **DRAWING)
        page.demo.load(None, None, None, js="ghostlab.foldSidebar")
        first = [page.job, *inputs, page.status, *result, *lists, *words, *figures, *places]
        on(page.demo.load, self.open, page.jobs, first)

    # -- buttons -----------------------------------------------------------------------------------------

    def validate(self, _: str, *values: Any) -> list[Any]:
        """A sentence beside the control in sight that is wrong, before anything else happens."""
        wrong, message = controls.problem(self.page.settings(values), self.service.settings)
        return [gr.validate(True, ""), *(gr.validate(name != wrong, message) for name in self.page.controls)]

    def run(self, request: gr.Request, followed: str, *values: Any) -> Update:
        """Queue a run of what the sidebar says; a job that is under way stays the followed one."""
        config = controls.read(self.page.settings(values))
        owner, jobs = request.session_hash or "", self.service.jobs
        going = [view.id for view in jobs.listed((), owner) if not view.finished]
        job_id = requests.run(self.service, owner, config)
        if job_id in going:
            gr.Info("That configuration is in the list already.", title="Nothing to add", duration=5)
        job = jobs.view(followed)
        return self.page.started(job_id) if job is None or job.finished else {self.page.job: gr.skip()}

    def press(self, event: gr.EventData, followed: str) -> Update:
        """A button of the list of jobs: show a result, or stop a job."""
        pressed = event._data if isinstance(event._data, dict) else {}
        job = str(pressed.get("job", ""))
        if pressed.get("act") == "open":
            return self.show(job, followed)
        self.service.jobs.cancel(job)
        return {self.page.job: gr.skip()}

    def accept(self, request: gr.Request, data: bytes | None, followed: str) -> Update:
        """Fill the sidebar from a file, and show its result if it holds one."""
        config, opened = self.service.open_file(data or b"", request.session_hash or "")
        update = self._filled(config)
        if not opened:
            gr.Info("Its settings are in the sidebar. Press Run to measure them.", title="Opened", duration=5)
            return update
        return update | self.show(opened, followed)

    def show(self, job_id: str, followed: str) -> Update:
        """The result of a job. One that is under way stays the followed one; of an ended one no more is said.

        Raises:
            ResultError: If it is no longer here.
        """
        view, job = (self.service.jobs.view(name) for name in (job_id, followed))
        if view is None or not isinstance(view.result, RunResult):
            raise ResultError(self.service.gone(job_id), "Press Run to compute it again.")
        update = self._news(view, view.result, None)
        if job is None or job.finished:
            update |= {self.page.job: job_id, **self.page.progress(None)}
        return update

    # -- the page ----------------------------------------------------------------------------------------

    def open(self, request: gr.Request, jobs: Any) -> Update:
        """What a page shows first: what its address names, or the example at once.

        It follows a job of its address that is under way, else the first of its own that it has not shown,
        else one of its address that has ended.
        """
        page, query = self.page, list(request.query_params.multi_items())
        views = {name: address.job_in(self.service, query, name) for name in address.NAMES}
        run = views["run"]
        own = Queue(self.service.jobs, jobs, request.session_hash or "")
        candidates = [view for view in views.values() if view is not None]
        under_way = (view for view in candidates if not view.finished)
        job = next(under_way, None) or own.coming() or next(iter(candidates), None)
        update: Update = {page.job: job.id if job else "", **self._listed(own, job)}
        about = run or views["atlas"]
        config = address.config_in(parse_qsl(about.about, keep_blank_values=True) if about else query)
        config = scores.resumed(config, views["scores"])
        if config is not None:
            update |= self._filled(config)
        for kind, place in page.found.items():
            view = views[kind]
            if view is not None and view.result is not None:
                update[place] = view.id
        if run is None or not isinstance(run.result, RunResult):
            update |= self.example
        elif job is None or job.id != run.id:  # `watch` will not show it
            update |= self._news(run, run.result, None)
        return update

    async def watch(self, request: gr.Request, job_id: str, shown: str, jobs: Any) -> AsyncIterator[Update]:
        """Follow a job until it ends, then hand over to the next of the page's own, if there is one.

        What has not changed on the page is not sent again. A page that waits holds no thread.
        """
        follow = _Follow(self, job_id, shown, Queue(self.service.jobs, jobs, request.session_hash or ""))
        yield {self.page.status: gr.skip()}  # gradio blanks the outputs of a generator that yields nothing
        while job_id:
            if update := await asyncio.to_thread(follow.look):
                yield update
            if follow.over:
                break
            await asyncio.sleep(TICK)
        if follow.queue.coming(job_id) is not None:
            await asyncio.sleep(PAUSE)
            yield await asyncio.to_thread(follow.hand_over)

    def words(self, shown: str) -> Update:
        """What the tabs say of a result besides its figures."""
        return self._drawn(shown, self.tab.words)

    def figures(self, drawn: str) -> Update:
        """The figures of a result."""
        return self._drawn(drawn, self.tab.figures)

    def _drawn(self, job_id: str, outputs: Outputs) -> Update:
        result = self.service.result(job_id)
        try:
            return outputs.update(result)
        except GhostlabError:
            raise
        except Exception as error:  # parts that do not fit together fail in as many ways as there are figures
            view = self.service.jobs.view(job_id)
            if view is None or view.kind != "file":
                raise
            raise ResultError("The result is damaged: its figures do not fit together.", WANTED) from error

    @cached_property
    def example(self) -> Update:
        """The example's page, drawn once for all visitors."""
        result, tab = self.service.example, self.tab
        update: Update = {self.page.source: html.source(result, example=True)}
        if result is not None:
            update |= tab.live.update(result, None) | tab.words.update(result) | tab.figures.update(result)
        return update

    def _filled(self, config: RunConfig) -> Update:
        values = controls.fill(config)
        return {control: values[name] for name, control in self.page.controls.items()}

    def _listed(self, own: Queue, followed: View | None) -> Update:
        return {self.page.jobs: own.stored(), self.page.queue: own.html(followed)}

    def _news(self, view: View, result: RunResult, last: RunResult | None) -> Update:
        """What a job's result changes on a page that shows ``last``."""
        update = self.tab.live.update(result, view)
        if last is not result:
            update |= {self.page.shown: view.id, self.page.source: html.source(result, False, view.kind)}
        if last is None or last.runs is not result.runs:
            update[self.page.drawn] = view.id
        return update


class _Follow:
    """How one page follows one job."""

    def __init__(self, events: Events, job_id: str, shown: str, queue: Queue) -> None:
        self.events = events
        self.job_id = job_id
        self.queue = queue
        self.over = False
        self._seen, self._sent = -1, 0.0
        self._last = events.service.find(shown, RunResult)
        self._listed: Update = {}

    def look(self) -> Update:
        """What the page is sent now; nothing when it knows it all."""
        events, page = self.events, self.events.page
        view = events.service.jobs.view(self.job_id)
        if view is None or view.finished:
            self.over = True
        now = time.monotonic()
        if view is None or (view.version == self._seen and now - self._sent < SILENCE):
            return {}
        self._seen, self._sent = view.version, now
        if view.error:
            gr.Warning(view.error, title=f"The {address.NAMES.get(view.kind, 'run')} failed", duration=10)
        self.queue.look(view)
        busy = not view.finished or self.queue.coming(self.job_id) is not None
        update: Update = {**page.progress(view), **page.busy(busy)}
        if isinstance(view.result, RunResult):
            update |= events._news(view, view.result, self._last)
            self._last = view.result
        elif view.result is not None:
            update[page.found[view.kind]] = view.id
        if self._listed != (listed := events._listed(self.queue, view)):
            update |= listed
            self._listed = listed
        return update

    def hand_over(self) -> Update:
        """The next job of the page becomes the followed one."""
        self.queue.look()
        after = self.queue.coming(self.job_id)
        return self.events.page.busy(False) if after is None else {self.events.page.job: after.id}
