"""What reports are made of: the page that holds everything itself, sections, tables, figures, explanations.

plotly.js is in it once, the figures as JSON that is drawn when scrolled to; a content security policy forbids
any request, and colours follow the reader's light or dark theme.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from ghostlab.plots import explained, style, tokens
from ghostlab.plots.formats import unbroken
from ghostlab.storage import write_text

_HERE = Path(__file__).parent


def write(page: str, path: Path) -> Path:
    """Write a page to ``path``, whole or not at all; missing folders are made."""
    return write_text(path, page)


def document(kicker: str, title: str, lead: str, parts: Iterable[str], footer: str) -> str:
    """A whole page; ``parts`` and ``lead`` are HTML already, empty parts are left out."""
    return Template(_read(_HERE / "page.html")).substitute(
        kicker=escape(kicker),
        title=escape(title),
        lead=lead,
        style=_read(_HERE / "page.css") + _read(tokens.CSS),
        body="\n".join(part for part in parts if part),
        footer=escape(footer),
        plotly=get_plotlyjs(),
        scripts="\n".join(map(_read, (style.MODEBAR, tokens.SCRIPT))),
    )


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def words(sentence: str) -> str:
    """A sentence as HTML, no per-cent sign parted from its number."""
    return escape(unbroken(sentence))


def section(title: str, body: str) -> str:
    """A section with its heading; nothing without a body."""
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def facts(named: Mapping[str, str]) -> str:
    """Names and what they stand for; nothing if there are none."""
    if not named:
        return ""
    return "<dl>" + "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in named.items()) + "</dl>"


def table(columns: Iterable[tuple[str, str]], rows: Iterable[Sequence[str]]) -> str:
    """A table from cells that are HTML already; the first of a row names it, a column has title and unit."""
    heads = "".join(f'<th scope="col">{title}<small>{unit}</small></th>' for title, unit in columns)
    lines = "".join(
        f'<tr><th scope="row">{name}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        for name, *cells in rows
    )
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>'


def what_is_this(name: str) -> str:
    """The explanation of a figure of :data:`~ghostlab.plots.explained.FIGURES`, folded."""
    told = explained.FIGURES[name]
    formula = f'<pre class="formula" aria-label="Formula, in LaTeX">{escape(told.formula)}</pre>'
    source = f"<p><i>Reference:</i> {_inline(told.reference)}.</p>"
    return f"<details><summary>What is this?</summary><p>{_inline(told.words)}</p>{formula}{source}</details>"


def _inline(markdown: str) -> str:
    """The two marks that explanations use: ``*emphasis*`` and code."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(markdown))
    return re.sub(r"\*([^*]+)\*", r"<i>\1</i>", text)


def figure(drawn: go.Figure, index: int) -> str:
    """A box of the figure's height and, beside it, the JSON that it is drawn from."""
    data = str(drawn.to_json()).replace("<", "\\u003c")
    box = f'<div class="figure" data-figure="figure-{index}" style="height:{drawn.layout.height}px"></div>'
    return f'{box}<script type="application/json" id="figure-{index}">{data}</script>'


def article(title: str, sentence: str, body: str, *, wide: bool = False) -> str:
    """One thing that is shown, with its title and its sentence; ``wide`` ones take a row of their own."""
    kind = ' class="pair"' if wide else ""
    says = f'<h3>{escape(title)}</h3><p class="says">{words(sentence)}</p>'
    return f"<article{kind}>{says}{body}</article>"


def panels(articles: Iterable[str]) -> str:
    """Articles side by side where there is room."""
    return f'<div class="panels">{"".join(articles)}</div>'
