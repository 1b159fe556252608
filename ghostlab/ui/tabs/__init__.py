"""The tabs in their order: each lays itself out and wires itself. A new tab is a file here and one line."""

from __future__ import annotations

from collections.abc import Callable

from ghostlab.plots.catalog import LIKELIHOOD, STATE
from ghostlab.ui.page import Page, Tab
from ghostlab.ui.tabs import atlas, compare, generate, operator, overview, panels, spectrum, tasks

TABS: dict[str, Callable[[Page], Tab]] = {
    "Overview": overview.build,
    "Boundary error": lambda page: panels.build(page, "boundary", STATE, by_block=True, whole=True),
    "Operator": operator.build,
    "Spectrum & rank": spectrum.build,
    "Generate": generate.build,
    "Perplexity": lambda page: panels.build(page, "perplexity", LIKELIHOOD),
    "Tasks": tasks.build,
    "Compare": compare.build,
    "Atlas": atlas.build,
}
