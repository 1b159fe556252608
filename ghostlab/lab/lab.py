"""The pipeline: from a :class:`~ghostlab.config.RunConfig` to a :class:`~ghostlab.results.run.RunResult`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ghostlab.calibration.capture import LESS_MEMORY
from ghostlab.config import PromptFormat, RunConfig
from ghostlab.errors import memory_errors
from ghostlab.export.folder import pack
from ghostlab.lab import records as assembly
from ghostlab.lab.atlas import score, survey
from ghostlab.lab.export import export, reason_not_stock
from ghostlab.lab.measure import measure
from ghostlab.lab.probe import probe
from ghostlab.lab.requests import (
    Answer,
    AtlasRequest,
    EvaluateRequest,
    ExportForm,
    ExportRequest,
    GenerateRequest,
    Listeners,
    ProbeRequest,
    Request,
    RunRequest,
    ScoreRequest,
    Work,
)
from ghostlab.lab.run import check, continue_all, decide, fit_all, rebuild, timed
from ghostlab.lab.session import Workbench
from ghostlab.lab.zeroshot import answer
from ghostlab.model.model import Model
from ghostlab.progress import SILENT, CancelToken, Progress
from ghostlab.recovery.fitting import apply
from ghostlab.results.atlas import DEFAULT_LENGTHS, Atlas
from ghostlab.results.generation import Generation
from ghostlab.results.probe import Alteration, Probe
from ghostlab.results.records import Baseline, SelectionInfo
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import ZeroShot
from ghostlab.settings import Settings

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Lab:
    """Computes what is requested, one request at a time: another thread waits until the lab is free.

    Args:
        settings: Host settings; default from the environment.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings.from_env()
        self._bench = Workbench(self.settings)
        self._free = threading.Lock()

    def call(self, request: Request[Answer], work: Work | None = None) -> Answer:
        """Do what is requested.

        Raises:
            GhostlabError: For anything that the user can mend; see :mod:`ghostlab.errors`.
            Cancelled: If ``work`` is cancelled.
        """
        work = work or Work()
        with self._alone(work.cancel):
            answer: Answer = _DOERS[type(request)](self, request, work)
        return answer

    @contextmanager
    def _alone(self, cancel: CancelToken | None = None) -> Iterator[None]:
        """Wait until no other thread is served; a stop is obeyed meanwhile."""
        while not self._free.acquire(timeout=0.2):
            Progress(cancel=cancel).check()
        try:
            yield
        finally:
            self._free.release()

    def run(self, config: RunConfig, **listeners: Unpack[Listeners]) -> RunResult:
        """Run the whole road; listeners are the fields of :class:`~ghostlab.lab.requests.Work`."""
        return self.call(RunRequest(config), Work(**listeners))

    def generate(
        self,
        result: RunResult,
        *,
        prompt: str,
        new_tokens: int,
        prompt_format: PromptFormat = "auto",
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 0,
        **listeners: Unpack[Listeners],
    ) -> list[Generation]:
        """Let every variant of a finished run continue another prompt."""
        config = replace(
            result.config,
            prompt=prompt,
            prompt_format=prompt_format,
            new_tokens=new_tokens,
            temperature=temperature,
            top_p=top_p,
            seed=seed,
        )
        return self.call(GenerateRequest(replace(result, config=config)), Work(**listeners))

    def probe(
        self, result: RunResult, label: str, *alterations: Alteration, **listeners: Unpack[Listeners]
    ) -> list[Probe]:
        """Measure altered copies of a recovery's maps; see :class:`~ghostlab.lab.requests.ProbeRequest`."""
        return self.call(ProbeRequest(result, label, alterations), Work(**listeners))

    def export(
        self,
        result: RunResult,
        label: str,
        folder: str | Path,
        *,
        form: ExportForm = "recovered",
        **listeners: Unpack[Listeners],
    ) -> Path:
        """Write a variant of a finished run; see :class:`~ghostlab.lab.requests.ExportRequest`."""
        return self.call(ExportRequest(result, label, folder, form), Work(**listeners))

    def stock_reason(self, result: RunResult, label: str) -> str | None:
        """Why a recovery cannot be exported as ``stock``, in one sentence; ``None`` if it can."""
        with self._alone():
            return reason_not_stock(self._bench, result, label, SILENT)

    def evaluate(
        self,
        source: RunResult | Sequence[str],
        tasks: str | Sequence[str],
        *,
        limit: int | None = None,
        hub: bool = False,
        **listeners: Unpack[Listeners],
    ) -> ZeroShot:
        """Zero-shot answers of variants or models; see :class:`~ghostlab.lab.requests.EvaluateRequest`."""
        return self.call(EvaluateRequest(source, tasks, limit, hub), Work(**listeners))

    def atlas(
        self, config: RunConfig, lengths: Sequence[int] = DEFAULT_LENGTHS, **listeners: Unpack[Listeners]
    ) -> Atlas:
        """Figures of every block of so many layers; ``config`` names model and calibration text."""
        return self.call(AtlasRequest(config, tuple(lengths)), Work(**listeners))

    def score(self, config: RunConfig, **listeners: Unpack[Listeners]) -> SelectionInfo:
        """Scores of the criterion that ``config`` selects, and the blocks that it would drop."""
        return self.call(ScoreRequest(config), Work(**listeners))

    def _run(self, request: RunRequest, work: Work) -> RunResult:
        config, steps = request.config, work.steps
        check(config, self.settings)
        with memory_errors(LESS_MEMORY):
            model = self._bench.model(config, steps.part(0.0, 0.05))
            result, variants = self._measure(config, model, steps.part(0.05, 0.85))
            begun = time.perf_counter()

            def with_texts(made: list[Generation]) -> RunResult:
                clock = {**result.timings, "generate": round(time.perf_counter() - begun, 3)}
                return replace(result, generations=made, timings=clock)

            keep = work.on_result or (lambda _: None)
            keep(with_texts([]))
            made = continue_all(
                config, variants, steps.part(0.85, 1.0), work.on_text, lambda made: keep(with_texts(made))
            )
            result = with_texts(made)
        steps.at(1.0, "Done")
        return result

    def _generate(self, request: GenerateRequest, work: Work) -> list[Generation]:
        result, steps = request.result, work.steps
        check(result.config, self.settings)
        with memory_errors("Lower new_tokens or shorten the prompt."):
            model = self._bench.model(result.config, steps.part(0.0, 0.1))
            variants = rebuild(model, result)
            return continue_all(
                result.config, variants, steps.part(0.1, 1.0), work.on_text, work.on_generations
            )

    def _probe(self, request: ProbeRequest, work: Work) -> list[Probe]:
        return probe(self._bench, request, work)

    def _export(self, request: ExportRequest, work: Work) -> Path:
        return export(self._bench, request, work.steps)

    def _evaluate(self, request: EvaluateRequest, work: Work) -> ZeroShot:
        return answer(self._bench, request, work.steps)

    def _atlas(self, request: AtlasRequest, work: Work) -> Atlas:
        check(request.config, self.settings)
        return survey(self._bench, request.config, request.lengths, work.steps)

    def _score(self, request: ScoreRequest, work: Work) -> SelectionInfo:
        check(request.config, self.settings)
        return score(self._bench, request.config, work.steps)

    def _measure(
        self, config: RunConfig, model: Model, progress: Progress
    ) -> tuple[RunResult, dict[str, Model]]:
        """Calibrate, cut, fit, evaluate; the result so far, and every variant by name."""
        clock: dict[str, float] = {}
        with timed(clock, "text"):
            text = self._bench.text(config.text, progress.part(0.0, 0.02))
            other = self._bench.text(config.held_out_text or config.text, progress.part(0.02, 0.04))
            held_out = self._bench.held_out(config, model, text, other)
            calib = self._bench.calibration(config, model, text, other)
        with timed(clock, "calibrate"):
            cut, selection = decide(config, calib, progress.part(0.04, 0.3))
            calib.moments(cut, progress.part(0.3 if selection else 0.04, 0.55))
        with timed(clock, "fit"):
            fits = fit_all(config, calib, cut, progress.part(0.55, 0.62))
        pruned = apply(model, cut)
        variants = {"original": model, "pruned": pruned}
        variants |= {f.label: apply(model, cut, f) if f.replacements else pruned for f in fits}
        with timed(clock, "evaluate"):
            measured = measure(config, variants, fits, held_out, progress.part(0.62, 0.95))
        with timed(clock, "analyse"):
            steps = progress.part(0.95, 1.0).each(list(enumerate(fits)), "Taking the operators apart")
            runs = [assembly.recovery_run(f, index, calib, measured, variants[f.label]) for index, f in steps]
        result = RunResult(
            config=config,
            model=assembly.model_info(model, cut),
            text=assembly.text_info(text, other, calib, held_out.windows),
            cut=assembly.cut_info(cut, model.depth),
            baseline=Baseline(measured.original, measured.pruned),
            runs=runs,
            timings=clock,
            versions=assembly.versions(),
            selection=selection,
            warnings=assembly.warnings(model, held_out.windows),
            created=assembly.now(),
            operators={name: t for f in fits for name, t in pack(f.replacements, f"{f.label}/").items()},
        )
        return result, variants


_DOERS: dict[type[Request[Any]], Callable[[Lab, Any, Work], Any]] = {
    RunRequest: Lab._run,
    GenerateRequest: Lab._generate,
    ProbeRequest: Lab._probe,
    ExportRequest: Lab._export,
    EvaluateRequest: Lab._evaluate,
    AtlasRequest: Lab._atlas,
    ScoreRequest: Lab._score,
}


def run(config: RunConfig, *, settings: Settings | None = None, **listeners: Unpack[Listeners]) -> RunResult:
    """Run a configuration in a lab of its own; see :meth:`Lab.run`."""
    return Lab(settings).run(config, **listeners)
