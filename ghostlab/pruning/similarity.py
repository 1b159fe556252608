"""Criteria that compare the states at two boundaries: ShortGPT, LLM-Streamline, angular distance.

They differ in what is compared: the two sides of one layer, or of a contiguous block of the requested length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ghostlab.pruning.base import (
    Calibration,
    Criterion,
    CriterionScores,
    Option,
    Options,
    Progress,
    score_blocks,
    score_layers,
)

if TYPE_CHECKING:
    from ghostlab.calibration.similarity import Convention

AVERAGED = {
    "token": "{} per token, averaged over tokens",
    "last": "{} of the last token of each window, averaged over windows",
    "flat": "one {} of the states of all tokens taken together",
}
"""How a similarity is averaged, by convention."""


def shortgpt(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """BI_l = 1 - E_t cos(x_l, x_{l+1}) for every layer, first and last included."""
    values = _one_minus_cosine(calib, 1, options, progress)
    return score_layers(values, count, _in_words(options, "cosine"))


def streamline(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """1 - mean cosine between boundaries s and s + count, for every start s, the last included."""
    values = _one_minus_cosine(calib, count, options, progress)
    return score_blocks(values, count, _in_words(options, "cosine"))


def angular(calib: Calibration, count: int, options: Options, progress: Progress) -> CriterionScores:
    """Mean of arccos(cos(x_s, x_{s+count})) / pi, for every start s, the last included."""
    angle = calib.similarity(progress).angle(_convention(options))
    return score_blocks(angle.diagonal(offset=count).tolist(), count, _in_words(options, "angle"))


def _one_minus_cosine(calib: Calibration, apart: int, options: Options, progress: Progress) -> list[float]:
    """Between all boundaries that are so many layers apart."""
    cosine = calib.similarity(progress).cosine(_convention(options))
    values: list[float] = (1 - cosine.diagonal(offset=apart)).tolist()
    return values


def _convention(options: Options) -> Convention:
    return cast("Convention", options["convention"])


def _in_words(options: Options, what: str) -> str:
    return AVERAGED[options["convention"]].format(what)


def _conventions(default: Convention) -> dict[str, Option]:
    words = "tokens that are compared: each, the last of each window, or all as one"
    return {"convention": Option(words, tuple(AVERAGED), default)}


STREAMLINE = Criterion(
    name="streamline",
    title="LLM-Streamline",
    summary="Drops the contiguous block whose input and output states are most alike.",
    formula=r"1 - \mathbb{E}_t \cos(x_{s,t},\, x_{s+n,t})",
    unit="block",
    reads="states at all boundaries",
    cost="1 forward",
    source="LLM-Streamline (2403.19135)",
    score=streamline,
    options=_conventions("token"),
)

SHORTGPT = Criterion(
    name="shortgpt",
    title="ShortGPT (Block Influence)",
    summary="Drops the layers that turn their input the least, wherever they are.",
    formula=r"\mathrm{BI}_l = 1 - \mathbb{E}_t \cos(x_{l,t},\, x_{l+1,t})",
    unit="layer",
    reads="states at all boundaries",
    cost="1 forward",
    source="ShortGPT (2403.03853)",
    score=shortgpt,
    options=_conventions("token"),
)

ANGULAR = Criterion(
    name="angular",
    title="Angular distance",
    summary="Drops the contiguous block that turns the last token's state by the smallest angle.",
    formula=r"\mathbb{E}\, \tfrac{1}{\pi} \arccos \cos(x_{s,T},\, x_{s+n,T})",
    unit="block",
    reads="states at all boundaries",
    cost="1 forward",
    source="The Unreasonable Ineffectiveness of the Deeper Layers (2403.17887)",
    score=angular,
    options=_conventions("last"),
)
