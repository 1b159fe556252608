"""The tabs, one file each, in the order they are shown. A new tab is one file and one line here."""

from __future__ import annotations

from ghostlab.ui.tabs import boundary, generate, perplexity, spectrum, tasks
from ghostlab.ui.tabs.atlas import view as atlas
from ghostlab.ui.tabs.compare import view as compare
from ghostlab.ui.tabs.operator import view as operator
from ghostlab.ui.tabs.overview import view as overview
from ghostlab.ui.tabs.view import Build

TABS: dict[str, Build] = {
    "Overview": overview.build,
    "Boundary error": boundary.build,
    "Operator": operator.build,
    "Spectrum & rank": spectrum.build,
    "Generate": generate.build,
    "Perplexity": perplexity.build,
    "Tasks": tasks.build,
    "Compare": compare.build,
    "Block map": atlas.build,
}
