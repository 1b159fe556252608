"""Put zero-shot tasks to the variants of a finished run, or to models that are named."""

from __future__ import annotations

from ghostlab.errors import memory_errors
from ghostlab.evaluation.tasks import require_harness
from ghostlab.evaluation.zeroshot import evaluate
from ghostlab.lab.requests import EvaluateRequest
from ghostlab.lab.run import load_any, rebuild
from ghostlab.lab.session import Workbench
from ghostlab.progress import Progress
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import ZeroShot


def answer(bench: Workbench, request: EvaluateRequest, progress: Progress) -> ZeroShot:
    """Evaluate every variant of a run, or every model of a list of names.

    Raises:
        GhostlabError: If a model cannot be loaded or a task cannot be asked.
    """
    require_harness()
    source = request.source
    with memory_errors("Choose a smaller model."):
        if isinstance(source, RunResult):
            model = bench.model(source.config, progress.part(0.0, 0.05))
            models = rebuild(model, source)
        else:
            models = {name: load_any(name, bench.settings, progress.part(0.0, 0.05)) for name in source}
        return evaluate(
            models, request.tasks, limit=request.limit, hub=request.hub, progress=progress.part(0.05, 1.0)
        )
