"""What a tab offers the app: components, and how a result becomes their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradio.components import Component

from ghostlab.results.run import RunResult


@dataclass(frozen=True)
class Outputs:
    """Components and the function that gives their values, in the same order."""

    components: Sequence[Component] = ()
    render: Callable[[RunResult], list[Any]] = field(default=lambda _: [])


@dataclass(frozen=True)
class Tab:
    """A built tab.

    Attributes:
        figures: What depends on the measured figures alone: sent once per run.
        words: What may change when only the generated text does.
        controls: Components that the app itself wires, by name.
        parts: The same for a tab that has a record of its own for them.
    """

    figures: Outputs
    words: Outputs = field(default_factory=Outputs)
    controls: Mapping[str, Component] = field(default_factory=dict)
    parts: Any = None


def named(tabs: Iterable[Tab], prefix: str) -> list[Component]:
    """Controls of tabs whose name begins so: each starts a job, stops it, or tells how it goes."""
    controls = [item for tab in tabs for item in tab.controls.items()]
    return [component for name, component in controls if name.startswith(prefix)]


@dataclass(frozen=True)
class Page:
    """What tabs with controls of their own need.

    Attributes:
        shown: Holds the id of the shown result.
        result: Finds the result by it.
        hub: Whether this host reads from the hub.
    """

    shown: Component
    result: Callable[[str], RunResult]
    hub: bool = True


Build = Callable[[Page], Tab]
