"""HTML from templates: whatever is put into one is escaped, unless a template made it."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

TEMPLATES = Environment(
    loader=PackageLoader("ghostlab", ""),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
"""All templates of the package; their names are paths below it: ``ui/templates/page.html``."""


def macro(template: str, name: str, *values: Any) -> Markup:
    """The HTML that a macro of a template makes of ``values``."""
    return Markup(getattr(TEMPLATES.get_template(template).module, name)(*values))
