"""The parts of a result: plain frozen records, each one JSON object.

Layer and boundary indices are 0-based; errors are shares or ratios (no unit); likelihoods are in nats.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from ghostlab.results.operator import OperatorReport


@dataclass(frozen=True)
class Metric:
    """A figure measured on held-out text with its 95 % bootstrap interval over evaluation windows."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class MetricInfo:
    """What every table, the report and Compare say of a metric of :class:`Scores`.

    Attributes:
        label: Its name, as inside a sentence.
        short: The same as the head of a column.
        unit: What it is measured in.
        share: Whether it is shown in percent.
        windows: The list of :class:`Agreement` with its mean in each window, for paired comparisons.
        name: The field.
    """

    label: str
    short: str
    unit: str = ""
    share: bool = False
    windows: str = ""
    name: str = ""


def _about(*about: Any, **more: Any) -> dict[str, MetricInfo]:
    return {"about": MetricInfo(*about, **more)}


@dataclass(frozen=True)
class TokenClass:
    """Means over the predicted tokens of one kind, such as ``digit``; see :class:`Agreement`."""

    name: str
    tokens: int
    kl: float
    top1_agreement: float
    top5_agreement: float
    shift: Metric


@dataclass(frozen=True)
class Agreement:
    """How a model's predictions differ from the original's, by window, position and kind of token.

    Attributes:
        top5_agreement: share of tokens for which the original's favourite is among this model's five.
        shift: mean of log p(this) - log p(original) of the token that came, in nats; negative for worse.
        window_kl, window_top1, window_top5: means of each window, in order: for paired comparisons.
        position_kl, position_shift: means by position in the window.
    """

    top5_agreement: Metric
    shift: Metric
    window_kl: list[float]
    window_top1: list[float]
    window_top5: list[float]
    position_kl: list[float]
    position_shift: list[float]
    classes: list[TokenClass] = field(default_factory=list)


@dataclass(frozen=True)
class Scores:
    """How a model does on the held-out windows.

    Attributes:
        perplexity: exp of the mean negative log-likelihood per predicted token.
        bits_per_byte: the same likelihood per byte of text, comparable across tokenizers.
        kl: mean KL(original || this) per token, in nats; 0 for the original.
        top1_agreement: share of tokens whose most likely next token is the original's.
        window_nll: mean negative log-likelihood of each window, in order: for paired comparisons.
        position_nll: the same by position in the window, averaged over windows.
    """

    perplexity: Metric = field(metadata=_about("perplexity", "perplexity"))
    bits_per_byte: Metric = field(metadata=_about("bits per byte", "bits/byte"))
    kl: Metric = field(metadata=_about("KL to the original", "KL", "nats per token", windows="window_kl"))
    top1_agreement: Metric = field(
        metadata=_about("top-1 agreement", "top-1", "with the original", share=True, windows="window_top1")
    )
    window_nll: list[float]
    position_nll: list[float]
    agreement: Agreement | None = None


METRICS = tuple(replace(f.metadata["about"], name=f.name) for f in fields(Scores) if f.metadata)
"""The fields of :class:`Scores` that are figures with an interval, in the order in which they are shown."""


@dataclass(frozen=True)
class BoundaryReport:
    """How well a recovery restores the state that the first surviving block receives.

    ``explained`` is 1 - ||Y' - Y||^2 / ||Y - X||^2 with X the state before the block, Y the state after
    it and Y' the recovered one: 0 for plain dropping, 1 for perfect. ``relative_error`` is
    ||Y' - Y|| / ||Y||.
    *Ordinary* leaves out tokens with massive activations. Held-out unless the name says ``train``.
    """

    explained: float
    explained_train: float | None
    relative_error: float
    relative_error_ordinary: float
    explained_ordinary: float
    channel_error: list[float] = field(default_factory=list)
    position_error: list[float] = field(default_factory=list)
    position_error_ordinary: list[float | None] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class RecoveryRun(Scores):
    """One recovery: how it was fitted, how the model does with it, and what it brought back.

    Attributes:
        ridge: The ridge of every block; ``None`` without one, or where blocks differ.
        ridges: The ridge of each block, in order.
        gap_closed: (NLL of pruned - NLL of this) / (NLL of pruned - NLL of original): 1 when all is back.
        not_stock: Why it cannot be an ordinary checkpoint; empty if nothing but a measurement at export could
            speak against it.
    """

    method: str
    rank: int | None
    ridge: float | None
    parameters_added: int
    boundary: BoundaryReport
    label: str
    gap_closed: float = 0.0
    ridges: list[float | None] = field(default_factory=list)
    blocks: list[BoundaryReport] = field(default_factory=list)
    operators: list[OperatorReport] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    not_stock: str = ""


@dataclass(frozen=True)
class Baseline:
    """The two models every recovery lies between, on the same windows."""

    original: Scores
    pruned: Scores


@dataclass(frozen=True)
class ModelInfo:
    """The original model; ``parameters_dropped`` counts what the cut removes."""

    name: str
    family: str
    layers: int
    hidden_size: int
    parameters: int
    parameters_dropped: int
    dtype: str
    device: str
    note: str = ""


@dataclass(frozen=True)
class CutInfo:
    """The cut; ``blocks`` half-open, ``keep_ranges`` as mergekit writes them."""

    blocks: list[tuple[int, int]]
    dropped: list[int]
    keep_ranges: list[tuple[int, int]]
    description: str


@dataclass(frozen=True)
class SelectionInfo:
    """How a criterion chose the cut. ``scores[i]`` belongs to ``labels[i]``; the lowest is dropped first."""

    criterion: str
    convention: str
    labels: list[str]
    scores: list[float]
    chosen: str
