"""The report of a run: every figure with its sentence and explanation, every text, what was fitted where."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import count as numbers_from
from pathlib import Path

from ghostlab.plots import catalog, sentences, tokens
from ghostlab.plots.figures import insight, tasks
from ghostlab.plots.figures.likelihood import variants
from ghostlab.plots.formats import count, number, percent
from ghostlab.report import page
from ghostlab.results.generation import Generation
from ghostlab.results.operator import Excitement
from ghostlab.results.records import Metric, RecoveryRun, Scores
from ghostlab.results.run import RunResult

_SCORES = (
    ("variant", ""),
    ("perplexity", ""),
    ("bits per byte", ""),
    ("KL to original", "nats per token"),
    ("top-1 agreement", "with original"),
)
_RECOVERIES = (
    ("recovery", ""),
    ("gap closed", "of log-likelihood"),
    ("explained", "held-out tokens (fitted on)"),
    ("relative error", "held-out tokens (ordinary)"),
    ("ridge", ""),
    ("parameters added", ""),
)


def write_report(result: RunResult, path: Path) -> Path:
    """Write the report of ``result`` to ``path``, whole or not at all; missing folders are made."""
    return page.write(render(result), path)


def render(result: RunResult) -> str:
    """The report as one HTML document."""
    parts = [
        _warnings(result),
        page.section("Figures at a glance", _tables(result)),
        *_figures(result),
        _generations(result),
        page.section("Ordinary checkpoints", page.facts(_stock(result))),
        page.section("What was fitted and evaluated on what", page.facts(_setup(result))),
        page.section("Run it again", f"<pre>{escape(result.config.to_command())}</pre>"),
        page.section("Versions and timings", page.facts(_circumstances(result))),
    ]
    title = f"{result.model.name}: {result.cut.description}"
    footer = f"Run {result.config.key}" + (f", {result.created}" if result.created else "")
    return page.document("Ghostlab report", title, page.words(sentences.perplexity(result)), parts, footer)


def _warnings(result: RunResult) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in result.all_warnings())
    return f'<ul class="warnings">{items}</ul>' if items else ""


# -- the table -------------------------------------------------------------------------------------------


def _tables(result: RunResult) -> str:
    rows = variants(result)
    scores = page.table(_SCORES, [[escape(role.name), *_score_cells(each)] for role, each in rows])
    fitted = [(role, each) for role, each in rows if isinstance(each, RecoveryRun)]
    if not fitted:
        return scores
    return scores + page.table(_RECOVERIES, [[escape(role.name), *_fit_cells(run)] for role, run in fitted])


def _score_cells(scores: Scores | RecoveryRun) -> list[str]:
    metrics = (scores.perplexity, scores.bits_per_byte, scores.kl)
    return [*map(_metric, metrics), _metric(scores.top1_agreement, share=True)]


def _metric(metric: Metric, share: bool = False) -> str:
    value, low, high = map(percent if share else number, (metric.value, metric.low, metric.high))
    return f"{value}<small>{low} to {high}</small>"


def _fit_cells(run: RecoveryRun) -> list[str]:
    state = run.boundary
    return [
        percent(run.gap_closed),
        f"{percent(state.explained)}<small>{percent(state.explained_train)}</small>",
        f"{percent(state.relative_error)}<small>{percent(state.relative_error_ordinary)}</small>",
        number(run.ridge),
        count(run.parameters_added),
    ]


# -- figures and texts -----------------------------------------------------------------------------------


def _figures(result: RunResult) -> list[str]:
    numbers = numbers_from()
    return [
        page.section(section.title, page.panels(_panel(panel, numbers) for panel in section.panels))
        for section in catalog.sections(result)
    ]


def _panel(panel: catalog.Panel, numbers: Iterator[int]) -> str:
    drawn = "".join(page.figure(figure, next(numbers)) for figure in panel.figures)
    body = [page.what_is_this(panel.name), f'<div class="figures">{drawn}</div>', _directions(panel)]
    if panel.answers is not None:
        body += [_accuracy(panel)]
    body += [_spoken(panel)]
    wide = len(panel.figures) > 1 or panel.answers is not None or bool(panel.probes)
    return page.article(panel.title, panel.sentence, "".join(body), wide=wide)


def _directions(panel: catalog.Panel) -> str:
    items = "".join(f"<li>{insight.told(one, _quoted)}</li>" for one in panel.directions)
    return f'<ol class="told">{items}</ol>' if items else ""


def _quoted(token: Excitement) -> str:
    mark = " (massive)" if token.massive else ""
    return f"<q>{escape(token.before)}<b>{escape(token.token)}</b></q>{mark}"


def _accuracy(panel: catalog.Panel) -> str:
    """Accuracy of every variant in every task, and what was asked."""
    found = panel.answers
    if found is None:
        return ""
    head, *rows = (list(map(escape, row)) for row in tasks.table(found))
    asked = "; ".join(map(tasks.about, found.tasks))
    return (
        page.table([(title, "") for title in head], rows)
        + f'<p class="note">{escape(tasks.LEGEND)}</p><p class="note">Asked: {escape(asked)}.</p>'
    )


def _spoken(panel: catalog.Panel) -> str:
    """What altered maps made of a prompt."""
    spoken = [probe for probe in panel.probes if probe.generation is not None]
    texts = [_text(p.alteration.name, p.generation, p.prompt) for p in spoken if p.generation is not None]
    return page.panels(texts) if texts else ""


def _generations(result: RunResult) -> str:
    if not result.generations:
        return ""
    put = ", as a chat message" if result.generations[0].prompt_format == "chat" else ""
    prompt = f"<p>Prompt{put}</p><blockquote>{escape(result.config.prompt)}</blockquote>"
    judged = any(made.written for made in result.generations)
    says = f'<p class="says">{escape(tokens.sentence(result.generations))}</p>{tokens.legend()}' * judged
    told = page.what_is_this("generated")
    texts = page.panels(_text(made.variant, made) for made in result.generations)
    return page.section("Generated text", f"{prompt}{told}{says}{texts}")


def _text(title: str, made: Generation, prompt: str = "") -> str:
    """A continuation, token by token; after its prompt where that is not told elsewhere."""
    says = "; ".join(filter(None, (tokens.departure(made), tokens.timing(made))))
    asked = f"<p>{escape(prompt)}</p>" if prompt else ""
    return page.article(title, says, f"{asked}<blockquote>{tokens.marked(made)}</blockquote>")


def _stock(result: RunResult) -> dict[str, str]:
    """Recoveries -> the command that writes them as ordinary checkpoints, or why none can."""
    return {
        ", ".join(each.names): f"no: {each.reason}" if each.reason else each.command
        for each in sentences.stock(result)
    }


def _setup(result: RunResult) -> dict[str, str]:
    model, text, cut = result.model, result.text, result.cut
    share = model.parameters_dropped / model.parameters if model.parameters else 0.0
    kept = ", ".join(f"{low}:{high}" for low, high in cut.keep_ranges)
    facts = {
        "Model": f"{model.name} ({model.family}), {model.layers} layers, "
        f"{count(model.hidden_size)} channels, {count(model.parameters)} parameters, "
        f"{model.dtype} on {model.device}",
        "Cut": f"{cut.description}; {count(model.parameters_dropped)} parameters dropped ({percent(share)}); "
        f"kept {kept}",
        "Fitted on": f"{text.calibration}: {count(text.calibration_tokens)} tokens, folds: {text.folds}",
        "Evaluated on": f"{text.held_out}: {count(text.held_out_tokens)} tokens",
        "Windows": _sentence(text.windows),
        "Licence of the text": text.licence,
        "Intervals": "95 %, bootstrap over evaluation windows",
        "Note": model.note,
    }
    if result.selection is not None:
        facts["Chosen by"] = f"{result.selection.criterion} ({result.selection.convention})"
    return {name: value for name, value in facts.items() if value}


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "."


def _circumstances(result: RunResult) -> dict[str, str]:
    times = {f"Time to {name}": f"{number(seconds)} s" for name, seconds in result.timings.items()}
    return {**result.versions, **times}
