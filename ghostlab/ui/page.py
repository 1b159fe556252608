"""What all parts of the page share: how events are wired, how errors are shown, how a job is started."""

from __future__ import annotations

import inspect
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.errors import GhostlabError
from ghostlab.ui import html, theme
from ghostlab.ui.service.files import Outbox
from ghostlab.ui.service.service import Service, View

Update = dict[Any, Any]
"""Component -> new value; what is left out stays as it is."""
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private", "concurrency_limit": None}
_LOG = logging.getLogger(__name__)


@contextmanager
def user_errors() -> Iterator[None]:
    """Show our own errors as they are; log any other with an id and show only that. Also a decorator."""
    try:
        yield
    except gr.Error:
        raise
    except GhostlabError as error:
        raise gr.Error(str(error), title="This cannot run", duration=20, print_exception=False) from error
    except Exception as error:
        code = secrets.token_hex(3)
        _LOG.exception("an event failed; id %s", code)
        raise gr.Error(f"Internal error (id {code}).", print_exception=False) from error


def on(
    triggers: Any,
    handler: Callable[..., Any] | None,
    inputs: Any = None,
    outputs: Any = None,
    **options: Any,
) -> Any:
    """Wire a handler, or a script alone, to one event or several; returns the event, for ``success``.

    Its errors reach the visitor as sentences (:func:`user_errors`), nothing covers the outputs meanwhile, and
    the API page does not list it. ``options`` are what differs from :data:`QUIET`.
    """
    safe = None if handler is None else _safe(handler)
    return gr.on(triggers, safe, inputs, outputs, **{**QUIET, **options})


