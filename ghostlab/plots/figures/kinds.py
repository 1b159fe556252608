"""On which kinds of tokens predictions got worse."""

from __future__ import annotations

import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.figure import Figure
from ghostlab.plots.formats import interval, number, percent
from ghostlab.plots.rows import Row, Rows, ranked, where
from ghostlab.results.records import Metric, TokenClass

FEW = 20
"""A kind with fewer tokens is only named as left out."""
_NAMES = {
    "first": "the first token of a window",
    "digit": "digits",
    "punctuation": "punctuation",
    "word start": "beginnings of words",
    "word piece": "later pieces of words",
    "newline": "line breaks",
}


def _kinds(row: Row) -> list[TokenClass]:
    return row.scores.agreement.classes if row.scores.agreement else []


def by_kind(rows: Rows) -> go.Figure:
    """What each variant loses on each kind of token against the original, with its 95 % interval."""
    made = style.figure(
        map(_bars, rows),
        height=130 + max(len(_kinds(row)) for row in rows) * (18 + 11 * len(rows)),
        x={"title": "nats per token above the original"},
        y={"title": "kind of the predicted token", "autorange": "reversed"},
        showlegend=True,
        barmode="group",
        bargap=0.25,
    )
    style.guide(made, "x", 0)
    return made


def _bars(row: Row) -> go.Bar:
    kinds = _kinds(row)
    return style.bars(
        [_loss(kind).value for kind in kinds],
        [f"{kind.name}<br>({kind.tokens:,})" for kind in kinds],
        f"{row.name}, %{{y}}: %{{x:.3~g}} nats more<br>log-probability against the original "
        "%{customdata[0]}<br>same favourite %{customdata[1]}, among the five %{customdata[2]}<br>"
        "KL %{customdata[3]} nats per token",
        name=row.name,
        marker={"color": row.role.colour},
        error_x=style.error_bar(map(_loss, kinds), color=style.INK, thickness=1.2, width=3),
        customdata=[
            [interval(k.shift), percent(k.top1_agreement), percent(k.top5_agreement), number(k.kl)]
            for k in kinds
        ],
    )


def _frequent(row: Row) -> list[TokenClass]:
    return [kind for kind in _kinds(row) if kind.tokens >= FEW]


def _loss(kind: TokenClass) -> Metric:
    """Nats per token that are lost."""
    return Metric(0.0 - kind.shift.value, -kind.shift.high, -kind.shift.low)


def _size(kind: TokenClass) -> float:
    return _loss(kind).value


def _name(kind: TokenClass) -> str:
    return _NAMES.get(kind.name, kind.name)


def say_by_kind(rows: Rows) -> str:
    """Where dropping costs most and least, and where the best recovery still loses most."""
    pruned = next((row for row in rows if row.run is None), rows[0])
    kinds = _frequent(pruned)
    if not kinds:
        return f"Every kind of token has fewer than {FEW} tokens, too few to tell them apart."
    worst, mildest = max(kinds, key=_size), min(kinds, key=_size)
    text = (
        f"Dropping costs most on {_name(worst)} ({number(_size(worst))} nats per token) and least on "
        f"{_name(mildest)} ({number(_size(mildest))})"
    )
    for row, _ in ranked([row for row in rows if _frequent(row)])[:1]:
        text += f"; {_left(row)}"
    rare = ", ".join(_name(kind) for kind in _kinds(pruned) if 0 < kind.tokens < FEW)
    return f"{text}." + (f" Left out, with fewer than {FEW} tokens: {rare}." if rare else "")


def _left(row: Row) -> str:
    worst = max(_frequent(row), key=_size)
    doubt = "" if worst.shift.high < 0 else ", not significant"
    five = row.scores.agreement.top5_agreement.value if row.scores.agreement else None
    return (
        f"{row.name} still loses most on {_name(worst)} ({number(_size(worst))}{doubt}) and has the "
        f"original's favourite among its five likeliest for {percent(five)} of all tokens"
    )


def compare_by_kind(rows: Rows) -> str:
    """On which kind of token the two differ most, and what each loses there."""
    ours, theirs = ({kind.name: kind for kind in _frequent(row)} for row in rows)
    shared = [name for name in ours if name in theirs]
    if not shared:
        return f"Kinds of tokens were not recorded for both {rows[0].name} and {rows[1].name}."
    most = max(shared, key=lambda name: abs(_size(ours[name]) - _size(theirs[name])))
    return (
        f"They differ most on {_name(ours[most])}: against the original {rows[0].name} loses "
        f"{number(_size(ours[most]))} nats per token there and {rows[1].name} {number(_size(theirs[most]))}."
    )


FIGURES = (
    Figure(
        "by_kind",
        "By kind of token",
        "Words, pieces of words, digits and punctuation do not suffer alike. Bars right of zero are kinds of "
        "token that the variant finds less likely than the original did, bars left of it likelier ones; the "
        "number under a kind says how many tokens it is measured on. A loss that sits in digits or word "
        "endings points at what the dropped layers were for.",
        r"\Delta_k = \frac{1}{n_k} \sum_{t \in k} \bigl(\log p_{\text{original}}(x_t) - \log p(x_t)\bigr)",
        "Losses token by token: Olsson et al. (arXiv 2209.11895)",
        draw=by_kind,
        say=say_by_kind,
        select=where(_kinds),
        nothing="Kinds of tokens were not recorded in this run.",
        compare=compare_by_kind,
    ),
)
