"""A guided tour of six steps over whatever result is shown; ``tour.js`` walks it, nothing is remembered."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

import gradio as gr

CSS = Path(__file__).with_name("static") / "tour.css"
_JS = CSS.with_suffix(".js")


@dataclass(frozen=True)
class Step:
    """One stop.

    Attributes:
        title: Its heading.
        words: What a newcomer should know here.
        tab: Title of the tab it is on.
        at: CSS selectors of what it points at, the first one in sight counts.
        says: CSS selector of the page's own sentence on this result, repeated below the words.
    """

    title: str
    words: str
    tab: str
    at: tuple[str, ...]
    says: str


STEPS = (
    Step(
        "What is dropped",
        "A language model is a stack of layers, and each of them adds a little to the state of every token. "
        "Those dashed in the sidebar are taken out: less to store, less to compute, and the rest is left "
        "as it is.",
        "Overview",
        ("#picker", "#source"),
        "#picker .gl-said",
    ),
    Step(
        "What is lost",
        "The layers after the gap now receive a state that they were never trained on. Perplexity tells "
        "how badly that goes: it is the number of tokens that the model is undecided between at each step.",
        "Overview",
        ("#overview-perplexity",),
        "#lead",
    ),
    Step(
        "The boundary error",
        "The damage is done at one place: the boundary, where the first layer after the gap reads its "
        "input. So look there. How much of the way from the wrong state to the right one can be made up "
        "for?",
        "Boundary error",
        ("#boundary-explained-0",),
        "#boundary-explained-words p",
    ),
    Step(
        "What a ghost layer is",
        "It is one matrix M in place of a block of layers: the state x becomes x + xM. M is fitted by least "
        "squares on some ten thousand tokens, without training. These are its two parts: S, which stretches, "
        "and A, which turns.",
        "Operator",
        ("div:has(> #operator-heat_map-0)",),
        "#operator-heat_map-words p",
    ),
    Step(
        "What symmetry costs",
        "Several earlier methods allow only scalings, which are symmetric maps: they stretch and never "
        "turn. The hatched bars are the best that any symmetric map can do; the full bars may turn as well.",
        "Operator",
        ("#operator-symmetry_cost-0",),
        "#operator-symmetry_cost-words p",
    ),
    Step(
        "What came back",
        "The same prompt, continued by the original, by the pruned model and by each recovery. A shaded "
        "token surprises the original. Now drop other layers in the sidebar, press Run, and see for "
        "yourself.",
        "Generate",
        ("#columns",),
        "#generate-lead p",
    ),
)


def build() -> gr.HTML:
    """The button that starts the tour; to be called inside ``gr.Blocks``."""
    steps = escape(json.dumps([asdict(step) for step in STEPS]))
    button = f'<button type="button" class="gl-start" data-steps="{steps}">Take the tour</button>'
    return gr.HTML(button, js_on_load=_JS.read_text(encoding="utf-8"), elem_id="tour")
