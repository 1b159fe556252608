"""The page's pieces of HTML, from ``templates/page.html``: header, source line, progress, cards, columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ghostlab.jobs.record import JobView
from ghostlab.plots import html, tokens
from ghostlab.results.generation import Generation
from ghostlab.results.run import RunResult


def piece(name: str, *values: Any) -> str:
    """What a macro of the template makes of these values."""
    return str(html.macro("ui/templates/page.html", name, *values))


@dataclass(frozen=True)
class Card:
    """One headline number; ``colour`` is that of its variant."""

    title: str
    value: str
    note: str = ""
    colour: str = ""


@dataclass(frozen=True)
class Column:
    """What one variant makes of a prompt.

    Attributes:
        generation: The finished continuation.
        text: What is written so far where it is not finished; ``None`` before it has begun.
        note: Stands beside the name.
    """

    name: str
    colour: str
    prompt: str
    generation: Generation | None
    text: str | None = None
    note: str = ""


def source(result: RunResult | None, example: bool, kind: str = "run") -> str:
    """Which run is shown: its kind and its exact configuration."""
    if result is None:
        return piece("source", "No run yet", ["Press Run."], False)
    config, text = result.config, result.text
    windows = text.held_out_tokens // text.length
    facts = [
        result.model.name,
        result.cut.description,
        f"fitted on {config.sequences} × {config.length} tokens of {text.calibration}",
        f"evaluated on {windows} × {text.length} held-out tokens of {text.held_out}",
        f"seed {config.seed}",
    ]
    chip = "Example run" if example else "From a file" if kind == "file" else "Your run"
    return piece("source", chip, facts, example)


def progress(view: JobView[object] | None, *, again: bool = False) -> str:
    """What a job is doing, how far it is and how long is left; nothing when there is no job.

    ``again`` is for a second place on the same page, which a screen reader need not announce.
    """
    if view is None or view.kind == "file":
        return ""
    percent = None if view.finished else 100 * min(max(view.fraction, 0.0), 1.0)
    return piece("progress", view.state, *_progress_text(view), percent, again)


def _progress_text(view: JobView[object]) -> tuple[str, list[str]]:
    took = duration(view.elapsed)
    if view.state == "waiting":
        ahead = view.position  # one computes, position - 1 wait before this one
        return "Waiting for the machine", [f"{ahead} {'run is' if ahead == 1 else 'runs are'} ahead"]
    if view.state == "done":
        return f"Done in {took}", []
    if view.state == "failed":
        return f"Failed: {view.error}", []
    if view.state == "stopped":
        rest = "Finished parts are kept." if view.result else "The result below is the earlier one."
        return (f"Stopped after {took}" if view.elapsed else "Stopped before it began"), [rest]
    what = "Stopping after this step" if view.stopping else (view.message or "Starting")
    left = "estimating time left"
    if view.remaining is not None:
        left = "a few seconds left" if view.remaining < 5 else f"about {duration(view.remaining)} left"
    return what, [f"{view.fraction * 100:.0f} %", f"{took} so far", left]


def warnings(result: RunResult) -> str:
    """Everything the run warns of, each once; nothing when there is nothing."""
    return piece("warnings", list(dict.fromkeys(result.all_warnings())))


def columns(items: Sequence[Column], *, live: bool = False, busy: bool = False) -> str:
    """Continuations side by side, and what the marks in them mean.

    Args:
        live: Whether a screen reader announces changes.
        busy: Whether text is still coming.
    """
    chat = any(item.generation.prompt_format == "chat" for item in items if item.generation)
    entries = [
        {
            **vars(item),
            "chat": item.generation.prompt_format == "chat" if item.generation else chat,
            "facts": _facts(item.generation),
            "body": tokens.marked(item.generation) if item.generation else item.text,
        }
        for item in items
    ]
    legend = tokens.legend() if any(item.generation.written for item in items if item.generation) else ""
    nothing = "reading the prompt" if busy else "nothing generated yet"
    return piece("columns", entries, legend, nothing, live, busy)


def _facts(generation: Generation | None) -> list[str]:
    """How a finished continuation went: how fast, and where it left the original's path."""
    facts = (tokens.departure, tokens.timing, tokens.reuse)
    return [words for fact in facts if generation and (words := fact(generation))]


def duration(seconds: float) -> str:
    """``0.8 s``, ``42 s``, ``3 min 20 s``, ``1 h 05 min``."""
    if seconds < 1:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
