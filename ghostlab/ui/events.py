"""What happens when a button is pressed or a page opens. Compute never runs here, only in jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import parse_qsl

import gradio as gr
from gradio.components import Component

from ghostlab.errors import ResultError
from ghostlab.jobs.record import JobView
from ghostlab.results.atlas import Atlas
from ghostlab.results.run import RunResult
from ghostlab.ui import address, asking, picks, present
from ghostlab.ui import queue as agenda
from ghostlab.ui.complaints import told_to_user
from ghostlab.ui.queue import Agenda
from ghostlab.ui.service.service import Finding, Service
from ghostlab.ui.shell import FOLD_ON_PHONE, QUIET, Shell, Update
from ghostlab.ui.sidebar import picker as block_picker
from ghostlab.ui.sidebar import scores as scoring
from ghostlab.ui.sidebar import uploads
from ghostlab.ui.sidebar.sidebar import Sidebar
from ghostlab.ui.tabs.atlas.handlers import Surveys
from ghostlab.ui.tabs.generate import columns_of, lead_of
from ghostlab.ui.tabs.operator import probing
from ghostlab.ui.tabs.overview.share import Share
from ghostlab.ui.tabs.view import Tab, named


class Events:
    """Handlers of one app; they hold no state of any user."""

    def __init__(self, service: Service, sidebar: Sidebar, tabs: dict[str, Tab], shell: Shell) -> None:
        self.service = service
        self.sidebar = sidebar
        self.tabs = list(tabs.values())
        self.by_title = tabs
        self.scores = sidebar.scores
        self.starts = [self.scores.start, *named(self.tabs, "start")]
        self.stops = [sidebar.stop, self.scores.stop, *named(self.tabs, "stop")]
        self.near = [self.scores.progress, *named(self.tabs, "progress")]
        self.shell = shell
        self.writer = tabs["Generate"].controls
        self._written = [self.writer["lead"], self.writer["columns"]]
        self.picker = tabs["Overview"].controls
        self.share: Share = tabs["Overview"].parts
        self.mapper = tabs["Block map"].controls
        self.surveys = Surveys(service, self.mapper)
        self._first: Update | None = None

    def bind(self, demo: gr.Blocks) -> None:
        """Wire every event of the page."""
        shell, mapper = self.shell, self.mapper
        buttons = [self.sidebar.run, *self.starts, *self.stops]
        told = [shell.status, *self.near]
        started = [shell.job, *told, *buttons]
        shows = [shell.shown, shell.drawn, shell.source, *self._written]
        lists = [shell.known, shell.agenda]
        page = [shell.job, *told, *shows, *lists, mapper["shown"], self.scores.found, *buttons]
        words, figures = self._components("words"), self._components("figures")
        run = self.sidebar.inputs
        presses = [
            self.sidebar.run.click(self.run, [shell.job, *run], started, validator=self.validate, **QUIET),
            self.surveys.start(self.sidebar, self._started, started, QUIET),
        ]
        rest = {"job": shell.job, "next_rank": self.sidebar.controls["rank"], **QUIET}
        presses += probing.bind(self.service, shell.shown, self.by_title, self._started, started, **rest)
        presses += asking.bind(self.service, shell.shown, self.by_title, self._started, started, **QUIET)
        showing, upload = [shell.job, *told, *shows], self.share.upload
        taken = upload.upload(self.accept, [upload, shell.job], [*showing, *run], **QUIET)
        agenda.bind(self.service, shell, self.show, showing)
        at = scoring.Page(shell.shown, mapper["shown"])
        scoring.bind(self.service, self.sidebar, at, self._started, started, **QUIET)
        for press in [*presses, taken]:
            press.success(None, None, None, js=FOLD_ON_PHONE)
        address.follow(self.service, shell)
        watched = [shell.job, shell.shown, shell.known]
        shell.job.change(self.watch, watched, page, trigger_mode="multiple", **QUIET)
        # Not from `watch`: what a stream sends to a tab that was never opened is lost with its next message.
        shell.shown.change(self.words, shell.shown, words, **QUIET)
        shell.drawn.change(self.figures, shell.drawn, figures, **QUIET)
        for stop in self.stops:
            stop.click(self.service.cancel, shell.job, None, queue=False, **QUIET)
        picks.bind(self.service, self.sidebar, shell.shown, self.picker, QUIET)
        self.surveys.bind(self.sidebar, QUIET)
        demo.load(None, None, None, js=FOLD_ON_PHONE)
        asks = [shell.job, *self.sidebar.inputs, shell.status]
        first = [*asks, *shows, *lists, *words, *figures, *self.surveys.opened, self.scores.found]
        demo.load(self.open, shell.known, first, **QUIET)
        uploads.bind(self.service, self.sidebar.upload, self.sidebar.controls["text"], QUIET)
        block_picker.bind(self.service.settings, self.sidebar.picker, self.sidebar.controls, QUIET)

    def _components(self, part: Literal["words", "figures"]) -> list[Component]:
        return [component for tab in self.tabs for component in getattr(tab, part).components]

    # -- buttons -----------------------------------------------------------------------------------------

    def validate(self, _: str, *values: Any) -> list[Any]:
        """A sentence beside the control in sight that is wrong, before anything else happens."""
        name, message = self.sidebar.problem(values, self.service.settings)
        checked = [gr.validate(control != name, message) for control in self.sidebar.controls]
        return [gr.validate(True, ""), *checked]

    def run(self, request: gr.Request, watched: str, *values: Any) -> Update:
        """Queue a run of what the sidebar says; a job that is under way stays the watched one."""
        with told_to_user():
            job_id = agenda.add(self.service, self.sidebar.read(values), request.session_hash or "")
            job = self.service.jobs.view(watched)
            return self._started(job_id) if job is None or job.finished else {self.shell.job: gr.skip()}

    def accept(self, data: bytes | None, watched: str) -> Update:
        """Fill the sidebar from a file, and show its result if it holds one."""
        with told_to_user():
            config, opened = self.service.accept(data or b"")
        update: Update = dict(zip(self.sidebar.inputs, self.sidebar.fill(config), strict=True))
        if not opened:
            gr.Info("Its settings are in the sidebar. Press Run to measure them.", title="Opened", duration=5)
            return update
        return update | self.show(opened, watched)

    def show(self, job_id: str, watched: str) -> Update:
        """The result of a job. One that is under way stays the watched one; of an ended one no more is said.

        Raises:
            ResultError: If it is no longer here.
        """
        view, job = (self.service.jobs.view(name) for name in (job_id, watched))
        if view is None or not isinstance(view.result, RunResult):
            raise ResultError(self.service.gone(job_id), "Press Run to compute it again.")
        update = self._news(view, view.result, None)
        if job is None or job.finished:
            update |= {self.shell.job: job_id, **self._status(None)}
        return update

    def _started(self, job_id: str) -> Update:
        view = self.service.jobs.view(job_id)
        return {self.shell.job: job_id, **self._status(view), **self._buttons(busy=True)}

    # -- the page ----------------------------------------------------------------------------------------

    def open(self, request: gr.Request, known: Any) -> Update:
        """What a page shows first: the run and the atlas that its address names, or the examples at once.

        It follows a job of theirs that is under way, else the first of its own that it has not been by.
        """
        query = list(request.query_params.multi_items())
        run, survey, scores = jobs = [address.job(self.service, query, name) for name in address.NAMES]
        own = Agenda(self.service.jobs, known, request.session_hash or "")
        job = address.followed(jobs)
        if job is None or job.finished:
            job = own.coming() or job
        update: Update = {self.shell.job: job.id if job else "", **self._listed(own, job)}
        said = run or survey
        config = address.asked_for(parse_qsl(said.about) if said else query)
        config = scoring.resumed(config, scores)
        update |= {self.scores.found: scores.id} if scores and scores.result else {}
        if config is not None:
            update |= dict(zip(self.sidebar.inputs, self.sidebar.fill(config), strict=True))
        if run is None or not isinstance(run.result, RunResult):
            update |= self._example()
        elif job is None or job.id != run.id:  # `watch` will not come by it
            update |= self._news(run, run.result, None)
        return update | self.surveys.open(survey)

    def watch(self, request: gr.Request, job_id: str, shown: str, known: Any) -> Iterator[Update]:
        """Follow a job until it ends, then hand over to the next of the page's own, if there is one.

        What has not changed on the page is not sent again.
        """
        last = self.service.find(shown)
        listed: Update = {}
        own = Agenda(self.service.jobs, known, request.session_hash or "")
        yield {self.shell.status: gr.skip()}  # gradio blanks the outputs of a generator that yields nothing
        for view in self.service.follow(job_id) if job_id else ():
            if view.error:
                gr.Warning(view.error, title=f"The {address.WHAT.get(view.kind, 'run')} failed", duration=10)
            own.look(view)
            busy = not view.finished or own.coming(job_id) is not None
            update: Update = {**self._status(view), **self._buttons(busy)}
            if isinstance(view.result, RunResult):
                update |= self._news(view, view.result, last)
                last = view.result
            elif view.result is not None:
                place = self.mapper["shown"] if isinstance(view.result, Atlas) else self.scores.found
                update[place] = view.id
            if listed != (listed := self._listed(own, view)):
                update |= listed
            yield update
        if own.coming(job_id) is not None:
            time.sleep(agenda.PAUSE)
            own.look()
            after = own.coming(job_id)
            yield self._buttons(busy=False) if after is None else {self.shell.job: after.id}

    def _listed(self, own: Agenda, followed: JobView[Finding] | None) -> Update:
        return {self.shell.known: own.stored(), self.shell.agenda: own.html(followed)}

    def _news(self, view: JobView[Finding], result: RunResult, last: RunResult | None) -> Update:
        """What a job's result changes on a page that shows ``last``."""
        update = self._generated(result, view)
        if last is not result:
            update |= {self.shell.shown: view.id, self.shell.source: present.source(result, False, view.kind)}
        if last is None or last.runs is not result.runs:
            update[self.shell.drawn] = view.id
        return update

    def _generated(self, result: RunResult, view: JobView[Finding] | None) -> Update:
        values = (lead_of(result), columns_of(result, view))
        return dict(zip(self._written, values, strict=True))

    def words(self, shown: str) -> Update:
        """What the tabs say of a result besides its figures."""
        with told_to_user():
            return self._rendered(self.service.result(shown), "words")

    def figures(self, drawn: str) -> Update:
        """The figures of a result."""
        with told_to_user():
            return self._rendered(self.service.result(drawn), "figures")

    def _example(self) -> Update:
        """The example's page, drawn once for all visitors."""
        example = self.service.example
        if self._first is None:
            drawn: Update = {self.shell.source: present.source(example, example=True)}
            if example is not None:
                drawn |= self._generated(example, None)
                drawn |= self._rendered(example, "words") | self._rendered(example, "figures")
            self._first = drawn  # only when whole: another visitor may be looking
        return self._first

    def _rendered(self, result: RunResult, part: Literal["words", "figures"]) -> Update:
        update: Update = {}
        for tab in self.tabs:
            outputs = getattr(tab, part)
            update |= dict(zip(outputs.components, outputs.render(result), strict=True))
        return update

    def _status(self, view: JobView[Finding] | None) -> Update:
        """How a job goes: on top of the page, and beside the buttons of the tabs that start one."""
        beside = present.progress(view, again=True)
        return {self.shell.status: present.progress(view), **dict.fromkeys(self.near, beside)}

    def _buttons(self, busy: bool) -> Update:
        update: Update = {button: gr.Button(interactive=not busy) for button in self.starts}
        update[self.sidebar.run] = gr.Button("Queue" if busy else "Run")
        return update | {button: gr.Button(interactive=busy) for button in self.stops}
