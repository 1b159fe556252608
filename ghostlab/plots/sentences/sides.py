"""Sentences on two recoveries that are compared: each speaks of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ghostlab.plots import style
from ghostlab.plots.formats import count, fold, number, percent, plural
from ghostlab.plots.sentences.kinds import FEW
from ghostlab.plots.tokens import departure
from ghostlab.results.compare import ORIGINAL, Side, same_windows
from ghostlab.results.generation import Generation
from ghostlab.results.operator import OperatorReport
from ghostlab.results.records import Metric

__all__ = [
    "by_kind",
    "channel_error",
    "eigenvalues",
    "energy_split",
    "explained",
    "perplexity",
    "position_error",
    "rank_curve",
    "retained",
    "singular_values",
    "texts",
]

_NEAR = 0.05
"""A rank is good enough if it falls short of the best one by this share of what that explains."""


def perplexity(one: Side, other: Side) -> str:
    """How far both are above the original, or each above its own."""
    ends = [side.run.perplexity.value for side in (one, other)]
    origins = [side.result.baseline.original.perplexity.value for side in (one, other)]
    if not all(math.isfinite(value) and value > 0 for value in (*ends, *origins)):
        return "A perplexity is not a number."
    far = [_far(end / origin) for end, origin in zip(ends, origins, strict=True)]
    if same_windows(one.result, other.result):
        return (
            f"Against the original's {number(origins[0])}, {one.name} ends at {number(ends[0])} ({far[0]}) "
            f"and {other.name} at {number(ends[1])} ({far[1]})."
        )
    return (
        f"{one.name} ends at {number(ends[0])} ({far[0]}) against {number(origins[0])} of its original, "
        f"{other.name} at {number(ends[1])} ({far[1]}) against {number(origins[1])} of its own."
    )


def _far(ratio: float) -> str:
    if ratio >= 2:
        return fold(ratio)
    return f"{percent(ratio - 1)} more" if ratio >= 1 else f"{percent(1 - ratio)} less"


def explained(one: Side, other: Side) -> str:
    """How much of what dropping takes away each restores."""
    ours, theirs = (side.run.boundary for side in (one, other))
    return (
        f"{one.name} restores {percent(ours.explained)} of what dropping takes away and {other.name} "
        f"{percent(theirs.explained)}; on ordinary tokens {percent(ours.explained_ordinary)} and "
        f"{percent(theirs.explained_ordinary)}."
    )


def channel_error(one: Side, other: Side) -> str:
    """What each leaves of the gap in the median channel, and which leaves less in more channels."""
    errors = [style.finite(side.run.boundary.channel_error) for side in (one, other)]
    if not any(errors):
        return "Error per channel was not recorded."
    ours, theirs = (_left(side, each) for side, each in zip((one, other), errors, strict=True))
    text = f"Of the gap in the median channel {one.name} leaves {ours} and {other.name} {theirs}"
    if len(errors[0]) != len(errors[1]):
        return f"{text}."
    wins = int(np.less(errors[0], errors[1]).sum())
    return f"{text}; {one.name} leaves less in {count(wins)} of {count(len(errors[0]))} channels."


def position_error(one: Side, other: Side) -> str:
    """What each leaves of the gap at the first position and at the rest."""
    errors = [side.run.boundary.position_error for side in (one, other)]
    if not any(len(style.finite(each)) > 1 for each in errors):
        return "Error per position was not recorded."
    first, rest = (
        [_left(side, style.finite(each[part])) for side, each in zip((one, other), errors, strict=True)]
        for part in (slice(1), slice(1, None))
    )
    return (
        f"Of the gap at the first position {one.name} leaves {first[0]} and {other.name} {first[1]}; of that "
        f"at the median of the rest, {rest[0]} and {rest[1]}."
    )


def _left(side: Side, errors: Sequence[float]) -> str:
    """What one leaves of the gap, in the middle; plain dropping leaves all, the original none."""
    if errors:
        return percent(float(np.median(errors)))
    return {"drop": "all of it", ORIGINAL: "nothing"}.get(side.run.method, "an unknown share")


def singular_values(one: Side, other: Side) -> str:
    """How far the greatest singular value of each map is above the median one."""
    return _of_maps("The greatest singular value is", one, other, _greatest)


def rank_curve(one: Side, other: Side) -> str:
    """The least rank of each that keeps nearly what its best rank explains."""
    return _of_maps("The least rank within a twentieth of the best is", one, other, _enough)


def _of_maps(begin: str, one: Side, other: Side, tell: Callable[[OperatorReport], str]) -> str:
    """A sentence on the first map of each; one without a map is said to have none."""
    told = {side.name: tell(side.run.operators[0]) for side in (one, other) if side.run.operators}
    known = [f"{text} with {name}" for name, text in told.items() if text]
    if not known:
        return "Neither has a fitted map."
    absent = [side.name for side in (one, other) if not told.get(side.name)]
    return f"{begin} {' and '.join(known)}{f'; {absent[0]} has no fitted map' if absent else ''}."


def _greatest(report: OperatorReport) -> str:
    values = style.finite(report.singular_values)
    if not values:
        return ""
    middle = float(np.median(values))
    if middle <= 1e-6 * values[0]:
        return f"{number(values[0])} (more than half are zero)"
    return f"{number(values[0])} ({number(values[0] / middle)} times the median one)"


def _enough(report: OperatorReport) -> str:
    curve = report.truncated_svd
    if not style.finite(curve.explained):
        return ""
    reached = np.asarray(curve.explained, dtype=float)
    best = float(np.nanmax(reached))
    at = int(np.argmax(reached >= best - _NEAR * abs(best)))
    share = percent(float(reached[at]))
    return f"{count(curve.ranks[at])} of {count(curve.ranks[-1])} ({share} of the gap explained)"


def by_kind(one: Side, other: Side) -> str:
    """On which kind of token the two differ most, and what each loses there."""
    ours, theirs = (
        {kind.name: kind for kind in (side.run.agreement.classes if side.run.agreement else [])}
        for side in (one, other)
    )
    shared = [name for name in ours if name in theirs and min(ours[name].tokens, theirs[name].tokens) >= FEW]
    if not shared:
        return f"Kinds of tokens were not told apart for both {one.name} and {other.name}."
    most = max(shared, key=lambda name: abs(ours[name].shift.value - theirs[name].shift.value))
    lost = [number(0.0 - kinds[most].shift.value) for kinds in (ours, theirs)]
    return (
        f"They differ most on tokens of the kind '{most}': against the original {one.name} loses {lost[0]} "
        f"nats per token there and {other.name} {lost[1]}."
    )


def energy_split(one: Side, other: Side) -> str:
    """How much of each map's energy in the weights is antisymmetric."""
    return _of_maps("Antisymmetric in the weights is", one, other, _antisymmetric)


