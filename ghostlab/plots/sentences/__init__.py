"""One sentence per figure that says what this result shows, computed from its numbers.

Plain text, one function per figure under the figure's name; never boilerplate and never an exception.
"""

from ghostlab.plots.sentences.kinds import by_kind
from ghostlab.plots.sentences.operators import (
    cumulative_energy,
    eigenvalues,
    energy_split,
    heat_map,
    rank_curve,
    singular_values,
    symmetry_cost,
)
from ghostlab.plots.sentences.probes import (
    directions,
    parts,
    rank_at,
    rank_expected,
    ranks,
    state_plane,
    strengths,
)
from ghostlab.plots.sentences.scores import (
    by_position,
    channel_error,
    explained,
    gap_closed,
    perplexity,
    position_error,
    relative_error,
    selection,
)
from ghostlab.plots.sentences.stock import stock
from ghostlab.plots.sentences.tasks import tasks
from ghostlab.plots.sentences.windows import verdict, window_differences, window_distribution

__all__ = [
    "by_kind",
    "by_position",
    "channel_error",
    "cumulative_energy",
    "directions",
    "eigenvalues",
    "energy_split",
    "explained",
    "gap_closed",
    "heat_map",
    "parts",
    "perplexity",
    "position_error",
    "rank_at",
    "rank_curve",
    "rank_expected",
    "ranks",
    "relative_error",
    "selection",
    "singular_values",
    "state_plane",
    "stock",
    "strengths",
    "symmetry_cost",
    "tasks",
    "verdict",
    "window_differences",
    "window_distribution",
]
