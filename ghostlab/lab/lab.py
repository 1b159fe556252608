"""The pipeline: from a :class:`~ghostlab.config.RunConfig` to a :class:`~ghostlab.results.run.RunResult`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ghostlab.config import PromptFormat, RunConfig
from ghostlab.errors import ConfigError, memory_errors
from ghostlab.evaluation.generate import generate
from ghostlab.evaluation.tasks import require_harness
from ghostlab.evaluation.zeroshot import evaluate
from ghostlab.export.folder import pack
from ghostlab.lab import records
from ghostlab.lab.export import export, reason_not_stock
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
    check,
)
from ghostlab.lab.run import decide, fit_all, measure, timed, variants_of
from ghostlab.lab.session import Session
from ghostlab.lab.variants import load_any, original, rebuild
from ghostlab.model.model import Model
from ghostlab.progress import SILENT, CancelToken, Progress
from ghostlab.pruning.registry import score
from ghostlab.results.atlas import DEFAULT_LENGTHS, Atlas
from ghostlab.results.generation import Generation
from ghostlab.results.probe import Alteration, Probe
from ghostlab.results.records import SelectionInfo
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
        self._session = Session(self.settings)
        self._free = threading.RLock()  # a listener may call the lab again

    def call(self, request: Request[Answer], work: Work | None = None) -> Answer:
        """Do what is requested.

        Raises:
            GhostlabError: For anything that the user can mend; see :mod:`ghostlab.errors`.
            Cancelled: If ``work`` is cancelled.
        """
        work = work or Work()
        with self._alone(work.cancel):
            answer: Answer = _CALLS[type(request)](self._session, request, work)
        return answer

    @contextmanager
    def _alone(self, cancel: CancelToken | None = None) -> Iterator[None]:
        """Wait for other threads to finish; can be cancelled meanwhile."""
        while not self._free.acquire(timeout=0.2):
            Progress(cancel=cancel).check()
        try:
            yield
        finally:
            self._free.release()

    def run(self, config: RunConfig, **listeners: Unpack[Listeners]) -> RunResult:
        """Run the whole pipeline; listeners are the fields of :class:`~ghostlab.lab.requests.Work`."""
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
            return reason_not_stock(self._session, result, label, SILENT)

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


def run(config: RunConfig, *, settings: Settings | None = None, **listeners: Unpack[Listeners]) -> RunResult:
    """Run a configuration in a lab of its own; see :meth:`Lab.run`."""
    return Lab(settings).run(config, **listeners)


def _run(session: Session, request: RunRequest, work: Work) -> RunResult:
    config, steps = request.config, work.steps
    check(config, session.settings)
    with memory_errors():
        result, variants = _measured(session, config, steps.part(0.0, 0.85))
        begun = time.perf_counter()

        def written(texts: list[Generation]) -> RunResult:
            clock = {**result.timings, "generate": round(time.perf_counter() - begun, 3)}
            return replace(result, generations=texts, timings=clock)

        keep = work.on_result or (lambda _: None)
        keep(written([]))
        texts = generate(
            variants,
            config,
            on_text=work.on_text,
            on_generations=lambda texts: keep(written(texts)),
            progress=steps.part(0.85, 1.0),
        )
        found = written(texts)
    steps.at(1.0, "Done")
    return found


def _measured(session: Session, config: RunConfig, progress: Progress) -> tuple[RunResult, dict[str, Model]]:
    """Calibrate, cut, fit, evaluate; the result so far, and every variant by name."""
    clock: dict[str, float] = {}
    with timed(clock, "load"):
        prepared = session.prepare(config, progress.part(0.0, 0.08))
        model = prepared.model
    with timed(clock, "text"):
        held_out, calib = prepared.held_out, prepared.calibration
    with timed(clock, "calibrate"):
        cut, scores = decide(config, calib, progress.part(0.08, 0.34))
        calib.moments(cut, progress.part(0.34 if scores else 0.08, 0.58))
    with timed(clock, "fit"):
        fits = fit_all(config, calib, cut, progress.part(0.58, 0.64))
    variants = variants_of(model, cut, fits)
    with timed(clock, "evaluate"):
        baseline, recoveries = measure(config, variants, fits, held_out, progress.part(0.64, 0.95))
    with timed(clock, "analyse"):
        each = progress.part(0.95, 1.0).each(recoveries, "Analysing the operators")
        runs = [records.recovery_run(measured, baseline) for measured in each]
    result = RunResult(
        config=config,
        model=records.model_info(model, cut),
        text=records.text_info(prepared),
        cut=records.cut_info(cut, model.depth),
        baseline=baseline,
        runs=runs,
        timings=clock,
        versions=records.versions(),
        selection=None if scores is None else records.selection_info(config, scores),
        warnings=records.warnings(model, held_out.windows),
        created=records.now(),
        operators={name: t for f in fits for name, t in pack(f.replacements, f"{f.label}/").items()},
    )
    return result, variants


def _generate(session: Session, request: GenerateRequest, work: Work) -> list[Generation]:
    result, steps = request.result, work.steps
    check(result.config, session.settings)
    with memory_errors("Lower new_tokens or shorten the prompt."):
        variants = rebuild(original(session, result, steps.part(0.0, 0.1)), result)
        return generate(
            variants,
            result.config,
            on_text=work.on_text,
            on_generations=work.on_generations,
            progress=steps.part(0.1, 1.0),
        )


def _evaluate(session: Session, request: EvaluateRequest, work: Work) -> ZeroShot:
    require_harness()
    source, steps = request.source, work.steps
    loading = steps.part(0.0, 0.05)
    with memory_errors("Choose a smaller model."):
        if isinstance(source, RunResult):
            models = rebuild(original(session, source, loading), source)
        else:
            models = {name: load_any(name, session.settings, loading) for name in source}
        return evaluate(
            models, request.tasks, limit=request.limit, hub=request.hub, progress=steps.part(0.05, 1.0)
        )


def _atlas(session: Session, request: AtlasRequest, work: Work) -> Atlas:
    config, steps = replace(request.config, held_out_text=None), work.steps
    check(request.config, session.settings)
    begun = time.perf_counter()
    with memory_errors():
        calib = session.prepare(config, steps.part(0.0, 0.07)).calibration
        found = records.make_atlas(config, calib, request.lengths, steps.part(0.07, 1.0))
    return replace(found, seconds=round(time.perf_counter() - begun, 3))


def _score(session: Session, request: ScoreRequest, work: Work) -> SelectionInfo:
    config, steps = request.config, work.steps
    check(config, session.settings)
    if config.select is None:
        raise ConfigError(
            "No criterion is selected.", "Set select, for example select='shortgpt', drop=None."
        )
    with memory_errors():
        calib = session.prepare(config, steps.part(0.0, 0.07)).calibration
        scores = score(calib, config.select, config.count, steps.part(0.07, 1.0))
    steps.at(1.0, "Done")
    return records.selection_info(config, scores)


_CALLS: dict[type[Request[Any]], Callable[[Session, Any, Work], Any]] = {
    RunRequest: _run,
    GenerateRequest: _generate,
    ProbeRequest: probe,
    ExportRequest: export,
    EvaluateRequest: _evaluate,
    AtlasRequest: _atlas,
    ScoreRequest: _score,
}
