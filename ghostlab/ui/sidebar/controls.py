"""The sidebar's controls, laid out in groups; each is named after the setting it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import gradio as gr
from gradio.components import Component

from ghostlab.config import BosPolicy, FitOrder, PromptFormat, RunConfig, help_of, label_of
from ghostlab.pruning.registry import CRITERIA
from ghostlab.recovery.registry import OPERATORS
from ghostlab.results.records import SelectionInfo
from ghostlab.settings import Settings
from ghostlab.ui import explain
from ghostlab.ui.page import job_progress
from ghostlab.ui.service import catalogue
from ghostlab.ui.sidebar import operators, picker, uploads
from ghostlab.ui.sidebar.picker import BY_CRITERION, BY_HAND

FIRST_CRITERION = "streamline"
NUMBERS = (
    "sequences", "length", "held_out", "count", "seed", "batch", "new_tokens", "temperature", "top_p",
)  # fmt: skip
"""Settings that are numbers and must not be empty."""
_AMOUNTS = (
    "**How much text:** sequences of so many tokens each to fit on, and held-out ones of the same length to "
    "measure on; 0 held-out for all that there are, as the papers do."
)


@dataclass(frozen=True)
class Scores:
    """The button that scores the blocks, and what belongs to it.

    Attributes:
        start, stop: Buttons.
        progress: How the watched job goes.
        found: Id of the job whose scores the page has; empty for none.
    """

    start: gr.Button
    stop: gr.Button
    progress: gr.HTML
    found: gr.Textbox


@dataclass(frozen=True)
class Cut:
    """How the blocks to drop are named.

    Attributes:
        controls: The settings, by name.
        picker: The model's blocks, to be clicked.
        words: What is said of the chosen criterion.
        scores: The button that computes its scores.
    """

    controls: dict[str, Component]
    picker: gr.HTML
    words: gr.Markdown
    scores: Scores


def what(default: RunConfig, settings: Settings) -> tuple[dict[str, Component], gr.UploadButton]:
    """Model and text, and the button for a file of one's own."""
    paths = ", a local folder or a .gguf file" if settings.limits.local_paths else ""
    files = ", a file" if settings.limits.local_paths else ""
    offered = catalogue.models(settings.limits.parameters)
    model = gr.Dropdown(
        offered, value=default.model, label=label_of("model"), allow_custom_value=True,
        info=f"From the list, or any hub id (org/name){paths}.", elem_id="model",
    )  # fmt: skip
    text = gr.Dropdown(
        catalogue.texts(), value=default.text, label=label_of("text"), allow_custom_value=True,
        elem_id="text",
        info=f"To fit and to evaluate on. From the list{files} or hf:dataset/config:split:column.",
    )  # fmt: skip
    with gr.Accordion("Use a text of your own", open=False, elem_id="own-text"):
        upload = uploads.build(settings)
        pasted = gr.Textbox(
            "", label="Pasted text", lines=5, max_lines=10, elem_id="pasted", max_length=2_000_000,
            info="Used instead of the text above while it is not empty.",
        )  # fmt: skip
    return {"model": model, "text": text, "pasted": pasted}, upload


def cut(default: RunConfig, info: SelectionInfo | None) -> Cut:
    """Blocks by hand, on the picker or in words, or by criterion: one of the two is hidden.

    ``info`` are the scores of :data:`FIRST_CRITERION` under the default settings, if they are known.
    """
    criteria = CRITERIA
    with gr.Group(elem_id="cut"):
        chooser = gr.Radio([BY_HAND, BY_CRITERION], value=BY_HAND, label="Drop", elem_id="chooser")
        blocks = picker.build(default, info)
        drop = gr.Textbox(
            default.drop, label=label_of("drop"), max_lines=1, elem_id="drop",
            info="The same in words, stop not included: 20:25 or 10:12, 27.",
        )  # fmt: skip
        select = gr.Dropdown(
            list(criteria), value=FIRST_CRITERION, label=label_of("select"), visible=False, elem_id="select",
            allow_custom_value=True, info="From the list; options after it: shortgpt,convention=flat.",
        )  # fmt: skip
        count = gr.Number(default.count, label=label_of("count"), precision=0, visible=False, elem_id="count")
        with gr.Column(visible=False, elem_id="criterion") as box:
            buttons = _scores()
            words = _markdown("criterion-words", explain.criterion(criteria[FIRST_CRITERION]))
            with gr.Accordion("What are the others?", open=False, elem_id="criteria-explained"):
                _markdown("criteria-words", explain.criteria(criteria.values()))
    chooser.change(
        by_kind, chooser, [blocks, drop, select, box, count], show_progress="hidden", queue=False,
        api_visibility="private",
    )  # fmt: skip
    named: dict[str, Component] = {"chooser": chooser, "drop": drop, "select": select, "count": count}
    return Cut(named, blocks, words, buttons)


