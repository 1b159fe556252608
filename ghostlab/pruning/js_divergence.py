"""Jensen-Shannon divergence: the layers whose removal changes the next-token distributions the least."""

from ghostlab.pruning.base import (
    Calibration,
    Criterion,
    CriterionScores,
    Options,
    Progress,
    score_layers,
    windows_option,
)


def score(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """Mean JS(p || p without layer l) over predicted tokens, in nats, for every l."""
    import torch

    from ghostlab.model.likelihood import js_sums
    from ghostlab.pruning.ablation import predicted, steps

    windows, depth = int(options["windows"]), calib.model.depth
    sums = torch.zeros(depth, dtype=torch.float64)
    for batch, step in steps(calib, windows, progress):
        layers = step.part(0.0, 0.5).each(range(depth), "Dropping each layer in turn")
        finals = [batch.without(layer) for layer in layers]
        for found in js_sums(batch.decoder, batch.final(), finals):
            step.at(0.5, "Comparing next-token distributions")
            sums += found
    tokens = predicted(calib, windows)
    values = (sums / tokens).tolist()
    return score_layers(values, count, f"JS in nats per token, over {tokens:,} calibration tokens")


CRITERION = Criterion(
    name="js_divergence",
    title="Jensen-Shannon divergence",
    summary="Drops the layers without which, each alone, next-token distributions change the least.",
    formula=r"\mathbb{E}_t\, \mathrm{JS}\bigl(p_t,\, p_{\setminus l,\, t}\bigr)",
    unit="layer",
    reads="calibration text",
    cost="1 + L/2 forward",
    source="JS-divergence layer ranking (2409.11233)",
    score=score,
    options={"windows": windows_option(8)},
)
