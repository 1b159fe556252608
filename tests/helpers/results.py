"""A realistic :class:`RunResult` from seeded random numbers: for the tests of figures, report and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ghostlab.config import RunConfig
from ghostlab.cut import Cut, parse_cut
from ghostlab.results.generation import Generation, Token
from ghostlab.results.operator import (
    Direction,
    Excitement,
    OperatorReport,
    Points,
    RankCurve,
    StatePlane,
    SymmetrySplit,
)
from ghostlab.results.probe import Alteration, Probe
from ghostlab.results.records import (
    Agreement,
    Baseline,
    BoundaryReport,
    CutInfo,
    Metric,
    ModelInfo,
    RecoveryRun,
    Scores,
    SelectionInfo,
    TokenClass,
)
from ghostlab.results.run import RunResult
from ghostlab.results.windows import TextInfo, WindowRule
from ghostlab.spec import RecoverySpec

CHANNELS, TILE, LAYERS, WINDOWS, LENGTH = 96, 2, 30, 16, 256
_CUTS = {1: "20:25", 2: "10:12,20:25", 3: "4:5,10:12,20:25"}
_NLL = {"original": 3.23, "pruned": 6.49}
_PARAMETERS = CHANNELS * CHANNELS
PROMPT = RunConfig.prompt
MULTIPLIES = "The map multiplies the stream."


def make_result(recoveries: Sequence[str] = ("ghost", "affine"), blocks: int = 1, seed: int = 0) -> RunResult:
    """A run of ``recoveries`` over 1 to 3 dropped blocks; the first recovery is the best."""
    return _make(tuple(recoveries), blocks, seed)


@lru_cache(maxsize=16)
def _make(recoveries: tuple[str, ...], blocks: int, seed: int) -> RunResult:
    rng = np.random.default_rng(seed)
    windows = rng.normal(0, 0.25, WINDOWS)
    cut = parse_cut(_CUTS[blocks])
    config = RunConfig(drop=str(cut), recover=tuple(RecoverySpec(name) for name in recoveries), seed=seed)
    original, pruned = (_scores(rng, name, _NLL[name], windows) for name in ("original", "pruned"))
    runs = [_run(rng, name, order, cut, windows) for order, name in enumerate(recoveries)]
    return RunResult(
        config=config,
        model=_model(cut),
        text=_text(),
        cut=CutInfo(
            [(b.start, b.stop) for b in cut],
            list(cut.dropped),
            list(cut.keep_ranges(LAYERS)),
            cut.describe(LAYERS),
        ),
        baseline=Baseline(original, pruned),
        runs=runs,
        timings={"load": 2.1, "calibrate": 31.4, "fit": 1.9, "evaluate": 24.5},
        versions={"ghostlab": "0.1.0", "torch": "2.13.0", "transformers": "5.24.0"},
        generations=_generations(recoveries),
        warnings=["16,384 calibration tokens are few for 96 channels."],
        created="2026-01-02T03:04:05+00:00",
    )


def with_selection(result: RunResult, count: int = 5) -> RunResult:
    """The same run, its block chosen by streamline instead of by hand."""
    starts = range(LAYERS - count + 1)
    scores = [0.02 + 0.001 * (start - 20) ** 2 + 0.6 * (start == 0) for start in starts]
    labels = [f"{start}:{start + count}" for start in starts]
    info = SelectionInfo("streamline", "mean cosine distance per token", labels, scores, "20:25")
    return replace(result, selection=info)


def _metric(value: float, spread: float) -> Metric:
    return Metric(value, value - spread, value + spread)


def _scores(rng: np.random.Generator, name: str, nll: float, windows: np.ndarray) -> Scores:
    window_nll, position_nll = _likelihoods(rng, nll, windows)
    metrics = _metrics(np.asarray(window_nll), 0.0 if name == "original" else nll - _NLL["original"])
    agreement = None if name == "original" else _agreement(nll)
    return Scores(*metrics, window_nll=window_nll, position_nll=position_nll, agreement=agreement)


def _agreement(nll: float) -> Agreement:
    """Losses that grow with the token's difficulty; the one line break says nothing sure."""
    lost = nll - _NLL["original"]
    counts = {"first": WINDOWS, "digit": 90, "word start": 2400, "newline": 1}
    shifts = [Metric(-lost * f, -lost * f - 0.1, -lost * f + 0.1) for f in (0.2, 1.6, 1.0, 0.0)]
    kinds = [
        TokenClass(name, count, 0.9 * lost, 1 / (1 + lost), 1 / (1 + 0.4 * lost), shift)
        for (name, count), shift in zip(counts.items(), shifts, strict=True)
    ]
    ripple = 1 + 0.1 * np.sin(np.arange(WINDOWS))
    top = 1 / (1 + lost)
    return Agreement(
        _metric(1 / (1 + 0.4 * lost), 0.01),
        _metric(-lost, 0.05),
        (lost * ripple).tolist(),
        (top * ripple).tolist(),
        (top * ripple).tolist(),
        [lost] * (LENGTH - 1),
        [-lost] * (LENGTH - 1),
        kinds,
    )


