"""The tabs, in the order they are shown. A new tab is one file, or a list of figures, and one line here."""

from __future__ import annotations

from ghostlab.plots.catalog import LIKELIHOOD, STATE
from ghostlab.ui.tabs import generate, panels, spectrum, tasks
from ghostlab.ui.tabs.atlas import view as atlas
from ghostlab.ui.tabs.compare import view as compare
from ghostlab.ui.tabs.operator import view as operator
from ghostlab.ui.tabs.overview import view as overview
from ghostlab.ui.tabs.view import Build

TABS: dict[str, Build] = {
    "Overview": overview.build,
    "Boundary error": lambda page: panels.build(page, "boundary", STATE, by_block=True, whole=True),
    "Operator": operator.build,
    "Spectrum & rank": spectrum.build,
    "Generate": generate.build,
    "Perplexity": lambda page: panels.build(page, "perplexity", LIKELIHOOD),
    "Tasks": tasks.build,
    "Compare": compare.build,
    "Block map": atlas.build,
}
