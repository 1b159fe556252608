"""The tabs in their order: each lays itself out and wires itself. A new tab is one line here."""

from __future__ import annotations

from collections.abc import Callable

from ghostlab.plots.catalog import LIKELIHOOD, STATE
from ghostlab.ui.page import Page, Tab
from ghostlab.ui.tabs import generate, panels, spectrum, tasks
from ghostlab.ui.tabs.atlas import handlers as atlas
from ghostlab.ui.tabs.compare import handlers as compare
from ghostlab.ui.tabs.operator import view as operator
from ghostlab.ui.tabs.overview import view as overview

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
