"""Reverse order: the last layers go."""

from ghostlab.pruning.base import Calibration, Criterion, CriterionScores, Options, Progress, score_layers


def score(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """L - 1 - l for every layer l."""
    depth = calib.model.depth
    return score_layers([float(depth - 1 - layer) for layer in range(depth)], count, "position from the end")


CRITERION = Criterion(
    name="reverse_order",
    title="Reverse order",
    summary="Drops the last layers.",
    formula=r"L - 1 - l",
    unit="layer",
    reads="nothing",
    cost="none",
    source="Navigating layer pruning (Navigation-LLM-layer-pruning)",
    score=score,
)
