"""ShortGPT: the layers with the lowest Block Influence, wherever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostlab.cut import Block, Cut
from ghostlab.pruning.base import Criterion, Scores, lowest

if TYPE_CHECKING:
    from ghostlab.calibration.calibrate import Calibration
    from ghostlab.progress import Progress


def score(calib: Calibration, count: int, progress: Progress) -> Scores:
    """BI_l = 1 - E_t cos(x_l, x_{l+1}) for every layer, first and last included."""
    cosine = calib.similarity(progress).mean_cosine()
    layers = range(calib.model.depth)
    values = tuple(1 - float(cosine[layer, layer + 1]) for layer in layers)
    blocks = tuple(Block(layer, layer + 1) for layer in layers)
    cut = Cut.of_layers(lowest(values, count))
    return Scores(blocks, values, "cosine per token, averaged over tokens", cut)


CRITERION = Criterion(
    name="shortgpt",
    title="ShortGPT (Block Influence)",
    summary="Drops the layers that turn their input the least, wherever they are.",
    formula=r"\mathrm{BI}_l = 1 - \mathbb{E}_t \cos(x_{l,t},\, x_{l+1,t})",
    source="ShortGPT (2403.03853)",
    score=score,
)
