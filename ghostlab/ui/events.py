"""What happens when a button is pressed or a page opens. Compute never runs here, only in jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal
from urllib.parse import parse_qsl

import gradio as gr
from gradio.components import Component

from ghostlab.config import PromptFormat, RunConfig
from ghostlab.errors import ConfigError, GhostlabError
from ghostlab.jobstate import JobView
from ghostlab.results import RunResult
from ghostlab.ui import picker as block_picker
from ghostlab.ui import picks, present, probing, uploads
from ghostlab.ui.complaints import told_to_user
from ghostlab.ui.service import Service
from ghostlab.ui.sidebar import Sidebar
from ghostlab.ui.tabs.generate import ASKED, columns_of, lead_of
from ghostlab.ui.tabs.view import Tab

Update = dict[Any, Any]
"""Component -> new value; what is left out stays as it is."""
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private", "concurrency_limit": None}
SHOW_IN_LINK = """(id) => {
  const url = new URL(location.href);
  for (const name of [...url.searchParams.keys()]) if (name !== "__theme") url.searchParams.delete(name);
  url.searchParams.set("run", id);
  history.replaceState(null, "", url);
}"""
FOLD_ON_PHONE = """() => {
  if (innerWidth < 768) document.querySelector("#sidebar.open .toggle-button")?.click();
}"""


@dataclass(frozen=True)
class Shell:
    """The components that belong to no tab.

    Attributes:
        job: Id of the job that is watched.
        shown: Id of the job whose result is shown; empty for the example.
        drawn: Id of the job whose figures are drawn; that of ``shown`` or of an earlier one with the same.
        source: Which run is shown, for people.
        status: How the watched job goes.
    """

    job: Component
    shown: Component
    drawn: Component
    source: Component
    status: Component


class Events:
    """Handlers of one app; they hold no state of any user."""

    def __init__(self, service: Service, sidebar: Sidebar, tabs: dict[str, Tab], shell: Shell) -> None:
        self.service = service
        self.sidebar = sidebar
        self.tabs = list(tabs.values())
        self.by_title = tabs
        self.starts = [sidebar.run, *self._named("start")]
        self.stops = [sidebar.stop, *self._named("stop")]
        self.shell = shell
        self.writer = tabs["Generate"].controls
        self._written = [self.writer["lead"], self.writer["columns"]]
        self.picker = tabs["Overview"].controls
        self._first: Update | None = None

    def bind(self, demo: gr.Blocks) -> None:
        """Wire every event of the page."""
        shell, writer = self.shell, self.writer
        buttons = [*self.starts, *self.stops]
        started = [shell.job, shell.status, *buttons]
        page = [shell.status, shell.shown, shell.drawn, shell.source, *self._written, *buttons]
        words, figures = self._components("words"), self._components("figures")
        asked = [shell.shown, *(writer[name] for name in ASKED)]
        presses = [
            self.sidebar.run.click(self.run, self.sidebar.inputs, started, validator=self.validate, **QUIET),
            writer["start"].click(self.generate, asked, started, **QUIET),
            *probing.bind(self.service, shell.shown, self.by_title, self._started, started, **QUIET),
        ]
        for press in presses:
            press.success(None, shell.job, None, js=SHOW_IN_LINK)
            press.success(None, None, None, js=FOLD_ON_PHONE)
            press.success(self.watch, [shell.job, shell.shown], page, **QUIET)
        # Not from `watch`: what a stream sends to a tab that was never opened is lost with its next message.
        shell.shown.change(self.words, shell.shown, words, **QUIET)
        shell.drawn.change(self.figures, shell.drawn, figures, **QUIET)
        for stop in self.stops:
            stop.click(self.service.cancel, shell.job, None, queue=False, **QUIET)
        picks.bind(self.service, self.sidebar, shell.shown, self.picker, QUIET)
        demo.load(None, None, None, js=FOLD_ON_PHONE)
        opened = demo.load(
            self.open, None, [shell.job, *self.sidebar.inputs, *page, *words, *figures], **QUIET
        )
        select = self.sidebar.controls["select"]
        select.change(self.sidebar.describe, select, self.sidebar.words, **QUIET)
        uploads.bind(self.service, self.sidebar.upload, self.sidebar.controls["text"], QUIET)
        block_picker.bind(self.service, self.sidebar.picker, self.sidebar.controls, shell.shown, QUIET)
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

    def _started(self, job_id: str) -> Update:
        status = present.progress(self.service.jobs.view(job_id))
        return {self.shell.job: job_id, self.shell.status: status, **self._buttons(busy=True)}

    # -- the page ----------------------------------------------------------------------------------------

    def open(self, request: gr.Request) -> Update:
        """What a page shows first: the run that its address names, or the example at once."""
        query = list(request.query_params.multi_items())
        job_id = dict(query).get("run", "")
        view = self.service.jobs.view(job_id) if job_id else None
        if job_id and view is None:
            gr.Warning("That run is no longer on this server; here is the example.", title="Run not found")
        update: Update = {self.shell.job: job_id if view else ""}
        config = _asked_for(parse_qsl(view.about) if view else query)
        if config is not None:
            update |= dict(zip(self.sidebar.inputs, self.sidebar.fill(config), strict=True))
        if view is None or view.result is None:
            update |= self._example()
        return update

    def watch(self, job_id: str, shown: str) -> Iterator[Update]:
        """Follow a job until it ends; what has not changed on the page is not sent again."""
        last = self.service.find(shown)
        yield {self.shell.status: gr.skip()}  # gradio blanks the outputs of a generator that yields nothing
        for view in self.service.follow(job_id) if job_id else ():
            if view.error:
                gr.Warning(view.error, title="The run failed", duration=10)
            update: Update = {self.shell.status: present.progress(view), **self._buttons(not view.finished)}
            if view.result is not None:
                update |= self._news(view, view.result, last)
                last = view.result
            yield update

    def _news(self, view: JobView[RunResult], result: RunResult, last: RunResult | None) -> Update:
        """What a job's result changes on a page that shows ``last``."""
        update = self._generated(result, view)
        if last is not result:
            update |= {self.shell.shown: view.id, self.shell.source: present.source(result, example=False)}
        if last is None or last.runs is not result.runs:
            update[self.shell.drawn] = view.id
        return update

    def _generated(self, result: RunResult, view: JobView[RunResult] | None) -> Update:
        values = (lead_of(result), columns_of(result, view))
        return dict(zip(self._written, values, strict=True))

    def words(self, shown: str) -> Update:
        """What the tabs say of a result besides its figures."""
        return self._rendered(self.service.result(shown), "words")

    def figures(self, drawn: str) -> Update:
        """The figures of a result."""
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

    def _buttons(self, busy: bool) -> Update:
        update: Update = {button: gr.Button(interactive=not busy) for button in self.starts}
        return update | {button: gr.Button(interactive=busy) for button in self.stops}

    def _named(self, prefix: str) -> list[Component]:
        """Buttons of all tabs whose name begins so: each starts a job, or stops it."""
        controls = [item for tab in self.tabs for item in tab.controls.items()]
        return [component for name, component in controls if name.startswith(prefix)]


def _asked_for(query: Sequence[tuple[str, str]]) -> RunConfig | None:
    """The configuration in a link; ``None`` when it names none, or one that cannot be read."""
    names = {f.name for f in fields(RunConfig)}
    pairs = [(name, value) for name, value in query if name in names]
    try:
        return RunConfig.from_query(pairs) if pairs else None
    except GhostlabError as error:
        gr.Warning(str(error), title="The link's configuration was not understood")
        return None
