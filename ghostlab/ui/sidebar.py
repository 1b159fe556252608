"""The sidebar: one labelled control for every field of a run's configuration, Run and Stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, CutError, GhostlabError
from ghostlab.settings import Settings
from ghostlab.ui import controls, registry
from ghostlab.ui.controls import BY_CRITERION, BY_HAND, FIRST_CRITERION, NUMBERS

PASTE = "paste:"
"""What marks a configuration's text as the text itself; see :func:`ghostlab.text.corpora.load_text`."""
_ONLY_BY_HAND, _ONLY_BY_CRITERION = ("drop",), ("select", "count")
_OPTIONAL = ("revision", "held_out_text")
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
        for name, label in NUMBERS.items():
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
        named = {
            **controls.what(default, settings),
            **controls.cut(default),
            **controls.recovery(default),
            **controls.amounts(default),
        }
        with gr.Accordion("Generation", open=False):
            named |= controls.generation(default)
        with gr.Accordion("More settings", open=False):
            named |= controls.more(default)
        with gr.Row(elem_classes="gl-buttons"):
            run = gr.Button("Run", variant="primary", elem_id="run", min_width=120, scale=2)
            stop = gr.Button("Stop", variant="stop", interactive=False, elem_id="stop", min_width=80)
    return Sidebar(named, run, stop)
