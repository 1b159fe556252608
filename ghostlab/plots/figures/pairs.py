"""Two recoveries, of one run or of two, side by side: which is better, and every figure that holds both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go

from ghostlab.plots import rows as variants
from ghostlab.plots import style
from ghostlab.plots.figure import Figure
from ghostlab.plots.figures.windows import shifts_figure
from ghostlab.plots.formats import number, plural
from ghostlab.plots.rows import Row, Rows
from ghostlab.plots.style import Role
from ghostlab.plots.tokens import departure
from ghostlab.results.compare import (
    FEWEST_WINDOWS,
    ORIGINAL,
    Side,
    best_first,
    likelihood,
    same_windows,
)
from ghostlab.results.generation import Generation

NAMES = (
    "perplexity",
    "paired_windows",
    "by_position",
    "explained",
    "channel_error",
    "position_error",
    "singular_values",
    "rank_curve",
    "by_kind",
    "energy_split",
    "eigenvalues",
    "retained",
)
"""The figures of a comparison, in order."""


# -- rows ------------------------------------------------------------------------------------------------


def looks(one: Side, other: Side) -> list[Role]:
    """How both are drawn: as everywhere else where they are of one run, by their order where they are not."""
    if one.result is other.result and one.name != other.name:
        return [_own_look(one), _own_look(other)]
    return style.roles([one.name, other.name])


def _own_look(side: Side) -> Role:
    """That of a recovery in the figures of its own run."""
    base = style.ORIGINAL if side.run.method == ORIGINAL else style.PRUNED
    own = (row.role for row in variants.rows(side.result) if row.run is side.run)
    return replace(next(own, base), name=side.name)


def sides(one: Side, other: Side) -> list[Row]:
    """A row for each side."""
    return [
        Row(role, side.run.label, side.run, side.result, side.run, side=True)
        for role, side in zip(looks(one, other), (one, other), strict=True)
    ]


def with_ends(one: Side, other: Side) -> list[Row]:
    """Both sides below the original and the pruned model of each; what they share stands there once."""
    shared = same_windows(one.result, other.result)
    pruned = [side.result.baseline.pruned.window_nll for side in (one, other)]
    one_cut = shared and pruned[0] == pruned[1]
    rows = [_end(style.ORIGINAL, one)]
    if not shared:
        rows.append(_named(_end(style.ORIGINAL, other), other))
    if one_cut and "drop" not in (one.run.method, other.run.method):
        rows.append(_end(style.PRUNED, one))
    for row, side in zip(sides(one, other), (one, other), strict=True):
        if not one_cut and side.run.method not in ("drop", ORIGINAL):
            rows.append(_named(_end(style.PRUNED, side), side))
        if side.run.method != ORIGINAL:
            rows.append(row)
    return rows


def _end(role: Role, side: Side) -> Row:
    return Row(role, role.name, getattr(side.result.baseline, role.name), side.result)


def _named(row: Row, side: Side) -> Row:
    return replace(row, role=replace(row.role, name=f"{row.name} for {side.name}"))


# -- which is better -------------------------------------------------------------------------------------


def verdict(one: Side, other: Side) -> str:
    """Whether one side is really better than the other, in one sentence."""
    found = likelihood(one, other)
    if found is None:
        return _unpaired(one, other)
    if found.value == 0 and found.low == found.high == 0:
        return f"{one.name} and {other.name} score the same on every window."
    if found.value > 0:
        return verdict(other, one)
    ours, theirs = (number(side.run.perplexity.value) for side in (one, other))
    text = (
        f"{one.name} needs {number(abs(found.value))} nats per token fewer than {other.name}: "
        f"its perplexity is {ours} against {theirs}"
    )
    windows = len(one.run.window_nll)
    if windows < FEWEST_WINDOWS:
        return f"{text}; {plural(windows, 'window')} are too few to say whether that is significant."
    interval = f"the 95 % interval over {windows} paired windows"
    if found.low <= 0 <= found.high:
        ends = f"{number(-found.low)} fewer to {number(found.high)} more"
        return f"{text}; not significant: {interval} goes from {ends}."
    ends = f"{number(-found.high)} to {number(-found.low)} nats"
    return f"{text}; significant on this text: {interval}, {ends}, excludes 0."


def _unpaired(one: Side, other: Side) -> str:
    """Better by how much on what each was measured on, when that was not the same."""
    ordered = best_first((one, other), lambda side: side.run)
    if len(ordered) < 2:
        return "They were not measured on the same windows, and not both have a likelihood that is finite."
    better, worse = ordered
    least, most = (number(side.run.bits_per_byte.value) for side in ordered)
    places = [
        f"{side.result.model.name} on {plural(len(side.run.window_nll), 'window')} of "
        f"{side.result.text.held_out}"
        for side in ordered
    ]
    where = f"{places[0]}, but not the same ones" if places[0] == places[1] else "; ".join(places)
    return (
        f"{better.name} needs {least} bits per byte and {worse.name} {most}, but they were not measured on "
        f"the same windows ({where}), so chance cannot be ruled out."
    )


# -- window by window ------------------------------------------------------------------------------------


def _paired(rows: Rows) -> Rows:
    one, other = rows
    same = same_windows(one.result, other.result)
    return rows if same and len(one.scores.window_nll) == len(other.scores.window_nll) else []


def _shifts(rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    one, other = (np.asarray(row.scores.window_nll, dtype=np.float64) for row in rows)
    return one - other


def paired_windows(rows: Rows) -> go.Figure:
    """What the first needs more than the second in every window, with mean and paired interval."""
    title = "difference in nats per token<br>(left of 0: the first is better)"
    return shifts_figure([(rows[0].role, _shifts(rows))], title, rows[1].name)


def say_paired_windows(rows: Rows) -> str:
    """On how many windows the first is better."""
    shifts = _shifts(rows)
    return (
        f"{rows[0].name} is better than {rows[1].name} on {int((shifts < 0).sum())} of {len(shifts)} windows."
    )


# -- generated text --------------------------------------------------------------------------------------


def continuation(side: Side) -> Generation | None:
    """What a side made of its prompt, if it was asked."""
    return next((made for made in side.result.generations if made.variant == side.run.label), None)


def say_generated(one: Side, other: Side) -> str:
    """Where each text leaves the original's path."""
    made = [continuation(side) for side in (one, other)]
    if None in made:
        return f"{one.name} and {other.name} did not both continue a prompt."
    ours, theirs = (departure(text) for text in made if text is not None)
    if not ours or not theirs:
        return f"How {one.name} and {other.name} continue their prompts."
    return f"{one.name}: {ours}. {other.name}: {theirs}."


FIGURES = (
    Figure(
        "paired_windows",
        "Window by window",
        "The two recoveries are compared on each window of held-out text: left of zero, the first is "
        "better. A cloud on one side means that one is better everywhere, a cloud around zero that they "
        "differ by chance. Two runs can only be paired if they read the same windows.",
        r"\delta_i = \mathcal L_i^{\text{first}} - \mathcal L_i^{\text{second}}",
        "Koehn 2004, *Statistical significance tests for machine translation evaluation* (paired bootstrap)",
        draw=paired_windows,
        say=say_paired_windows,
        select=_paired,
        nothing="They were not measured on the same windows.",
    ),
)