def _safe(handler: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.isasyncgenfunction(handler):

        @wraps(handler)
        async def stream(*values: Any) -> Any:
            with user_errors():
                async for update in handler(*values):
                    yield update

        return stream
    if inspect.isgeneratorfunction(handler):

        @wraps(handler)
        def steps(*values: Any) -> Iterator[Any]:
            with user_errors():
                yield from handler(*values)

        return steps
    safe = user_errors()(handler)
    if isinstance(handler, partial):
        safe.__name__ = handler.func.__name__  # what gradio calls the event
    return safe


@dataclass(frozen=True)
class Outputs:
    """Components and the function that gives their values, in the same order."""

    components: Sequence[Component] = ()
    render: Callable[..., list[Any]] = field(default=lambda *_: [])

    def __add__(self, other: Outputs) -> Outputs:
        return Outputs(
            [*self.components, *other.components],
            lambda *shown: [*self.render(*shown), *other.render(*shown)],
        )

    def update(self, *shown: Any) -> Update:
        """The values that ``render`` gives, by component."""
        return dict(zip(self.components, self.render(*shown), strict=True))


@dataclass(frozen=True)
class Tab:
    """What of a tab changes with the shown result; the rest a tab wires itself when it is built.

    Attributes:
        figures: What depends on the measured figures alone: sent once per run.
        words: What may change when only the generated text does.
        live: What changes while the job computes; rendered from the result and the view of its job.
    """

    figures: Outputs = field(default_factory=Outputs)
    words: Outputs = field(default_factory=Outputs)
    live: Outputs = field(default_factory=Outputs)

    def __add__(self, other: Tab) -> Tab:
        return Tab(self.figures + other.figures, self.words + other.words, self.live + other.live)


class Page:
    """The page while it is built: its parts put into it what they have, and take what they need.

    To be made inside ``gr.Blocks``.

    Attributes:
        demo: Its ``load`` fires when a visitor opens the page.
        tab: The tab that is being built.
        controls: The sidebar's controls, by the setting that they hold; their values together are what
            :func:`ghostlab.ui.sidebar.controls.read` makes a configuration of.
        job: Id of the job that is followed.
        shown: Id of the job whose result is shown; empty for the example.
        drawn: Id of the job whose figures are drawn; that of ``shown`` or of an earlier one with the same.
        query: The query of the page's address while a job is followed.
        source: Which run is shown, for people.
        status: How the followed job goes, on top of the page; the first of ``progress_lines``.
        queue, jobs: The list of the page's jobs, for people and as the browser keeps it.
        runs: The runs of the Compare tab, as the browser keeps them. What the browser keeps lies outside the
            tabs: in one that was never opened it would not be read, and be lost.
        found: Kind of job -> component that gets the id of a job that found an atlas or scores.
        open_file: Takes a file of the visitor's: settings or a result.
        wires: Wire what needs the whole page; called at its end, by :meth:`bind`.
    """

    def __init__(self, demo: gr.Blocks, service: Service) -> None:
        self.demo, self.service = demo, service
        self.tab: Any = None
        self.controls: dict[str, Component] = {}
        self.job, self.shown, self.drawn, self.query = (
            gr.Textbox("", visible=False, label=label)
            for label in ("Job", "Shown run", "Drawn run", "Address")
        )
        self.source = gr.HTML(
            '<div class="gl-source">Loading the example\N{HORIZONTAL ELLIPSIS}</div>',
            elem_id="source",
            render=False,
        )
        self.status = gr.HTML(elem_id="status", render=False)
        self.queue = gr.HTML(elem_id="agenda", js_on_load=theme.static("queue.js"), render=False)
        self.jobs = gr.BrowserState([], storage_key="ghostlab-agenda")
        example = {"id": "", "name": "Example", "query": ""}
        self.runs = gr.BrowserState([example], storage_key="ghostlab-runs")
        self.run = gr.Button("Run", variant="primary", elem_id="run", min_width=120, scale=2, render=False)
        self.found: dict[str, Component] = {}
        self.open_file: gr.UploadButton | None = None
        self.start_buttons: list[gr.Button] = []
        self.stop_buttons: list[gr.Button] = []
        self.progress_lines = [self.status]
        self.files = Outbox()
        self.wires: list[Callable[[], None]] = []

    def settings(self, values: Sequence[Any]) -> dict[str, Any]:
        """The values of all controls by name, given as an event hands them over."""
        return dict(zip(self.controls, values, strict=True))

    # -- jobs --------------------------------------------------------------------------------------------

    def job_buttons(
        self, name: str, starts: Sequence[gr.Button], stop: gr.Button, *, phone: bool = False
    ) -> None:
        """Take in the buttons that start and stop a job, and lay out a second place that tells how it goes.

        Args:
            name: Prefix of that place's id.
            phone: Whether it is only needed on a phone, where the place on top is out of sight.
        """
        kinds = ["gl-near", "gl-near-phone"] if phone else ["gl-near"]
        progress = gr.HTML(elem_id=f"{name}-progress", elem_classes=kinds)
        self.progress_lines.append(progress)
        self.start_buttons += starts
        self.stop_buttons.append(stop)

    def on_start(self, event: Any, queue: Callable[..., str], inputs: Sequence[Component]) -> None:
        """Let an event start a job: ``queue``, given who asks and the values of ``inputs``, returns the job's
        id, or nothing to leave the page as it is."""

        def start(request: gr.Request, *values: Any) -> Update:
            job = queue(request.session_hash or "", *values)
            return self.started(job) if job else {self.job: gr.skip()}

        def wire() -> None:
            started = on(event, start, list(inputs), self.start_outputs)
            started.success(None, None, None, js="ghostlab.foldSidebar")

        self.wires.append(wire)

    def bind(self) -> None:
        """Wire what needs the whole page, and the Stop buttons."""
        for wire in self.wires:
            wire()
        for stop in self.stop_buttons:
            on(stop.click, self.service.jobs.cancel, self.job, queue=False)

    @property
    def start_outputs(self) -> list[Component]:
        """What changes when a job is started."""
        return [self.job, *self.progress_lines, *self.job_switches]

    @property
    def job_switches(self) -> list[Component]:
        """The buttons that start and stop jobs."""
        return [self.run, *self.start_buttons, *self.stop_buttons]

    def started(self, job: str) -> Update:
        """What the page is sent once a job is queued: it follows that one."""
        view = self.service.jobs.view(job)
        return {self.job: job, **self.progress(view), **self.busy(True)}

    def progress(self, view: View | None) -> Update:
        """How a job goes: on top of the page, and beside the buttons of the tabs that start one."""
        again: Update = dict.fromkeys(self.progress_lines, html.progress(view, again=True))
        return {**again, self.status: html.progress(view)}

    def busy(self, busy: bool) -> Update:
        """Which buttons can be pressed while the page has a job under way, and while it has none."""
        return {
            self.run: gr.Button("Queue" if busy else "Run"),
            **{start: gr.Button(interactive=not busy) for start in self.start_buttons},
            **{stop: gr.Button(interactive=busy) for stop in self.stop_buttons},
        }
