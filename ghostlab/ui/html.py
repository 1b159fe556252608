"""The page's pieces of HTML, from ``templates/page.html``: header, source line, progress, cards, columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from ghostlab.jobs.record import JobView
from ghostlab.plots import html, tokens
from ghostlab.results.generation import Generation
from ghostlab.results.run import RunResult

DESCRIPTION = (
    "Drop layers of a language model, fit the linear map that stands in for them, "
    "and see what was lost, what came back and why."
)
"""What the page is, for its visitors and for search engines."""


def _html(name: str, *values: Any) -> str:
    return str(html.macro("ui/templates/page.html", name, *values))


@dataclass(frozen=True)
class Row:
    """A job in the list of a page's jobs.

    Attributes:
        job: Its id.
        state: One of :data:`ghostlab.jobs.record.State`.
        status: The same for people.
        about: What it is.
        act: What its button does, ``open`` or ``stop``; empty for no button.
    """

    job: str
    state: str
    status: str
    about: str
    act: str = ""


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
        name, colour: Of the variant.
        prompt: As it was typed.
        made: The finished continuation.
        text: What is written so far where it is not finished; ``None`` before it has begun.
        note: Stands beside the name.
    """

    name: str
    colour: str
    prompt: str
    made: Generation | None
    text: str | None = None
    note: str = ""


def header() -> str:
    """Name of the app and one sentence on what it is."""
    return _html("header", DESCRIPTION)


def head(title: str, scripts: Sequence[str]) -> str:
    """What stands in the page's head: what the page is, and scripts of this package."""
    return _html("head", title, DESCRIPTION, [Markup(script) for script in scripts])


def tour(steps: str) -> str:
    """The button that starts the tour; ``steps`` are its steps as JSON."""
    return _html("tour", steps)


def notice(sentence: str) -> str:
    """A sentence the user should see before anything else; nothing for an empty one."""
    return _html("notice", sentence)


def footer(version: str, profile: str) -> str:
    """Version, and where data stays."""
    return _html("footer", version, "this server" if profile == "public" else "this machine")


def source(result: RunResult | None, example: bool, kind: str = "run") -> str:
    """Which run is shown: its kind and its exact configuration."""
    if result is None:
        return _html("source", "No run yet", ["Press Run."], False)
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
    return _html("source", chip, facts, example)


def progress(view: JobView[object] | None, *, again: bool = False) -> str:
    """What a job is doing, how far it is and how long is left; nothing when there is no job.

    ``again`` is for a second place on the same page, which a screen reader need not announce.
    """
    if view is None or view.kind == "file":
        return ""
    what, facts = _progress_text(view)
    percent = None if view.finished else 100 * min(max(view.fraction, 0.0), 1.0)
    return _html("progress", view.state, what, facts, percent, again)


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
        kept = "Finished parts are kept." if view.result else "The result below is the earlier one."
        return (f"Stopped after {took}" if view.elapsed else "Stopped before it began"), [kept]
    what = "Stopping after this step" if view.stopping else (view.message or "Starting")
    left = "estimating time left"
    if view.remaining is not None:
        left = "a few seconds left" if view.remaining < 5 else f"about {duration(view.remaining)} left"
    return what, [f"{view.fraction * 100:.0f} %", f"{took} so far", left]


def queue(rows: Sequence[Row]) -> str:
    """The list of a page's jobs; nothing without any."""
    return _html("queue", rows)


def cards(items: Sequence[Card]) -> str:
    """Cards side by side, wrapping on a narrow screen."""
    return _html("cards", items)


def warnings(result: RunResult) -> str:
    """Everything the run warns of, each once; nothing when there is nothing."""
    return _html("warnings", list(dict.fromkeys(result.all_warnings())))


def columns(items: Sequence[Column], *, live: bool = False, busy: bool = False) -> str:
    """Continuations side by side, and what the marks in them mean.

    Args:
        items: In order.
        live: Whether a screen reader announces changes.
        busy: Whether text is still coming.
    """
    chat = any(item.made.prompt_format == "chat" for item in items if item.made)
    drawn = [
        {
            **vars(item),
            "chat": item.made.prompt_format == "chat" if item.made else chat,
            "facts": _facts(item.made),
            "body": tokens.marked(item.made) if item.made else item.text,
        }
        for item in items
    ]
    legend = tokens.legend() if any(item.made.written for item in items if item.made) else ""
    nothing = "reading the prompt" if busy else "nothing generated yet"
    return _html("columns", drawn, legend, nothing, live, busy)


def _facts(made: Generation | None) -> list[str]:
    """How a finished continuation went: how fast, and where it left the original's path."""
    facts = (tokens.departure(made), tokens.timing(made), tokens.reuse(made)) if made else ()
    return [fact for fact in facts if fact]


def facts(lines: Sequence[str]) -> str:
    """Lines beside a figure; those without a colon are headings."""
    return _html("facts", lines)


def differences(one: str, other: str, rows: Sequence[tuple[str, str, str]]) -> str:
    """A table of the settings in which two runs differ: label, and the value of each."""
    return _html("differences", ["Setting", one, other], rows)


def no_differences(sentence: str) -> str:
    """Why there is no such table."""
    return _html("no_differences", sentence)


def picker(facts: Mapping[str, tuple[str, str]]) -> str:
    """The empty block picker; ``facts`` are name -> title and help of each line below it."""
    return _html("picker", facts)


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