def _likelihoods(
    rng: np.random.Generator, nll: float, windows: np.ndarray
) -> tuple[list[float], list[float]]:
    position = nll + 4 * np.exp(-np.arange(LENGTH - 1) / 12) + rng.normal(0, 0.35, LENGTH - 1)
    values = nll + windows + rng.normal(0, 0.04, WINDOWS)
    return values.tolist(), position.tolist()


def _metrics(window_nll: np.ndarray, lost: float) -> tuple[Metric, Metric, Metric, Metric]:
    draws = np.random.default_rng(1).integers(0, WINDOWS, (400, WINDOWS))
    means = window_nll[draws].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    nll = float(window_nll.mean())
    perplexity = Metric(float(np.exp(nll)), float(np.exp(low)), float(np.exp(high)))
    bits = Metric(nll / 3.1, float(low) / 3.1, float(high) / 3.1)
    agreement = 1.0 if lost == 0 else 1 / (1 + lost)
    return perplexity, bits, _metric(0.9 * lost, 0.03 * lost), _metric(agreement, 0.01 * (lost > 0))


def _run(rng: np.random.Generator, name: str, order: int, cut: Cut, windows: np.ndarray) -> RecoveryRun:
    nll = _NLL["pruned"] if name == "drop" else 4.36 + 0.06 * order
    window_nll, position_nll = _likelihoods(rng, nll, windows)
    perplexity, bits, kl, agreement = _metrics(np.asarray(window_nll), nll - _NLL["original"])
    reports = [_boundary(rng, 0.0 if name == "drop" else 0.62 - 0.03 * order) for _ in cut]
    fitted = [] if name == "drop" else [_operator(rng, (b.start, b.stop), name == "affine") for b in cut]
    return RecoveryRun(
        method=name,
        rank=None,
        ridge=None if name == "drop" else 1e-4,
        parameters_added=(_PARAMETERS + CHANNELS * (name == "affine")) * len(fitted),
        perplexity=perplexity,
        bits_per_byte=bits,
        kl=kl,
        top1_agreement=agreement,
        boundary=reports[0],
        label=name,
        window_nll=window_nll,
        position_nll=position_nll,
        agreement=_agreement(nll),
        gap_closed=(_NLL["pruned"] - nll) / (_NLL["pruned"] - _NLL["original"]),
        blocks=reports,
        operators=fitted,
        not_stock="" if name in {"drop", "mean_shift"} else MULTIPLIES,
    )


def _boundary(rng: np.random.Generator, explained: float) -> BoundaryReport:
    error = 0.38 * (1 - explained) ** 0.5
    left = 1 - explained
    by_position = left + 0.3 * np.exp(-np.arange(LENGTH) / 4) + rng.normal(0, 0.01, LENGTH)
    ordinary: list[float | None] = (by_position * 1.1).tolist()
    ordinary[0] = None
    return BoundaryReport(
        explained=explained,
        explained_train=explained + 0.06,
        relative_error=error,
        relative_error_ordinary=error * 1.15,
        explained_ordinary=explained - 0.07,
        channel_error=(left * np.exp(rng.normal(0, 0.8, CHANNELS))).tolist(),
        position_error=by_position.tolist(),
        position_error_ordinary=ordinary,
    )


