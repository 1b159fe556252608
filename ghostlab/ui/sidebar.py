"""The sidebar: one labelled control for every field of a run's configuration, Run and Stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, get_args

import gradio as gr
from gradio.components import Component

from ghostlab.config import BosPolicy, RunConfig, help_of
from ghostlab.errors import ConfigError, CutError, GhostlabError
from ghostlab.settings import Settings
from ghostlab.ui import registry

FIRST_CRITERION = "streamline"
BY_HAND, BY_CRITERION = "Blocks I name", "A criterion"
PASTE = "paste:"
"""What marks a configuration's text as the text itself; see :func:`ghostlab.text.corpora.load_text`."""
_ONLY_BY_HAND, _ONLY_BY_CRITERION = ("drop",), ("select", "count")
_OPTIONAL = ("revision", "held_out_text")
_NUMBERS = {
    "sequences": "Sequences",
    "length": "Length",
    "held_out": "Held-out",
    "count": "How many blocks",
    "seed": "Seed",
    "batch": "Batch",
    "new_tokens": "New tokens",
    "temperature": "Temperature",
    "top_p": "Top p",
}
_IN_SIGHT = ("drop", "sequences", "length", "held_out")
"""Controls that no accordion hides: only there is a message beside the control sure to be seen."""


@dataclass(frozen=True)
class Sidebar:
    """The controls, by name of the field they set, and the two buttons."""

    controls: dict[str, Component]
    run: gr.Button
    stop: gr.Button

    @property
    def inputs(self) -> list[Component]:
        """All controls, in a fixed order."""
        return list(self.controls.values())

    def read(self, values: Sequence[Any]) -> RunConfig:
        """The configuration that the controls' values say.

        Raises:
            GhostlabError: For the first value that cannot work, in one sentence.
        """
        named = dict(zip(self.controls, values, strict=True))
        unused = _ONLY_BY_CRITERION[:1] if named.pop("chooser") == BY_HAND else _ONLY_BY_HAND
        for name, label in _NUMBERS.items():
            if named[name] is None and name not in _ONLY_BY_CRITERION:
                raise ConfigError(f"{label} is empty.", "Give a number.")
        named |= {name: (named[name] or "").strip() or None for name in _OPTIONAL}
        named |= dict.fromkeys(unused)
        if pasted := (named.pop("pasted") or "").strip():
            named["text"] = PASTE + pasted
        if named["count"] is None:
            named["count"] = RunConfig.count
        return RunConfig.from_dict(named)

    def problem(self, values: Sequence[Any], settings: Settings) -> tuple[str, str]:
        """The name of a control in sight and what is wrong with it; two empty words when none is."""
        try:
            self.read(values).check(settings)
        except CutError as error:
            return "drop", str(error)
        except GhostlabError as error:
            name = str(error).partition(" ")[0]
            return (name, str(error)) if name in _IN_SIGHT else ("", "")
        return "", ""

    def fill(self, config: RunConfig) -> list[Any]:
        """Updates that make the controls say ``config``; the inverse of :meth:`read`."""
        values: dict[str, Any] = {f.name: getattr(config, f.name) for f in fields(config)}
        values |= {name: values[name] or "" for name in _OPTIONAL}
        pasted = config.text.startswith(PASTE)
        values["pasted"] = config.text.removeprefix(PASTE) if pasted else ""
        values["text"] = RunConfig.text if pasted else config.text
        specs = [str(spec) for spec in config.recover]
        values["recover"] = gr.CheckboxGroup(choices=specs, value=specs)
        values["chooser"] = BY_CRITERION if config.select else BY_HAND
        by_criterion = config.select is not None
        values["drop"] = gr.Textbox(value=config.drop or "", visible=not by_criterion)
        values["count"] = gr.Number(value=config.count, visible=by_criterion)
        chosen = config.select or FIRST_CRITERION
        values["select"] = gr.Dropdown(choices=[chosen], value=chosen, visible=by_criterion)
        return [values[name] for name in self.controls]

    def choices(self, asked: Sequence[str]) -> list[Any]:
        """Updates of operators and criteria that offer all there are; ``asked`` stays ticked."""
        methods = registry.methods()
        known = [(entry.title, name) for name, entry in methods.items()]
        own = [(spec, spec) for spec in asked if spec not in methods]  # with options, from a link
        return [
            gr.CheckboxGroup(choices=known + own, value=list(asked)),
            gr.Dropdown(choices=registry.criteria()),
        ]


def build(settings: Settings) -> Sidebar:
    """Lay the sidebar out; to be called inside ``gr.Blocks``."""
    default = RunConfig()
    with gr.Sidebar(width=348, elem_id="sidebar"):
        controls = {**_what(default, settings), **_cut(default), **_recovery(default), **_amounts(default)}
        with gr.Accordion("Generation", open=False):
            controls |= _generation(default)
        with gr.Accordion("More settings", open=False):
            controls |= _more(default)
        with gr.Row(elem_classes="gl-buttons"):
            run = gr.Button("Run", variant="primary", elem_id="run", min_width=120, scale=2)
            stop = gr.Button("Stop", variant="stop", interactive=False, elem_id="stop", min_width=80)
    return Sidebar(controls, run, stop)


