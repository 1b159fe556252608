"""One HTML file that tells a whole run: opens without a network, follows the reader's light or dark theme.

Everything is inside: plotly.js once, the figures as JSON that is drawn when scrolled to, and a content
security policy that forbids any request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from ghostlab.plots import catalog, sentences, style, tokens
from ghostlab.plots.formats import count, number, percent, unbroken
from ghostlab.plots.perplexity import variants
from ghostlab.records import Metric, RecoveryRun, Scores
from ghostlab.results import RunResult

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
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    partial.write_text(render(result), encoding="utf-8")
    partial.replace(path)
    return path


def render(result: RunResult) -> str:
    """The report as one HTML document."""
    parts = [
        _warnings(result),
        _section("Figures at a glance", _tables(result)),
        *_figures(result),
        _generations(result),
        _section("Ordinary checkpoints", _facts(_stock(result))),
        _section("What was fitted and evaluated on what", _facts(_setup(result))),
        _section("Run it again", f"<pre>{escape(result.config.to_command())}</pre>"),
        _section("Versions and timings", _facts(_circumstances(result))),
    ]
    return _resource("report.html").substitute(
        title=escape(f"{result.model.name}: {result.cut.description}"),
        lead=_words(sentences.perplexity(result)),
        style=files("ghostlab").joinpath("report.css").read_text(encoding="utf-8")
        + tokens.CSS.read_text(encoding="utf-8"),
        body="\n".join(part for part in parts if part),
        footer=escape(f"Run {result.config.key}" + (f", {result.created}" if result.created else "")),
        plotly=get_plotlyjs(),
        scripts="\n".join(path.read_text(encoding="utf-8") for path in (style.MODEBAR, tokens.SCRIPT)),
    )


def _resource(name: str) -> Template:
    return Template(files("ghostlab").joinpath(name).read_text(encoding="utf-8"))


def _words(sentence: str) -> str:
    """A sentence as HTML, no per-cent sign parted from its number."""
    return escape(unbroken(sentence))


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def _warnings(result: RunResult) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in result.all_warnings())
    return f'<ul class="warnings">{items}</ul>' if items else ""


def _facts(facts: Mapping[str, str]) -> str:
    """A list of terms; nothing if there are none."""
    if not facts:
        return ""
    return "<dl>" + "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items()) + "</dl>"


# -- the table -------------------------------------------------------------------------------------------


def _tables(result: RunResult) -> str:
    rows = variants(result)
    scores = _table(_SCORES, [[escape(role.name), *_score_cells(each)] for role, each in rows])
    fitted = [(role, each) for role, each in rows if isinstance(each, RecoveryRun)]
    if not fitted:
        return scores
    return scores + _table(_RECOVERIES, [[escape(role.name), *_fit_cells(run)] for role, run in fitted])


def _table(columns: Iterable[tuple[str, str]], rows: Iterable[list[str]]) -> str:
    """A table from cells that are HTML already; the first of a row names it."""
    heads = "".join(f'<th scope="col">{title}<small>{unit}</small></th>' for title, unit in columns)
    lines = "".join(
        f'<tr><th scope="row">{name}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        for name, *cells in rows
    )
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>'


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
    numbers = iter(range(10_000))
    return [
        _section(
            section.title,
            f'<div class="panels">{"".join(_panel(panel, numbers) for panel in section.panels)}</div>',
        )
        for section in catalog.sections(result)
    ]


def _panel(panel: catalog.Panel, numbers: Iterable[int]) -> str:
    drawn = "".join(_figure(figure, number_) for figure, number_ in zip(panel.figures, numbers, strict=False))
    kind = ' class="pair"' if len(panel.figures) > 1 else ""
    words = f'<h3>{escape(panel.title)}</h3><p class="says">{_words(panel.sentence)}</p>'
    return f'<article{kind}>{words}<div class="figures">{drawn}</div></article>'


def _figure(figure: go.Figure, index: int) -> str:
    """A box of the figure's height and, beside it, the JSON that it is drawn from."""
    data = str(figure.to_json()).replace("<", "\\u003c")
    box = f'<div class="figure" data-figure="figure-{index}" style="height:{figure.layout.height}px"></div>'
    return f'{box}<script type="application/json" id="figure-{index}">{data}</script>'


def _generations(result: RunResult) -> str:
    if not result.generations:
        return ""
    put = ", as a chat message" if result.generations[0].prompt_format == "chat" else ""
    prompt = f"<p>Prompt{put}</p><blockquote>{escape(result.config.prompt)}</blockquote>"
    judged = any(made.written for made in result.generations)
    says = f'<p class="says">{escape(tokens.sentence(result.generations))}</p>{tokens.legend()}' * judged
    texts = "".join(
        f"<article><h3>{escape(made.variant)}</h3>"
        f'<p class="says">{escape("; ".join(filter(None, (tokens.standing(made), tokens.timing(made)))))}</p>'
        f"<blockquote>{tokens.marked(made)}</blockquote></article>"
        for made in result.generations
    )
    return _section("Generated text", f'{prompt}{says}<div class="panels">{texts}</div>')


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
