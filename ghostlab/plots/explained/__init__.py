"""What each figure shows, for someone who sees it for the first time: one paragraph, formula, reference.

``FIGURES`` maps the id of a figure to its explanation; an id is the name of the function that draws it, or of
its sentence. The title is that of the figure everywhere.
"""

from ghostlab.plots.explained import likelihood, maps, state
from ghostlab.plots.explained.base import Explanation

__all__ = ["FIGURES", "Explanation", "title"]
FIGURES: dict[str, Explanation] = {**likelihood.FIGURES, **state.FIGURES, **maps.FIGURES}


def title(figure: str) -> str:
    """The heading of a figure."""
    return FIGURES[figure].title