def _scores() -> Scores:
    with gr.Row(elem_id="score-buttons"):
        start = gr.Button("Score blocks", elem_id="score", min_width=120, scale=2)
        stop = gr.Button("Stop", variant="stop", interactive=False, elem_id="score-stop", min_width=80)
    found = gr.Textbox("", visible=False, label="Scores")
    return Scores(start, stop, job_progress("score"), found)


def by_kind(kind: str) -> list[Any]:
    """How the picker reads clicks, and what of drop, criterion, its words and the count is in sight."""
    by_hand = kind == BY_HAND
    return [
        gr.HTML(by_hand=by_hand),
        gr.Textbox(visible=by_hand),
        gr.Dropdown(visible=not by_hand),
        gr.Column(visible=not by_hand),
        gr.Number(visible=not by_hand),
    ]


def recovery(default: RunConfig) -> dict[str, Component]:
    """Which operators to fit, by kind, and those that are typed; with the words on them."""
    named = operators.build(default.recover)
    with gr.Accordion("What are these?", open=False, elem_id="operators-explained"):
        _markdown("operators-words", explain.operators(OPERATORS.values()))
    return named


def _markdown(elem_id: str, text: str) -> gr.Markdown:
    return gr.Markdown(text, elem_id=elem_id, elem_classes="gl-explained", latex_delimiters=explain.LATEX)


def amounts(default: RunConfig) -> dict[str, Component]:
    """How much is read."""
    gr.Markdown(_AMOUNTS, elem_classes="gl-hint")
    with gr.Row():
        return {
            name: gr.Number(
                getattr(default, name),
                label=label_of(name),
                precision=0,
                min_width=88,
                elem_id=name,
            )
            for name in ("sequences", "length", "held_out")
        }


def generation(default: RunConfig) -> dict[str, Component]:
    """What every variant is asked to continue."""
    prompt = gr.Textbox(
        default.prompt, label=label_of("prompt"), lines=2, info=help_of("prompt"), elem_id="prompt"
    )
    form = gr.Dropdown(
        list(get_args(PromptFormat)), value=default.prompt_format, label=label_of("prompt_format"),
        info=help_of("prompt_format"), elem_id="prompt_format",
    )  # fmt: skip
    with gr.Row():
        tokens = gr.Number(
            default.new_tokens, label=label_of("new_tokens"), precision=0, min_width=88,
            elem_id="new_tokens",
        )  # fmt: skip
        temperature = gr.Number(
            default.temperature, label=label_of("temperature"), step=0.1, min_width=88,
            elem_id="temperature",
        )  # fmt: skip
        top_p = gr.Number(
            default.top_p, label=label_of("top_p"), step=0.05, min_width=88,
            elem_id="top_p",
        )  # fmt: skip
    return {
        "prompt": prompt, "prompt_format": form, "new_tokens": tokens, "temperature": temperature,
        "top_p": top_p,
    }  # fmt: skip


def more(default: RunConfig) -> dict[str, Component]:
    """Settings that rarely need a look."""
    with gr.Row():
        rank = gr.Number(
            default.rank, label=label_of("rank"), precision=0, min_width=88, elem_id="rank",
            info="Of every operator; empty for the full map.",
        )  # fmt: skip
        ridge = gr.Textbox(
            default.ridge, label=label_of("ridge"), max_lines=1, min_width=88, elem_id="ridge",
            info="auto, a relative number, or abs:NUMBER.",
        )  # fmt: skip
    with gr.Row():
        seed = gr.Number(
            default.seed, label=label_of("seed"), precision=0, min_width=88, elem_id="seed",
            info="Of the sample, folds and bootstrap.",
        )  # fmt: skip
        batch = gr.Number(
            default.batch, label=label_of("batch"), precision=0, min_width=88, elem_id="batch",
            info="Lower it when memory is short.",
        )  # fmt: skip
    with gr.Row():
        bos = gr.Dropdown(list(get_args(BosPolicy)), value=default.bos, label=label_of("bos"), elem_id="bos",
                          info=help_of("bos"), min_width=88)  # fmt: skip
        dtype = gr.Dropdown(["auto", "float32", "bfloat16", "float16"], value=default.dtype, elem_id="dtype",
                            label=label_of("dtype"), info=help_of("dtype"), min_width=88)  # fmt: skip
    order = gr.Dropdown(
        list(get_args(FitOrder)), value=default.order, label=label_of("order"), info=help_of("order"),
        elem_id="order",
    )  # fmt: skip
    held_out_text = gr.Textbox(
        "", label=label_of("held_out_text"), info="Empty: the held-out part of the text.", max_lines=1,
        elem_id="held_out_text",
    )  # fmt: skip
    revision = gr.Textbox(
        "", label=label_of("revision"), info=help_of("revision"), max_lines=1, elem_id="revision"
    )
    return {
        "rank": rank, "ridge": ridge, "seed": seed, "batch": batch, "bos": bos, "dtype": dtype,
        "order": order, "held_out_text": held_out_text, "revision": revision,
    }  # fmt: skip
