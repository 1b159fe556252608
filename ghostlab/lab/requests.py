"""Requests to a lab, one frozen class per kind, and the listeners of the work; no torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Generic, Literal, TypedDict, TypeVar

from ghostlab import checks
from ghostlab.config import RunConfig
from ghostlab.progress import CancelToken, Progress, ProgressSink
from ghostlab.pruning.registry import resolve as resolve_criterion
from ghostlab.recovery.registry import resolve
from ghostlab.results.atlas import DEFAULT_LENGTHS, Atlas
from ghostlab.results.generation import Generation, OnGenerations, OnText
from ghostlab.results.probe import Alteration, Probe
from ghostlab.results.records import SelectionInfo
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import ZeroShot
from ghostlab.settings import Settings

Answer = TypeVar("Answer")
OnResult = Callable[[RunResult], None]
ExportForm = Literal["recovered", "stock", "mergekit"]


def check(config: RunConfig, settings: Settings) -> None:
    """Raise a GhostlabError for everything that can be refused before anything is loaded."""
    checks.check(config, settings)
    resolve(config.recover, config.rank, config.ridge)
    if config.select is not None:
        resolve_criterion(config.select)


class Listeners(TypedDict, total=False):
    """The fields of :class:`Work` as keyword arguments."""

    progress: ProgressSink | None
    cancel: CancelToken | None
    on_result: OnResult | None
    on_text: OnText | None
    on_generations: OnGenerations | None


@dataclass(frozen=True)
class Work:
    """Who listens to a piece of work, and what may stop it.

    Attributes:
        progress: Given how far it is.
        cancel: Stops it within one batch or one token.
        on_result: Given the result of a run as soon as everything is measured, before anything is generated,
            and again with each continuation that is judged, or with what is written when it is stopped.
        on_text: Given each continuation as it grows.
        on_generations: Given the continuations that are judged, after each, and all that is written when
            stopped.
    """

    progress: ProgressSink | None = None
    cancel: CancelToken | None = None
    on_result: OnResult | None = None
    on_text: OnText | None = None
    on_generations: OnGenerations | None = None

    @property
    def steps(self) -> Progress:
        """Progress and cancellation as the loops of the library take them."""
        return Progress(self.progress, self.cancel)

    @property
    def callbacks(self) -> dict[str, Callable[..., None]]:
        """Whoever listens, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "cancel"}
        return {name: value for name, value in values.items() if value is not None}

    def part(self, low: float, high: float) -> Work:
        """The same work as the part from ``low`` to ``high`` of a longer one."""
        part = Progress(self.progress).part(low, high)
        return replace(self, progress=lambda update: part.at(update.fraction, update.message))


@dataclass(frozen=True)
class Request(Generic[Answer]):
    """Something to be computed, plain data all the way down except for operators; gives an ``Answer``."""


@dataclass(frozen=True)
class RunRequest(Request[RunResult]):
    """The whole pipeline from a configuration to a result."""

    config: RunConfig


@dataclass(frozen=True)
class GenerateRequest(Request[list[Generation]]):
    """Let every variant of a finished run continue the prompt of ``result.config``."""

    result: RunResult


@dataclass(frozen=True)
class ProbeRequest(Request[list[Probe]]):
    """Measure altered copies of a recovery's maps, all in one pass over the run's held-out windows.

    The maps, which the run must hold, are altered the same way in each block. A single alteration also
    continues the run's prompt.
    """

    result: RunResult
    label: str
    alterations: tuple[Alteration, ...]


@dataclass(frozen=True)
class AtlasRequest(Request[Atlas]):
    """Figures of every block of so many consecutive layers; of ``config`` the cut and the recoveries are
    not used."""

    config: RunConfig
    lengths: tuple[int, ...] = DEFAULT_LENGTHS


@dataclass(frozen=True)
class ScoreRequest(Request[SelectionInfo]):
    """How the criterion that a configuration selects scores every candidate."""

    config: RunConfig


@dataclass(frozen=True)
class EvaluateRequest(Request[ZeroShot]):
    """Zero-shot tasks for every variant of a finished run, or for models by their names.

    Attributes:
        tasks: Names of tasks or suites, a list or with commas.
        limit: Only the first so many documents of each task.
        hub: Fetch all data from the hub, in the papers' splits, instead of the installed data.
    """

    source: RunResult | Sequence[str]
    tasks: str | Sequence[str]
    limit: int | None = None
    hub: bool = False


@dataclass(frozen=True)
class ExportRequest(Request[Path]):
    """Write one variant of a finished run to a new or empty folder, whole or not at all.

    Attributes:
        result: The run; with its operators, unless the export is of a plain drop.
        label: ``pruned``, a recovery's label, or a method's name if only one recovery is of that method.
        form: ``recovered`` (operators beside the weights), ``stock`` (an ordinary checkpoint, where that is
            exact) or ``mergekit`` (a recipe; plain drops only).
    """

    result: RunResult
    label: str
    folder: str | Path
    form: ExportForm = "recovered"
