"""Put zero-shot tasks to the variants of a finished run, or to models that are named."""

from __future__ import annotations

from collections.abc import Sequence

from ghostlab.errors import memory_errors
from ghostlab.evaluation.tasks import require_harness
from ghostlab.evaluation.zeroshot import evaluate
from ghostlab.lab.run import load_any, rebuild
from ghostlab.lab.session import Workbench
from ghostlab.progress import Progress
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import ZeroShot


def answer(
    bench: Workbench,
    source: RunResult | Sequence[str],
    tasks: str | Sequence[str],
    *,
    limit: int | None,
    hub: bool,
    progress: Progress,
) -> ZeroShot:
    """Evaluate every variant of a run, or every model of a list of names.

    Args:
        bench: Holds the run's model, or loads it.
        source: The run, or names of models.
        tasks, limit, hub, progress: As for :func:`ghostlab.evaluation.zeroshot.evaluate`.

    Raises:
        GhostlabError: If a model cannot be loaded or a task cannot be asked.
    """
    require_harness()
    with memory_errors("Choose a smaller model."):
        if isinstance(source, RunResult):
            model = bench.model(source.config, progress.part(0.0, 0.05))
            models = rebuild(model, source)
        else:
            models = {name: load_any(name, bench.settings, progress.part(0.0, 0.05)) for name in source}
        return evaluate(models, tasks, limit=limit, hub=hub, progress=progress.part(0.05, 1.0))
