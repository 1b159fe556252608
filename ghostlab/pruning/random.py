"""Random layers: what any other criterion has to beat."""

from ghostlab.pruning.base import (
    Calibration,
    Criterion,
    CriterionScores,
    Option,
    Options,
    Progress,
    score_layers,
)


def score(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """One uniform number per layer, the same for the same seed."""
    import torch

    generator = torch.Generator().manual_seed(int(options["seed"]))
    values = torch.rand(calib.model.depth, generator=generator, dtype=torch.float64).tolist()
    return score_layers(values, count, f"uniform numbers from seed {options['seed']}")


CRITERION = Criterion(
    name="random",
    title="Random layers",
    summary="Drops layers drawn at random: what any criterion has to beat.",
    formula=r"u_l \sim \mathcal{U}(0, 1)",
    unit="layer",
    reads="nothing",
    cost="none",
    source="baseline",
    score=score,
    options={"seed": Option("seed of the draw", default="0", least=0)},
)
