"""A laboratory that computes nothing: for tests of what is around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ghostlab.config import RunConfig
from ghostlab.lab.requests import (
    AtlasRequest,
    EvaluateRequest,
    GenerateRequest,
    ProbeRequest,
    Request,
    RunRequest,
    ScoreRequest,
    Work,
)
from ghostlab.progress import Progress
from ghostlab.results.atlas import Atlas
from ghostlab.results.generation import Generation
from ghostlab.results.probe import Probe
from ghostlab.results.records import SelectionInfo
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import ZeroShot
from tests.helpers.atlases import make_atlas
from tests.helpers.results import make_probe, make_result, with_selection
from tests.helpers.zeroshot import make_zero_shot


class FakeLab:
    """Returns a made-up result at once and remembers what it was asked.

    ``before`` is what happens while it runs, scores or surveys.
    """

    def __init__(self, before: Callable[[Progress], None] | None = None) -> None:
        self.requests: list[Any] = []
        self.before = before or (lambda _: None)

    @property
    def asked(self) -> list[RunConfig]:
        """Configurations of what was run, scored or surveyed."""
        return [r.config for r in self.requests if isinstance(r, RunRequest | ScoreRequest | AtlasRequest)]

    def of(self, kind: type[Any]) -> list[Any]:
        """Requests of one kind."""
        return [request for request in self.requests if isinstance(request, kind)]

    def call(self, request: Request[Any], work: Work | None = None) -> Any:
        self.requests.append(request)
        doers: dict[type[Request[Any]], Callable[[Any, Work], Any]] = {
            RunRequest: self.run,
            ScoreRequest: self.score,
            ProbeRequest: self.probe,
            EvaluateRequest: self.evaluate,
            GenerateRequest: self.generate,
            AtlasRequest: self.atlas,
        }
        return doers[type(request)](request, work or Work())

    def run(self, request: RunRequest, work: Work) -> RunResult:
        result = replace(
            make_result(), config=request.config, generations=[], operators={"ghost/0.M": object()}
        )
        if work.on_result is not None:
            work.on_result(result)
        self.before(work.steps)
        if work.on_text is not None:
            work.on_text("original", " once")
        return replace(result, generations=[Generation("original", " once", 1, 0.1)])

    def score(self, request: ScoreRequest, work: Work) -> SelectionInfo:
        self.before(work.steps)
        info = with_selection(make_result()).selection
        assert info is not None
        return replace(info, criterion=request.config.select or "")

    def probe(self, request: ProbeRequest, work: Work) -> list[Probe]:
        work.steps.at(1.0, "Done")
        run = request.result.runs[0]
        made = [
            make_probe(how, 90 - 10 * how.alpha + 400 / (how.rank or 40), run.window_nll, request.label)
            for how in request.alterations
        ]
        return made if len(made) == 1 else [replace(probe, generation=None) for probe in made]

    def evaluate(self, request: EvaluateRequest, work: Work) -> ZeroShot:
        assert isinstance(request.source, RunResult)
        work.steps.at(1.0, "Done")
        labels = [run.label for run in request.source.runs]
        return make_zero_shot(["original", "pruned", *labels], list(request.tasks))

    def generate(self, request: GenerateRequest, work: Work) -> list[Generation]:
        assert work.on_text is not None
        work.on_text("original", " again")
        return [Generation("original", " again", 1, 0.1)]

    def atlas(self, request: AtlasRequest, work: Work) -> Atlas:
        self.before(work.steps)
        return replace(make_atlas(request.lengths), config=request.config)