def _antisymmetric(report: OperatorReport) -> str:
    share = report.split.frobenius.get("antisymmetric", math.nan)
    return f"{percent(share)} of the energy" if math.isfinite(share) else ""


def eigenvalues(one: Side, other: Side) -> str:
    """How many eigenvalues of each W grow, and how far."""
    return _of_maps("Outside the unit circle lie", one, other, _outside)


def _outside(report: OperatorReport) -> str:
    sizes = np.hypot(report.eigenvalues_real, report.eigenvalues_imag)
    if not sizes.size:
        return ""
    return f"{count(int((sizes > 1).sum()))} of {count(sizes.size)} (largest modulus {number(sizes.max())})"


def retained(one: Side, other: Side) -> str:
    """How much of the original's zero-shot accuracy each keeps on the tasks of both."""
    told, kept = kept_on_tasks(one, other)
    if not told:
        return f"{one.name} and {other.name} were not asked the same zero-shot tasks."
    ours, theirs = (f"{percent(m.value)} [{percent(m.low)}, {percent(m.high)}]" for m in kept)
    return (
        f"Over {plural(len(told), 'task')} {one.name} retains {ours} of the original's accuracy and "
        f"{other.name} {theirs}."
    )


def kept_on_tasks(one: Side, other: Side) -> tuple[list[str], list[Metric]]:
    """Tasks that both were asked and that count for both, and what each retains on them; else nothing."""
    found = [side.result.zero_shot for side in (one, other)]
    names = [variant_of(side) for side in (one, other)]
    known = [(zero, name) for zero, name in zip(found, names, strict=True) if zero and name in zero.variants]
    if len(known) < 2:
        return [], []
    told = [{task.name for task in zero.told()} for zero, _ in known]
    both = [task.name for task in known[0][0].tasks if task.name in told[0] & told[1]]
    if not both:
        return [], []
    return both, [
        zero.retained(name, without=[task.name for task in zero.tasks if task.name not in both])
        for zero, name in known
    ]


def texts(one: Side, other: Side) -> str:
    """Where each text leaves the original's path."""
    made = [written(side) for side in (one, other)]
    if None in made:
        return f"{one.name} and {other.name} did not both continue a prompt."
    ours, theirs = (departure(text) for text in made if text is not None)
    if not ours or not theirs:
        return f"What {one.name} and {other.name} made of their prompts."
    return f"{one.name}: {ours}. {other.name}: {theirs}."


def written(side: Side) -> Generation | None:
    """The continuation of a side, if there is one."""
    return next((made for made in side.result.generations if made.variant == variant_of(side)), None)


def variant_of(side: Side) -> str:
    """What its run calls it."""
    return side.run.label or side.run.method
