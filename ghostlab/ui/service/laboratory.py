"""What the app asks of whoever computes; a test may give it something lighter than the real one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ghostlab.config import PromptFormat, RunConfig
from ghostlab.progress import CancelToken, ProgressSink
from ghostlab.results.atlas import Atlas
from ghostlab.results.generation import Generation, OnGenerations, OnText
from ghostlab.results.probe import Alteration, Probe
from ghostlab.results.records import SelectionInfo
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import ZeroShot


class Laboratory(Protocol):
    """What the app needs of :class:`ghostlab.lab.lab.Lab`."""

    def run(
        self,
        config: RunConfig,
        *,
        progress: ProgressSink | None = None,
        cancel: CancelToken | None = None,
        on_result: Callable[[RunResult], None] | None = None,
        on_text: OnText | None = None,
    ) -> RunResult:
        """The whole road from a configuration to a result."""

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
    ) -> Sequence[Generation]:
        """Continue a prompt with every variant of a result."""

    def atlas(
        self,
        config: RunConfig,
        lengths: Sequence[int],
        *,
        progress: ProgressSink | None = None,
        cancel: CancelToken | None = None,
    ) -> Atlas:
        """Figures of every block of so many layers."""

    def score(
        self,
        config: RunConfig,
        *,
        progress: ProgressSink | None = None,
        cancel: CancelToken | None = None,
    ) -> SelectionInfo:
        """Scores of the criterion that a configuration selects."""

    def evaluate(
        self,
        source: RunResult,
        tasks: Sequence[str],
        *,
        limit: int | None = None,
        hub: bool = False,
        progress: ProgressSink | None = None,
        cancel: CancelToken | None = None,
    ) -> ZeroShot:
        """Let every variant of a result answer zero-shot tasks."""

    def probe(
        self,
        result: RunResult,
        label: str,
        *asked: Alteration,
        progress: ProgressSink | None = None,
        cancel: CancelToken | None = None,
        on_text: OnText | None = None,
    ) -> Sequence[Probe]:
        """Measure altered copies of a recovery's maps."""
