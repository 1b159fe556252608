"""What happens when a button is pressed or a page opens. Compute never runs here, only in jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import parse_qsl

import gradio as gr
from gradio.components import Component

from ghostlab.atlas import Atlas
from ghostlab.config import PromptFormat
from ghostlab.errors import ConfigError
from ghostlab.jobstate import JobView
from ghostlab.results import RunResult
from ghostlab.ui import address, asking, picks, present, probing, scoring, uploads
from ghostlab.ui import picker as block_picker
from ghostlab.ui.complaints import told_to_user
from ghostlab.ui.service import Finding, Service
from ghostlab.ui.shell import FOLD_ON_PHONE, QUIET, Shell, Update
from ghostlab.ui.sidebar import Sidebar
from ghostlab.ui.surveys import Surveys
from ghostlab.ui.tabs.generate import ASKED, columns_of, lead_of
from ghostlab.ui.tabs.share import Share
from ghostlab.ui.tabs.view import Tab, named


class Events:
    """Handlers of one app; they hold no state of any user."""

    def __init__(self, service: Service, sidebar: Sidebar, tabs: dict[str, Tab], shell: Shell) -> None:
        self.service = service
        self.sidebar = sidebar
        self.tabs = list(tabs.values())
        self.by_title = tabs
        self.scores = sidebar.scores
        self.starts = [sidebar.run, self.scores.start, *named(self.tabs, "start")]
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
        shell, writer, mapper = self.shell, self.writer, self.mapper
        buttons = [*self.starts, *self.stops]
        told = [shell.status, *self.near]
        started = [shell.job, *told, *buttons]
        shows = [shell.shown, shell.drawn, shell.source, *self._written]
        page = [*told, *shows, mapper["shown"], self.scores.found, *buttons]
        words, figures = self._components("words"), self._components("figures")
        asked = [shell.shown, *(writer[name] for name in ASKED)]
        run, survey = self.sidebar.inputs, [mapper["lengths"], *self.sidebar.inputs]
        presses = [
            self.sidebar.run.click(self.run, run, started, validator=self.validate, **QUIET),
            writer["start"].click(self.generate, asked, started, **QUIET),
            mapper["start"].click(self.survey, survey, started, **QUIET),
        ]
        rest = {"job": shell.job, "next_rank": self.sidebar.controls["rank"], **QUIET}
        presses += probing.bind(self.service, shell.shown, self.by_title, self._started, started, **rest)
        tasks = self.by_title["Tasks"]
        presses.append(asking.bind(self.service, shell.shown, tasks, self._started, started, **QUIET))
        upload = self.share.upload
        taken = upload.upload(self.accept, [upload, shell.job], [shell.job, *told, *shows, *run], **QUIET)
        at = scoring.Page(shell.shown, mapper["shown"])
        scored = scoring.bind(self.service, self.sidebar, at, self._started, started, **QUIET)
        for press in [*presses, scored, taken]:
            address.follow(press, self.service, shell)
            if press is not scored:  # scores are drawn in the sidebar
                press.success(None, None, None, js=FOLD_ON_PHONE)
        for press in [*presses, scored]:
            press.success(self.watch, [shell.job, shell.shown], page, **QUIET)
        # Not from `watch`: what a stream sends to a tab that was never opened is lost with its next message.
        shell.shown.change(self.words, shell.shown, words, **QUIET)
        shell.drawn.change(self.figures, shell.drawn, figures, **QUIET)
        for stop in self.stops:
            stop.click(self.service.cancel, shell.job, None, queue=False, **QUIET)
        picks.bind(self.service, self.sidebar, shell.shown, self.picker, QUIET)
        self.surveys.bind(self.sidebar, QUIET)
        demo.load(None, None, None, js=FOLD_ON_PHONE)
        asks = [shell.job, *self.sidebar.inputs, shell.status]
        first = [*asks, *shows, *words, *figures, *self.surveys.opened, self.scores.found]
        opened = demo.load(self.open, None, first, **QUIET)
        uploads.bind(self.service, self.sidebar.upload, self.sidebar.controls["text"], QUIET)
        block_picker.bind(self.service.settings, self.sidebar.picker, self.sidebar.controls, QUIET)
        opened.then(self.watch, [shell.job, shell.shown], page, **QUIET)

    def _components(self, part: Literal["words", "figures"]) -> list[Component]:
        return [component for tab in self.tabs for component in getattr(tab, part).components]

    # -- buttons -----------------------------------------------------------------------------------------

    def validate(self, *values: Any) -> list[Any]:
        """A sentence beside the control in sight that is wrong, before anything else happens."""
        name, message = self.sidebar.problem(values, self.service.settings)
        return [gr.validate(control != name, message) for control in self.sidebar.controls]

    def run(self, request: gr.Request, *values: Any) -> Update:
        """Queue a run of what the sidebar says."""
        with told_to_user():
            return self._started(self.service.start(self.sidebar.read(values), request.session_hash or ""))

    def generate(
        self,
        request: gr.Request,
        shown: str,
        prompt: str,
        prompt_format: PromptFormat,
        *amounts: float | None,
    ) -> Update:
        """Queue the continuation of a prompt by every variant of the shown result.

        ``amounts`` are new tokens, temperature and top p.
        """
        with told_to_user():
            given = [amount for amount in amounts if amount is not None]
            if len(given) < len(amounts):
                raise ConfigError("A number is empty.", "Give new tokens, temperature and top p.")
            tokens, temperature, top_p = given
            job_id = self.service.generate(
                shown,
                prompt=prompt,
                prompt_format=prompt_format,
                new_tokens=int(tokens),
                temperature=temperature,
                top_p=top_p,
                owner=request.session_hash or "",
            )
            return self._started(job_id)

    def survey(self, request: gr.Request, lengths: str, *values: Any) -> Update:
        """Queue an atlas of the sidebar's model on its text."""
        with told_to_user():
            config = self.sidebar.read(values)
            return self._started(self.service.survey(config, lengths, request.session_hash or ""))

    def accept(self, data: bytes | None, watched: str) -> Update:
        """Fill the sidebar from a file, and show its result if it holds one.

        A job that is under way stays the watched one; of one that has ended nothing more is said.
        """
        with told_to_user():
            config, opened = self.service.accept(data or b"")
        update: Update = dict(zip(self.sidebar.inputs, self.sidebar.fill(config), strict=True))
        view, job = (self.service.jobs.view(job_id) for job_id in (opened, watched))
        if view is None or not isinstance(view.result, RunResult):
            gr.Info("Its settings are in the sidebar. Press Run to measure them.", title="Opened", duration=5)
            return update
        update |= self._news(view, view.result, None)
        if job is None or job.finished:
            update |= {self.shell.job: opened, **self._status(None)}
        return update

    def _started(self, job_id: str) -> Update:
        view = self.service.jobs.view(job_id)
        return {self.shell.job: job_id, **self._status(view), **self._buttons(busy=True)}

    # -- the page ----------------------------------------------------------------------------------------

    def open(self, request: gr.Request) -> Update:
        """What a page shows first: the run and the atlas that its address names, or the examples at once."""
        query = list(request.query_params.multi_items())
        run, survey, scores = jobs = [address.job(self.service, query, name) for name in address.NAMES]
        job = address.followed(jobs)
        update: Update = {self.shell.job: job.id if job else ""}
        said = run or survey
        config = address.asked_for(parse_qsl(said.about) if said else query)
        config = scoring.resumed(config, scores)
        update |= {self.scores.found: scores.id} if scores and scores.result else {}
        if config is not None:
            update |= dict(zip(self.sidebar.inputs, self.sidebar.fill(config), strict=True))
        if run is None or not isinstance(run.result, RunResult):
            update |= self._example()
        elif job is not run:  # `watch` will not come by it
            update |= self._news(run, run.result, None)
        return update | self.surveys.open(survey)

    def watch(self, job_id: str, shown: str) -> Iterator[Update]:
        """Follow a job until it ends; what has not changed on the page is not sent again."""
        last = self.service.find(shown)
        yield {self.shell.status: gr.skip()}  # gradio blanks the outputs of a generator that yields nothing
        for view in self.service.follow(job_id) if job_id else ():
            if view.error:
                gr.Warning(view.error, title=f"The {address.WHAT.get(view.kind, 'run')} failed", duration=10)
            update: Update = {**self._status(view), **self._buttons(not view.finished)}
            if isinstance(view.result, RunResult):
                update |= self._news(view, view.result, last)
                last = view.result
            elif view.result is not None:
                place = self.mapper["shown"] if isinstance(view.result, Atlas) else self.scores.found
                update[place] = view.id
            yield update

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
        return update | {button: gr.Button(interactive=busy) for button in self.stops}
