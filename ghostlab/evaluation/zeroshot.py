"""Zero-shot tasks on models in memory, by lm-evaluation-harness and its own task definitions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ghostlab.errors import ConfigError, TaskError
from ghostlab.evaluation.tasks import check_limit, load_tasks, quiet_harness, require_harness
from ghostlab.model.model import Model
from ghostlab.progress import SILENT, Progress
from ghostlab.results.zeroshot import Accuracy, ZeroShot, parse_tasks

if TYPE_CHECKING:
    from lm_eval.api.task import ConfigurableTask

Metrics = dict[str, dict[str, Accuracy]]
"""``acc`` and ``acc_norm`` -> task -> accuracy."""


def evaluate(
    variants: Model | Mapping[str, Model],
    tasks: str | Sequence[str],
    *,
    limit: int | None = None,
    hub: bool = False,
    progress: Progress = SILENT,
) -> ZeroShot:
    """Let models answer zero-shot tasks.

    Variants that were cut from one model of the mapping are read together with it: each context once, and of
    each variant only what lies after its first change.

    Args:
        variants: Models by name; the first is what the others are compared with. A single model is called
            ``original``.
        tasks: Names of tasks or suites (:data:`ghostlab.results.zeroshot.SUITES`), a list or with commas.
        limit: Only the first so many documents of each task.
        hub: Fetch all data from the hub, in the papers' splits, instead of the installed data.

    Raises:
        TaskError: If lm-evaluation-harness is missing or a task cannot be evaluated.
        ConfigError: If no model or task is given, or the limit is not positive.
    """
    models = {"original": variants} if isinstance(variants, Model) else dict(variants)
    if not models:
        raise ConfigError("No model is given.", "Give at least one.")
    names, begun = parse_tasks(tasks), time.perf_counter()
    check_limit(limit)
    require_harness()
    progress.at(0.0, "Reading tasks")
    loaded, infos, left_out = load_tasks(names, limit=limit, hub=hub)
    found: dict[str, Metrics] = {}
    families = _families(models)
    for number, family in enumerate(families):
        part = progress.part(number / len(families), (number + 1) / len(families))
        found |= _answer(family, loaded, limit, part)
    return ZeroShot(
        model=next(iter(models.values())).name,
        variants=list(models),
        tasks=infos,
        acc={name: found[name]["acc"] for name in models},
        acc_norm={name: found[name]["acc_norm"] for name in models},
        limit=limit,
        left_out=left_out,
        seconds=round(time.perf_counter() - begun, 1),
        versions={name: version(name) for name in ("lm_eval", "torch", "transformers")},
    )


def _families(models: Mapping[str, Model]) -> list[dict[str, Model]]:
    """Models in groups of an original and the variants that share its weights; others stand alone."""
    families: list[dict[str, Model]] = []
    for name, model in models.items():
        home = next((f for f in families if _made_from(model, next(iter(f.values())))), None)
        if home is None:
            families.append({name: model})
        else:
            home[name] = model
    return families


def _made_from(model: Model, original: Model) -> bool:
    """Whether ``model`` is a variant of ``original``: cut out of it, around the same tensors."""
    ours, theirs = (m.hf.get_input_embeddings().weight for m in (model, original))
    return model.cut is not None and original.cut is None and ours is theirs


def _answer(
    family: Mapping[str, Model], tasks: Mapping[str, ConfigurableTask], limit: int | None, progress: Progress
) -> dict[str, Metrics]:
    """Metrics of an original and its variants."""
    from lm_eval.evaluator import evaluate as judge

    from ghostlab.evaluation.harness import Answerer

    original, *others = family.values()
    found = {}
    with quiet_harness():
        answerer = Answerer(original, others, progress)
        for number, name in enumerate(family):
            answerer.current = number
            outcome = judge(answerer, {"tasks": dict(tasks), "groups": {}}, limit=limit)
            found[name] = _metrics(outcome, tasks)
    return found


def _metrics(outcome: Mapping[str, Any], tasks: Mapping[str, Any]) -> Metrics:
    """The harness's figures, with each document's own."""
    metrics: Metrics = {"acc": {}, "acc_norm": {}}
    for task in tasks:
        figures, samples = outcome["results"][task], outcome["samples"][task]
        if "acc,none" not in figures:
            raise TaskError(f"{task} has no accuracy.", "Choose multiple-choice tasks.")
        for which, table in metrics.items():
            if f"{which},none" in figures:
                correct = [int(sample[which]) for sample in samples]
                stderr = figures[f"{which}_stderr,none"]
                table[task] = Accuracy(
                    float(figures[f"{which},none"]),
                    0.0 if isinstance(stderr, str) else float(stderr),  # "N/A" for a single document
                    correct,
                )
    return metrics
