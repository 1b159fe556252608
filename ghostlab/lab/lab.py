"""The pipeline: from a :class:`~ghostlab.config.RunConfig` to a :class:`~ghostlab.results.run.RunResult`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ghostlab.calibration.capture import LESS_MEMORY
from ghostlab.config import PromptFormat, RunConfig
from ghostlab.errors import memory_errors
from ghostlab.export.folder import pack
from ghostlab.lab import records as assembly
from ghostlab.lab.atlas import score, survey
from ghostlab.lab.export import Form, export, reason_not_stock
from ghostlab.lab.measure import measure
from ghostlab.lab.probe import probe
from ghostlab.lab.run import check, continue_all, decide, fit_all, rebuild, timed
from ghostlab.lab.session import Workbench
from ghostlab.lab.zeroshot import answer
from ghostlab.model.model import Model
from ghostlab.progress import SILENT, CancelToken, Progress, ProgressSink
from ghostlab.recovery.fitting import apply
from ghostlab.results.atlas import DEFAULT_LENGTHS, Atlas
from ghostlab.results.generation import Generation, OnGenerations, OnText
from ghostlab.results.probe import Alteration, Probe
from ghostlab.results.records import Baseline, SelectionInfo
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import ZeroShot
from ghostlab.settings import Settings

OnResult = Callable[[RunResult], None]


class Lab:
    """Runs configurations, one at a time: whoever shares a lab between threads lets one run in at a time.

    Args:
        settings: Host settings; default from the environment.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings.from_env()
        self._bench = Workbench(self.settings)

    def run(
        self,
        config: RunConfig,
        *,
        progress: ProgressSink | None = None,
        cancel: CancelToken | None = None,
        on_result: OnResult | None = None,
        on_text: OnText | None = None,
    ) -> RunResult:
        """Run the whole road.

        Args:
            config: What to run.
            progress: Told how far the run is.
            cancel: Stops the run within one batch or one token.
            on_result: Given the result as soon as everything is measured, before anything is generated, and
                again with each continuation that is judged, or with what is written when it is stopped.
            on_text: Given each continuation as it grows.

        Raises:
            GhostlabError: For anything that the user can mend; see :mod:`ghostlab.errors`.
        """
        check(config, self.settings)
        steps = Progress(progress, cancel)
        with memory_errors(LESS_MEMORY):
            model = self._bench.model(config, steps.part(0.0, 0.05))
            result, variants = self._measure(config, model, steps.part(0.05, 0.85))
            keep = on_result or (lambda _: None)
            keep(result)
            with timed(result.timings, "generate"):
                generations = continue_all(
                    config,
                    variants,
                    steps.part(0.85, 1.0),
                    on_text,
                    lambda made: keep(replace(result, generations=made)),
                )
        steps.at(1.0, "Done")
        return replace(result, generations=generations)

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
        progress: ProgressSink | None = None,
        cancel: CancelToken | None = None,
        on_text: OnText | None = None,
        on_generations: OnGenerations | None = None,
    ) -> list[Generation]:
        """Let every variant of a finished run continue another prompt; arguments as in :meth:`run`.

        ``on_generations`` is given those that are judged, after each, and all that is written when stopped.

        Raises:
            GhostlabError: If the model cannot be loaded again or the request exceeds a limit.
        """
        config = replace(
            result.config,
            prompt=prompt,
            prompt_format=prompt_format,
            new_tokens=new_tokens,
            temperature=temperature,
            top_p=top_p,
            seed=seed,
        )
        check(config, self.settings)
        steps = Progress(progress, cancel)
        with memory_errors("Lower new_tokens or shorten the prompt."):
            model = self._bench.model(config, steps.part(0.0, 0.1))
            variants = rebuild(model, result)
            return continue_all(config, variants, steps.part(0.1, 1.0), on_text, on_generations)

    def probe(
        self,
        result: RunResult,
        label: str,
        *asked: Alteration,
        progress: ProgressSink | None = None,
        cancel: CancelToken | None = None,
        on_text: OnText | None = None,
    ) -> list[Probe]:
        """Measure altered copies of a recovery's maps; see :func:`ghostlab.lab.probe.probe`."""
        return probe(self._bench, result, label, asked, progress=Progress(progress, cancel), on_text=on_text)

    def export(
        self,
        result: RunResult,
        label: str,
        folder: str | Path,
        *,
        form: Form = "recovered",
        progress: ProgressSink | None = None,
        cancel: CancelToken | None = None,
    ) -> Path:
        """Write a variant of a finished run to a folder; see :func:`ghostlab.lab.export.export`."""
        return export(self._bench, result, label, folder, form=form, progress=Progress(progress, cancel))

    def stock_reason(self, result: RunResult, label: str) -> str | None:
        """Why a recovery cannot be exported as ``stock``, in one sentence; ``None`` if it can."""
        return reason_not_stock(self._bench, result, label, SILENT)

    def evaluate(
        self,
        source: RunResult | Sequence[str],
        tasks: str | Sequence[str],
        *,
        limit: int | None = None,
        hub: bool = False,
        progress: ProgressSink | None = None,
        cancel: CancelToken | None = None,
    ) -> ZeroShot:
        """Let every variant of a finished run, or models that are named, answer zero-shot tasks.

        Raises:
            GhostlabError: If a model cannot be loaded or a task cannot be asked; see
                :func:`ghostlab.lab.zeroshot.answer`, also for the other arguments.
        """
        return answer(self._bench, source, tasks, limit=limit, hub=hub, progress=Progress(progress, cancel))

    def atlas(
        self,
        config: RunConfig,
        lengths: Sequence[int] = DEFAULT_LENGTHS,
        *,
        progress: ProgressSink | None = None,
        cancel: CancelToken | None = None,
    ) -> Atlas:
        """Survey every block of so many layers; ``config`` names model and calibration text.

        Raises:
            GhostlabError: As :meth:`run`; a CutError if a length does not fit the model.
        """
        check(config, self.settings)
        return survey(self._bench, config, lengths, Progress(progress, cancel))

    def score(
        self,
        config: RunConfig,
        *,
        progress: ProgressSink | None = None,
        cancel: CancelToken | None = None,
    ) -> SelectionInfo:
        """Scores of the criterion that ``config`` selects, and the blocks that it would drop.

        Raises a ConfigError if it selects none, and as :meth:`run`.
        """
        check(config, self.settings)
        return score(self._bench, config, Progress(progress, cancel))

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


def run(
    config: RunConfig,
    *,
    progress: ProgressSink | None = None,
    cancel: CancelToken | None = None,
    settings: Settings | None = None,
) -> RunResult:
    """Run a configuration in a lab of its own; see :meth:`Lab.run`."""
    return Lab(settings).run(config, progress=progress, cancel=cancel)