def _what(default: RunConfig, settings: Settings) -> dict[str, Component]:
    paths = ", a local folder or a .gguf file" if settings.limits.local_paths else ""
    files = ", a file" if settings.limits.local_paths else ""
    return {
        "model": gr.Dropdown(
            registry.models(), value=default.model, label="Model", allow_custom_value=True,
            info=f"From the list, or any hub id (org/name){paths}.", elem_id="model",
        ),
        "text": gr.Dropdown(
            registry.texts(), value=default.text, label="Text", allow_custom_value=True,
            info=f"To fit and to evaluate on. From the list{files} or hf:dataset/config:split:column.",
            elem_id="text",
        ),
        **_pasted(),
    }  # fmt: skip


def _pasted() -> dict[str, Component]:
    with gr.Accordion("Paste your own text instead", open=False):
        return {
            "pasted": gr.Textbox(
                "", label="Pasted text", lines=5, max_lines=10, elem_id="pasted", max_length=2_000_000,
                info="Used instead of the text above while it is not empty.",
            )
        }  # fmt: skip


def _cut(default: RunConfig) -> dict[str, Component]:
    chooser = gr.Radio([BY_HAND, BY_CRITERION], value=BY_HAND, label="Drop", elem_id="chooser")
    drop = gr.Textbox(
        default.drop, label="Blocks to drop", info="start:stop, stop not included: 20:25 or 10:12, 20:25.",
        max_lines=1, elem_id="drop",
    )  # fmt: skip
    select = gr.Dropdown(
        [FIRST_CRITERION], value=FIRST_CRITERION, label="Criterion", visible=False, elem_id="select"
    )
    count = gr.Number(
        default.count, label=_NUMBERS["count"], precision=0, minimum=1, visible=False, elem_id="count"
    )

    def switch(kind: str) -> list[Any]:
        by_hand = kind == BY_HAND
        return [gr.Textbox(visible=by_hand), gr.Dropdown(visible=not by_hand), gr.Number(visible=not by_hand)]

    chooser.input(
        switch, chooser, [drop, select, count], show_progress="hidden", queue=False, api_visibility="private"
    )
    return {"chooser": chooser, "drop": drop, "select": select, "count": count}


def _recovery(default: RunConfig) -> dict[str, Component]:
    specs = [str(spec) for spec in default.recover]
    return {
        "recover": gr.CheckboxGroup(
            specs, value=specs, label="Recovery operators", elem_id="recover",
            info="Fitted one after the other on the same calibration text.",
        )
    }  # fmt: skip


def _amounts(default: RunConfig) -> dict[str, Component]:
    with gr.Row():
        return {
            name: gr.Number(
                getattr(default, name),
                label=_NUMBERS[name],
                precision=0,
                minimum=1,
                min_width=88,
                elem_id=name,
            )
            for name in ("sequences", "length", "held_out")
        }


def _generation(default: RunConfig) -> dict[str, Component]:
    prompt = gr.Textbox(default.prompt, label="Prompt", lines=2, info=help_of("prompt"), elem_id="prompt")
    with gr.Row():
        tokens = gr.Number(
            default.new_tokens, label=_NUMBERS["new_tokens"], precision=0, minimum=0, min_width=88,
            elem_id="new_tokens",
        )  # fmt: skip
        temperature = gr.Number(
            default.temperature, label=_NUMBERS["temperature"], minimum=0, step=0.1, min_width=88,
            elem_id="temperature",
        )  # fmt: skip
        top_p = gr.Number(
            default.top_p, label=_NUMBERS["top_p"], minimum=0, maximum=1, step=0.05, min_width=88,
            elem_id="top_p",
        )  # fmt: skip
    return {"prompt": prompt, "new_tokens": tokens, "temperature": temperature, "top_p": top_p}


def _more(default: RunConfig) -> dict[str, Component]:
    with gr.Row():
        rank = gr.Number(
            default.rank, label="Rank", precision=0, minimum=1, min_width=88, elem_id="rank",
            info="Of every operator; empty for the full map.",
        )  # fmt: skip
        ridge = gr.Textbox(
            default.ridge, label="Ridge", max_lines=1, min_width=88, elem_id="ridge",
            info="auto, a relative number, or abs:NUMBER.",
        )  # fmt: skip
    with gr.Row():
        seed = gr.Number(
            default.seed, label=_NUMBERS["seed"], precision=0, minimum=0, min_width=88, elem_id="seed",
            info="Of the sample, folds and bootstrap.",
        )  # fmt: skip
        batch = gr.Number(
            default.batch, label=_NUMBERS["batch"], precision=0, minimum=1, min_width=88, elem_id="batch",
            info="Lower it when memory is short.",
        )  # fmt: skip
    with gr.Row():
        bos = gr.Dropdown(list(get_args(BosPolicy)), value=default.bos, label="Start token", elem_id="bos",
                          info=help_of("bos"), min_width=88)  # fmt: skip
        dtype = gr.Dropdown(["auto", "float32", "bfloat16", "float16"], value=default.dtype, elem_id="dtype",
                            label="Weights", info=help_of("dtype"), min_width=88)  # fmt: skip
    held_out_text = gr.Textbox(
        "", label="Other text to evaluate on", info="Empty: the held-out part of the text.", max_lines=1,
        elem_id="held_out_text",
    )  # fmt: skip
    revision = gr.Textbox(
        "", label="Model revision", info=help_of("revision"), max_lines=1, elem_id="revision"
    )
    return {
        "rank": rank, "ridge": ridge, "seed": seed, "batch": batch, "bos": bos, "dtype": dtype,
        "held_out_text": held_out_text, "revision": revision,
    }  # fmt: skip
