"""What both reports share: a page that holds everything itself, and figures as the JSON they are drawn from.

plotly.js is in it once, and a figure is drawn when scrolled to; a content security policy forbids any
request, and colours follow the reader's light or dark theme. Whatever a template is given is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

from ghostlab.plots import style, tokens
from ghostlab.plots.catalog import FIGURES
from ghostlab.plots.formats import unbroken
from ghostlab.plots.html import TEMPLATES, macro

_HERE = "report/templates"
_CSS = Path(__file__).parent / "templates" / "page.css"


def document(template: str, **values: Any) -> str:
    """A whole page by one of the templates beside this file."""
    return TEMPLATES.get_template(f"{_HERE}/{template}").render(
        values,
        style=_trusted(_CSS, tokens.CSS),
        scripts=_trusted(style.MODEBAR, tokens.SCRIPT),
        plotly=Markup(get_plotlyjs()),
        explanations=FIGURES,
        draw=_drawing(),
    )


def _trusted(*files: Path) -> Markup:
    """Files of this package as they are."""
    return Markup("\n".join(path.read_text(encoding="utf-8") for path in files))


def _drawing() -> Callable[[go.Figure], Markup]:
    """Puts figures into one page: a box of the figure's height and the JSON that it is drawn from."""
    numbers = count()

    def draw(figure: go.Figure) -> Markup:
        data = str(figure.to_json()).replace("<", "\\u003c")
        return macro(f"{_HERE}/parts.html", "figure", next(numbers), figure.layout.height, Markup(data))

    return draw


def _marks(markdown: str) -> Markup:
    """The two marks that explanations use: ``*emphasis*`` and code."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(markdown)))
    return Markup(re.sub(r"\*([^*]+)\*", r"<i>\1</i>", text))


TEMPLATES.filters.update(marks=_marks, unbroken=unbroken)
