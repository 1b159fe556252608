"""A laboratory that computes nothing: for tests of what is around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ghostlab.config import RunConfig
from ghostlab.progress import CancelToken, Progress, ProgressSink, ProgressUpdate
from ghostlab.results.atlas import Atlas
from ghostlab.results.generation import Generation
from ghostlab.results.probe import Alteration, Probe
from ghostlab.results.records import SelectionInfo
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import ZeroShot
from tests.helpers.atlases import make_atlas
from tests.helpers.results import make_probe, make_result, with_selection
from tests.helpers.zeroshot import make_zero_shot


class FakeLab:
    """Returns a made-up result at once and remembers what it was asked."""

    def __init__(self, before: Callable[[Progress], None] | None = None) -> None:
        self.asked: list[RunConfig] = []
        self.prompts: list[dict[str, Any]] = []
        self.probed: list[tuple[str, tuple[Alteration, ...]]] = []
        self.questions: list[tuple[tuple[str, ...], int]] = []
        self.from_hub: list[bool] = []
        self.before = before

    def run(
        self,
        config: RunConfig,
        *,
        progress: ProgressSink | None = None,
        cancel: CancelToken | None = None,
        on_result: Callable[[RunResult], None] | None = None,
        on_text: Callable[[str, str], None] | None = None,
    ) -> RunResult:
        self.asked.append(config)
        steps = Progress(progress, cancel)
        result = replace(make_result(), config=config, generations=[], operators={"ghost/0.M": object()})
        if on_result is not None:
            on_result(result)
        if self.before is not None:
            self.before(steps)
        if on_text is not None:
            on_text("original", " once")
        return replace(result, generations=[Generation("original", " once", 1, 0.1)])

    def score(self, config: RunConfig, **options: Any) -> SelectionInfo:
        self.asked.append(config)
        if self.before is not None:
            self.before(Progress(options["progress"], options["cancel"]))
        info = with_selection(make_result()).selection
        assert info is not None
        return replace(info, criterion=config.select or "")

    def probe(self, result: RunResult, label: str, *asked: Alteration, **options: Any) -> list[Probe]:
        self.probed.append((label, asked))
        options["progress"](ProgressUpdate(1.0, "Done"))
        run = result.runs[0]
        made = [
            make_probe(how, 90 - 10 * how.alpha + 400 / (how.rank or 40), run.window_nll, label)
            for how in asked
        ]
        return made if len(made) == 1 else [replace(probe, generation=None) for probe in made]

    def evaluate(self, source: RunResult, tasks: Sequence[str], **options: Any) -> ZeroShot:
        self.questions.append((tuple(tasks), options["limit"]))
        self.from_hub.append(options["hub"])
        options["progress"](ProgressUpdate(1.0, "Done"))
        return make_zero_shot(["original", "pruned", *(run.label for run in source.runs)], tasks)

    def generate(self, result: RunResult, **options: Any) -> list[Generation]:
        self.prompts.append(options)
        options["on_text"]("original", " again")
        return [Generation("original", " again", 1, 0.1)]

    def atlas(
        self,
        config: RunConfig,
        lengths: Sequence[int],
        *,
        progress: ProgressSink | None = None,
        cancel: CancelToken | None = None,
    ) -> Atlas:
        self.asked.append(config)
        if self.before is not None:
            self.before(Progress(progress, cancel))
        return replace(make_atlas(lengths), config=config)
