"""The sidebar: one labelled control for every field of a run's configuration, Run and Stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, CutError, GhostlabError
from ghostlab.settings import Settings
from ghostlab.spec import GROUPS, Group, RecoverySpec
from ghostlab.text.corpora import PASTE
from ghostlab.ui import controls, explain, registry
from ghostlab.ui.controls import BY_CRITERION, BY_HAND, FIRST_CRITERION, NUMBERS, Explained

_ONLY_BY_HAND, _ONLY_BY_CRITERION = ("drop",), ("select", "count")
_OPTIONAL = ("revision", "held_out_text")
_OPERATORS = ("recover", *(f"recover_{group}" for group in GROUPS))
_IN_SIGHT = ("drop", "sequences", "length", "held_out")
"""Controls that no accordion hides: only there is a message beside the control sure to be seen."""


@dataclass(frozen=True)
class Sidebar:
    """The controls, by name of the field they set, the two buttons, and what is said of the choices.

    Operators are ticked in one control per kind, ``recover_KIND``, or ``typed``; ``recover`` holds those
    whose kind is not known (yet).
    """

    controls: dict[str, Component]
    run: gr.Button
    stop: gr.Button
    operators: gr.Markdown
    criteria: Explained

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
        ticked = [spec for name in _OPERATORS for spec in named.pop(name) or ()]
        asked = [*map(RecoverySpec.parse, ticked), *RecoverySpec.parse_all(named.pop("typed") or "")]
        named["recover"] = tuple(dict.fromkeys(asked))
        named |= dict.fromkeys(unused)
        if pasted := (named.pop("pasted") or "").strip():
            named["text"] = PASTE + pasted
        if named["count"] is None:
            named["count"] = RunConfig.count
        return RunConfig.from_dict(named)

    def problem(self, values: Sequence[Any], settings: Settings) -> tuple[str, str]:
        """The name of a control in sight and what is wrong with it; two empty words when none is."""
        named = dict(zip(self.controls, values, strict=True))
        try:
            registry.check_recoveries(RecoverySpec.parse_all(named["typed"] or ""))
        except GhostlabError as error:
            return "typed", str(error)
        try:
            config = self.read(values)
            config.check(settings)
        except CutError as error:
            return "drop", str(error)
        except GhostlabError as error:
            name = str(error).partition(" ")[0]
            return (name, str(error)) if name in _IN_SIGHT else ("", "")
        try:
            registry.check_criterion(config.select or FIRST_CRITERION)
        except GhostlabError as error:
            return "select", str(error)
        return "", ""

    def fill(self, config: RunConfig) -> list[Any]:
        """Updates that make the controls say ``config``; the inverse of :meth:`read`."""
        values: dict[str, Any] = {f.name: getattr(config, f.name) for f in fields(config)}
        values |= {name: values[name] or "" for name in _OPTIONAL}
        pasted = config.text.startswith(PASTE)
        values["pasted"] = config.text.removeprefix(PASTE) if pasted else ""
        values["text"] = RunConfig.text if pasted else config.text
        specs = [str(spec) for spec in config.recover]
        values |= {name: [] for name in _OPERATORS}
        values |= {"recover": gr.CheckboxGroup(choices=specs, value=specs, visible=True), "typed": ""}
        values["chooser"] = BY_CRITERION if config.select else BY_HAND
        by_criterion = config.select is not None
        values["drop"] = gr.Textbox(value=config.drop or "", visible=not by_criterion)
        values["count"] = gr.Number(value=config.count, visible=by_criterion)
        chosen = config.select or FIRST_CRITERION
        values["select"] = gr.Dropdown(choices=[chosen], value=chosen, visible=by_criterion)
        return [values[name] for name in self.controls]

    @property
    def offers(self) -> tuple[list[Component], list[Component]]:
        """Inputs and outputs of :meth:`choices`."""
        asked = [
            *(self.controls[name] for name in _OPERATORS),
            self.controls["select"],
            self.controls["chooser"],
        ]
        words = [self.operators, self.criteria.box, self.criteria.chosen, self.criteria.all]
        return asked, [*asked[:-1], *words]

    def choices(self, *values: Any) -> list[Any]:
        """Updates that offer all operators and criteria and explain them; what is ticked stays so.

        Takes what is ticked in each control of operators, the criterion, and which of two ways decides.
        """
        *ticked, criterion, kind = values
        asked = list(dict.fromkeys(spec for group in ticked for spec in group))
        methods, criteria = registry.methods(), registry.criteria()
        groups = [_offered(methods, group, asked) for group in GROUPS]
        strange = [spec for spec in asked if _group(methods, spec) is None]
        return [
            gr.CheckboxGroup(choices=strange, value=strange, visible=bool(strange)),
            *groups,
            gr.Dropdown(choices=list(criteria)),
            explain.operators(methods.values()),
            gr.Column(visible=kind == BY_CRITERION),
            self.describe(criterion),
            explain.criteria(criteria.values()),
        ]

    def describe(self, criterion: str | None) -> str:
        """The words on a criterion, whatever options are asked of it."""
        entry = registry.criteria().get((criterion or "").partition(",")[0].strip())
        return "There is no such criterion." if entry is None else explain.criterion(entry)


def _group(methods: Mapping[str, explain.Operator], spec: str) -> Group | None:
    entry = methods.get(spec.partition(",")[0])
    return None if entry is None else entry.group


def _offered(methods: Mapping[str, explain.Operator], group: Group, asked: Sequence[str]) -> gr.CheckboxGroup:
    """One kind of operators, and those of ``asked`` that are of this kind but carry options."""
    ours = [spec for spec in asked if _group(methods, spec) == group]
    known = [name for name, entry in methods.items() if entry.group == group]
    return gr.CheckboxGroup(choices=list(dict.fromkeys([*known, *ours])), value=ours, visible=True)


def build(settings: Settings) -> Sidebar:
    """Lay the sidebar out; to be called inside ``gr.Blocks``."""
    default = RunConfig()
    with gr.Sidebar(width=348, elem_id="sidebar"):
        named = controls.what(default, settings)
        cut, criteria = controls.cut(default)
        operators, explained = controls.recovery(default)
        named |= {**cut, **operators, **controls.amounts(default)}
        with gr.Accordion("Generation", open=False):
            named |= controls.generation(default)
        with gr.Accordion("More settings", open=False):
            named |= controls.more(default)
        with gr.Row(elem_classes="gl-buttons"):
            run = gr.Button("Run", variant="primary", elem_id="run", min_width=120, scale=2)
            stop = gr.Button("Stop", variant="stop", interactive=False, elem_id="stop", min_width=80)
    return Sidebar(named, run, stop, explained, criteria)
