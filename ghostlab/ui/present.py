"""Small pieces of HTML: header, source line, progress, cards, generated columns. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from ghostlab.jobs.record import JobView
from ghostlab.plots import style, tokens
from ghostlab.results.generation import Generation
from ghostlab.results.run import RunResult
from ghostlab.ui import theme

_LOGO = (
    '<svg viewBox="0 0 32 32" aria-hidden="true"><path d="M16 3C9.9 3 6 7.6 6 13.5V28l3.6-2.6L12.8 28l3.2-2.6'
    'L19.2 28l3.2-2.6L26 28V13.5C26 7.6 22.1 3 16 3z"/><circle cx="12.4" cy="13" r="1.9"/>'
    '<circle cx="19.6" cy="13" r="1.9"/></svg>'
)


def header() -> str:
    """Name of the app and one sentence on what it is."""
    return f'<div class="gl-brand">{_LOGO}<div><h1>Ghostlab</h1><p>{theme.DESCRIPTION}</p></div></div>'


def notice(sentence: str) -> str:
    """A sentence the user should see before anything else; nothing for an empty one."""
    return f'<p class="gl-notice" role="alert">{escape(sentence)}</p>' if sentence else ""


def variants(result: RunResult) -> list[str]:
    """Names of the columns: original, pruned, then each recovery."""
    return ["original", "pruned", *(run.label or run.method for run in result.runs)]


def source(result: RunResult | None, example: bool, kind: str = "run") -> str:
    """Which run is shown: its kind and its exact configuration."""
    if result is None:
        return '<div class="gl-source"><span class="gl-chip">No run yet</span> Press <b>Run</b>.</div>'
    config, text = result.config, result.text
    facts = [
        result.model.name,
        result.cut.description,
        f"fitted on {config.sequences} \N{MULTIPLICATION SIGN} {config.length} tokens of {text.calibration}",
        f"shown on {text.held_out_tokens // text.length} \N{MULTIPLICATION SIGN} {text.length} "
        f"held-out tokens of {text.held_out}",
        f"seed {config.seed}",
    ]
    chip = '<span class="gl-chip gl-chip-example">Example run</span>' if example else ""
    chip = chip or f'<span class="gl-chip">{"From a file" if kind == "file" else "Your run"}</span>'
    line = " \N{MIDDLE DOT} ".join(map(escape, facts))
    return f'<div class="gl-source">{chip}<span>{line}</span></div>'


def progress(view: JobView[object] | None, *, again: bool = False) -> str:
    """What a job is doing, how far it is and how long is left; nothing when there is no job.

    ``again`` is for a second place on the same page, which a screen reader need not announce.
    """
    if view is None or view.kind == "file":
        return ""
    share = min(max(view.fraction, 0.0), 1.0)
    bar = (
        '<div class="gl-bar" role="progressbar" aria-label="Progress of the run" aria-valuemin="0" '
        f'aria-valuemax="100" aria-valuenow="{share * 100:.0f}"><i style="width:{share * 100:.1f}%"></i>'
        "</div>"
    )
    what, facts = _describe(view)
    tail = "".join(f"<span>{escape(fact)}</span>" for fact in facts)
    told = "" if again else ' role="status"'
    return (
        f'<div class="gl-progress gl-{view.state}"{told}>'
        f'<div class="gl-progress-line"><b>{escape(what)}</b>{tail}</div>{"" if view.finished else bar}</div>'
    )


def _describe(view: JobView[object]) -> tuple[str, list[str]]:
    took = duration(view.elapsed)
    if view.state == "waiting":
        ahead = view.position  # one computes, position - 1 wait before this one
        return "Waiting for the machine", [f"{ahead} {'run is' if ahead == 1 else 'runs are'} ahead"]
    if view.state == "done":
        return f"Done in {took}", []
    if view.state == "failed":
        return f"Failed: {view.error}", []
    if view.state == "stopped":
        kept = "What was finished is kept." if view.result else "The result below is the earlier one."
        return (f"Stopped after {took}" if view.elapsed else "Stopped before it began"), [kept]
    what = "Stopping after this step" if view.stopping else (view.message or "Starting")
    left = "estimating time left" if view.remaining is None else _left(view.remaining)
    return what, [f"{view.fraction * 100:.0f} %", f"{took} so far", left]


def _left(seconds: float) -> str:
    return "a few seconds left" if seconds < 5 else f"about {duration(seconds)} left"


def card(title: str, value: str, note: str = "", colour: str = "") -> str:
    """One headline number; ``colour`` is that of its variant."""
    return (
        f'<div class="gl-card"{_tone(colour)}><span class="gl-card-title">{escape(title)}</span>'
        f'<span class="gl-card-value">{escape(value)}</span>'
        f'<span class="gl-card-note">{escape(note)}</span></div>'
    )


def _tone(colour: str) -> str:
    return f' style="--gl-tone:{escape(colour)}"' if colour else ""


def cards(items: Sequence[str]) -> str:
    """Cards side by side, wrapping on a narrow screen."""
    return f'<div class="gl-cards">{"".join(items)}</div>'


def _note(notes: Mapping[str, str] | None, name: str) -> str:
    return f"<small>{escape(notes[name])}</small>" if notes and name in notes else ""


def columns(
    names: Sequence[str],
    prompt: str,
    made: Mapping[str, Generation],
    texts: Mapping[str, str],
    *,
    busy: bool = False,
    notes: Mapping[str, str] | None = None,
) -> str:
    """What each variant makes of the same prompt, side by side, and what the marks in it mean.

    Args:
        names: Variants in order.
        prompt: The prompt as it was typed.
        made: Variant -> its finished continuation.
        texts: Variant -> text so far, of those that are not finished; a missing one has not begun.
        busy: Whether text is still coming.
        notes: Variant -> what stands beside its name.
    """
    nothing = "reading the prompt" if busy else "nothing generated yet"
    chat = any(one.prompt_format == "chat" for one in made.values())
    blocks = []
    for name, colour in zip(names, style.colours(len(names)), strict=False):
        written = tokens.marked(made[name]) if name in made else escape(texts.get(name, ""))
        body = f'<span class="gl-empty">{nothing}</span>'
        if name in made or name in texts:
            body = f'<span class="gl-prompt{" gl-asked" * chat}">{escape(prompt)}</span>{written}'
        blocks.append(_column(name, colour, f"{_note(notes, name)}{_facts(made.get(name))}", body))
    state = ' aria-busy="true"' if busy else ""
    legend = tokens.legend() if any(one.written for one in made.values()) else ""
    return f'{legend}<div class="gl-columns" aria-live="polite"{state}>{"".join(blocks)}</div>'


def pair(named: Sequence[tuple[str, str, str, Generation | None]]) -> str:
    """Two texts side by side: name, colour, prompt and continuation of each."""
    blocks = []
    for name, colour, prompt, made in named:
        body = '<span class="gl-empty">nothing generated</span>'
        if made is not None:
            asked = " gl-asked" * (made.prompt_format == "chat")
            body = f'<span class="gl-prompt{asked}">{escape(prompt)}</span>{tokens.marked(made)}'
        blocks.append(_column(name, colour, _facts(made), body))
    legend = tokens.legend() if any(made is not None and made.written for *_, made in named) else ""
    return f'{legend}<div class="gl-columns">{"".join(blocks)}</div>'


def _column(name: str, colour: str, facts: str, body: str) -> str:
    return (
        f'<article class="gl-column"{_tone(colour)} aria-label="{escape(name)}">'
        f"<header><b>{escape(name)}</b>{facts}</header><p>{body}</p></article>"
    )


def _facts(made: Generation | None) -> str:
    """How a finished continuation went: how fast, and where it left the original's path."""
    if made is None:
        return ""
    facts = filter(None, (tokens.departure(made), tokens.timing(made), tokens.reuse(made)))
    return "".join(f"<span>{escape(fact)}</span>" for fact in facts)


def told(lines: Sequence[str]) -> str:
    """Lines of words beside a figure; those without a colon are headings."""
    kinds = ("" if ": " in line else ' class="gl-head"' for line in lines)
    parts = (f"<p{kind}>{escape(line)}</p>" for kind, line in zip(kinds, lines, strict=True))
    return f'<div class="gl-told" aria-live="polite">{"".join(parts)}</div>'


def warnings(result: RunResult) -> str:
    """Everything the run warns of, each once; nothing when there is nothing."""
    found = result.all_warnings()
    items = "".join(f"<li>{escape(text)}</li>" for text in dict.fromkeys(found))
    return f'<ul class="gl-warnings" aria-label="Warnings">{items}</ul>' if items else ""


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


def footer(version: str, profile: str) -> str:
    """Version, and where data stays."""
    place = "this server" if profile == "public" else "this machine"
    return f'<p class="gl-foot">Ghostlab {escape(version)}. Everything is computed on {place}.</p>'