def _operator(rng: np.random.Generator, block: tuple[int, int], bias: bool) -> OperatorReport:
    left, right = (np.linalg.qr(rng.normal(size=(CHANNELS, CHANNELS)))[0] for _ in range(2))
    matrix = left * (2.0 * np.arange(1, CHANNELS + 1) ** -0.7) @ right.T - 0.25 * np.eye(CHANNELS)
    matrix[7, 41] += 3.0  # a massive channel
    symmetric, antisymmetric = (matrix + matrix.T) / 2, (matrix - matrix.T) / 2
    total = float(np.sum(matrix**2))
    eigenvalues = np.linalg.eigvals(np.eye(CHANNELS) + matrix)
    singular = np.linalg.svd(matrix, compute_uv=False)
    share = float(np.sum(symmetric**2)) / total
    split = SymmetrySplit(
        frobenius={"symmetric": share, "antisymmetric": 1 - share},
        activation={"symmetric": 0.83, "antisymmetric": 0.41},
        explained=0.62,
        explained_symmetric=0.54,
        relative_error=0.234,
        relative_error_symmetric=0.258,
    )
    return OperatorReport(
        block=block,
        split=split,
        symmetric_map=_tiles(symmetric),
        antisymmetric_map=_tiles(antisymmetric),
        tile=TILE,
        eigenvalues_real=eigenvalues.real.tolist(),
        eigenvalues_imag=eigenvalues.imag.tolist(),
        singular_values=singular.tolist(),
        cumulative_energy=(np.cumsum(singular**2) / np.sum(singular**2)).tolist(),
        truncated_svd=_rank_curve(),
        bias_norm=1.7 if bias else 0.0,
        directions=[_direction(0.7), _direction(0.2)],
        plane=StatePlane((0.31, 0.12), _points(rng, 60, 1.0), _points(rng, 5, 80.0)),
    )


def _direction(share: float) -> Direction:
    tokens = [
        Excitement("at the `old`", " light*house*", 3.2, False),
        Excitement("", "The", -2.9, True),
    ]
    return Direction(share, [(41, 0.6), (7, 0.1)], [(7, 0.8), (3, 0.05)], tokens)


def _points(rng: np.random.Generator, count: int, size: float) -> Points:
    """States whose recovered ones lie half as far from the target as those of dropping."""
    after = rng.normal(0, size, (count, 2))
    gap = rng.normal(0, size, (count, 2))
    named = {"after": after, "before": after + gap, "recovered": after + gap / 2}
    return Points(**{name: [(float(x), float(y)) for x, y in shown] for name, shown in named.items()})


def make_probe(
    alteration: Alteration, perplexity: float, window_nll: Sequence[float], label: str = "ghost"
) -> Probe:
    """What a probe of ``label`` may have measured."""
    merits = (_metric(perplexity, 0.1 * perplexity), _metric(perplexity / 50, 0.02), _metric(0.5, 0.05))
    rank = alteration.rank or CHANNELS
    added = min(2 * CHANNELS * rank, _PARAMETERS)
    said = Generation(label, " so it says", 3, 0.3)
    return Probe(label, alteration, added, *merits, list(window_nll), PROMPT, said)


def _rank_curve() -> RankCurve:
    ranks = [0, 1, 2, 4, 8, 16, 32, 64, CHANNELS]
    reached = 0.62 * (np.asarray(ranks) / CHANNELS) ** 0.3
    return RankCurve(ranks, reached.tolist(), (reached * 1.1).tolist())


def _tiles(matrix: np.ndarray) -> list[list[float]]:
    side = CHANNELS // TILE
    return matrix.reshape(side, TILE, side, TILE).mean(axis=(1, 3)).tolist()


def _model(cut: Cut) -> ModelInfo:
    dropped = 3_540_096 * len(cut.dropped)
    return ModelInfo(
        "SmolLM2-135M-Instruct", "llama", LAYERS, CHANNELS, 134_515_008, dropped, "float32", "cpu"
    )


def _text() -> TextInfo:
    return TextInfo(
        calibration="wikipedia (SQuAD contexts), calibration part",
        held_out="wikipedia (SQuAD contexts), held-out part",
        licence="CC BY-SA 4.0",
        calibration_tokens=64 * LENGTH,
        held_out_tokens=WINDOWS * LENGTH,
        length=LENGTH,
        bos=False,
        folds=8,
        rule=WindowRule(),
        calibration_bos="nowhere",
    )


def _generations(recoveries: tuple[str, ...]) -> list[Generation]:
    texts = {"original": " in 1716 on the rocks of Boston harbour.", "pruned": " the the of of, and the"}
    spoken = {**texts, **{name: f" in a book, says {name}." for name in recoveries}}
    return [_generation(name, text, seed) for seed, (name, text) in enumerate(spoken.items())]


def _generation(name: str, text: str, seed: int) -> Generation:
    rng = np.random.default_rng(seed)
    pieces = [f" {word}" for word in text.split()]
    own = -rng.exponential(1.0, len(pieces))
    lost = np.zeros(len(pieces)) if name == "original" else rng.exponential(2.5, len(pieces))
    leaves = {"original": None, "pruned": 0}.get(name, 1)
    written = [
        Token(piece, float(mine), float(mine - less), " else" if less > 1 else "")
        for piece, mine, less in zip(pieces, own, lost, strict=True)
    ]
    shared = 0 if name == "original" else 20
    return Generation(name, text, len(pieces), 0.8, 0.12, shared, leaves, "raw", written)
