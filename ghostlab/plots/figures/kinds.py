"""On which kinds of tokens predictions got worse."""

from __future__ import annotations

import plotly.graph_objects as go

from ghostlab.plots import style
from ghostlab.plots.figures.likelihood import variants
from ghostlab.plots.formats import interval, number, percent
from ghostlab.plots.style import Role
from ghostlab.results.records import TokenClass
from ghostlab.results.run import RunResult


def by_kind(result: RunResult) -> go.Figure:
    """What each variant loses on each kind of token against the original, with its 95 % interval."""
    rows = [(role, scores.agreement.classes) for role, scores in variants(result) if scores.agreement]
    return bars(rows)


def bars(rows: list[tuple[Role, list[TokenClass]]]) -> go.Figure:
    """The same for any variants, each with the kinds it was measured on."""
    rows = [(role, kinds) for role, kinds in rows if kinds]
    if not rows:
        return style.empty("Kinds of tokens were not told apart in this run.")
    made = style.figure(
        [_bars(role, kinds) for role, kinds in rows],
        height=130 + max(len(kinds) for _, kinds in rows) * (18 + 11 * len(rows)),
        x={"title": "nats per token above the original"},
        y={"title": "kind of the predicted token", "autorange": "reversed"},
        showlegend=True,
        barmode="group",
        bargap=0.25,
    )
    style.guide(made, "x", 0)
    return made


def _bars(role: Role, kinds: list[TokenClass]) -> go.Bar:
    loss = [-kind.shift.value for kind in kinds]
    return go.Bar(
        x=loss,
        y=[f"{kind.name}<br>({kind.tokens:,})" for kind in kinds],
        name=role.name,
        orientation="h",
        marker={"color": role.colour},
        error_x={
            "type": "data",
            "array": [kind.shift.value - kind.shift.low for kind in kinds],
            "arrayminus": [kind.shift.high - kind.shift.value for kind in kinds],
            "color": style.INK,
            "thickness": 1.2,
            "width": 3,
        },
        customdata=[_about(kind) for kind in kinds],
        hovertemplate=(
            f"{role.name}, %{{y}}: %{{x:.3~g}} nats more<br>log-probability against the original "
            "%{customdata[0]}<br>same favourite %{customdata[1]}, among the five %{customdata[2]}<br>"
            "KL %{customdata[3]} nats per token<extra></extra>"
        ),
    )


def _about(kind: TokenClass) -> list[str]:
    shares = [percent(kind.top1_agreement), percent(kind.top5_agreement)]
    return [interval(kind.shift), *shares, number(kind.kl)]
