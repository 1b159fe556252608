"""The sidebar: one labelled control for every field of a run's configuration, Run and Stop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import gradio as gr

from ghostlab import checks
from ghostlab.config import RunConfig, label_of
from ghostlab.errors import ConfigError, CutError, GhostlabError
from ghostlab.pruning.registry import CRITERIA
from ghostlab.pruning.registry import resolve as resolve_criterion
from ghostlab.recovery.registry import resolve
from ghostlab.results.atlas import scores_from_atlas
from ghostlab.settings import Settings
from ghostlab.spec import RecoverySpec
from ghostlab.text.corpora import PASTE
from ghostlab.ui import explain
from ghostlab.ui.page import JobButtons, Page, on
from ghostlab.ui.service import catalogue
from ghostlab.ui.sidebar import controls, operators, picker, scores, uploads
from ghostlab.ui.sidebar.controls import FIRST_CRITERION, NUMBERS, Scores
from ghostlab.ui.sidebar.picker import BY_CRITERION, BY_HAND

_ONLY_BY_HAND, _ONLY_BY_CRITERION = ("drop",), ("select", "count")
_OPTIONAL = ("revision", "held_out_text")
_IN_SIGHT = ("drop", "sequences", "length", "held_out")
"""Controls that no accordion hides: only there is a message beside the control sure to be seen."""


@dataclass(frozen=True)
class Sidebar:
    """What of the sidebar is wired besides its controls.

    ``upload`` takes a text file, ``picker`` shows the blocks of the model, ``scores`` computes their scores.
    """

    upload: gr.UploadButton
    picker: gr.HTML
    scores: Scores


def read(values: Mapping[str, Any]) -> RunConfig:
    """The configuration that the controls' values say, by name.

    Raises:
        GhostlabError: For the first value that cannot work, in one sentence.
    """
    named = dict(values)
    unused = _ONLY_BY_CRITERION[:1] if named.pop("chooser") == BY_HAND else _ONLY_BY_HAND
    for name in NUMBERS:
        if named[name] is None and name not in _ONLY_BY_CRITERION:
            raise ConfigError(f"'{label_of(name)}' is empty.", "Give a number.", name)
    named |= {name: (named[name] or "").strip() or None for name in _OPTIONAL}
    ticked = [spec for name in operators.BOXES for spec in named.pop(name) or ()]
    asked = [*map(RecoverySpec.parse, ticked), *RecoverySpec.parse_all(named.pop("typed") or "")]
    named["recover"] = tuple(dict.fromkeys(asked))
    named |= dict.fromkeys(unused)
    if pasted := (named.pop("pasted") or "").strip():
        named["text"] = PASTE + pasted
    if named["count"] is None:
        named["count"] = RunConfig.count
    return RunConfig.from_dict(named)


def problem(values: Mapping[str, Any], settings: Settings) -> tuple[str, str]:
    """The name of a control in sight and what is wrong with it; two empty words when nothing is."""
    try:
        resolve(RecoverySpec.parse_all(values["typed"] or ""))
    except GhostlabError as error:
        return "typed", str(error)
    try:
        config = read(values)
        checks.check(config, settings)
        catalogue.check_cut(config, settings)
    except CutError as error:
        return ("drop" if values["chooser"] == BY_HAND else "count"), str(error)
    except ConfigError as error:
        return (error.setting, str(error)) if error.setting in _IN_SIGHT else ("", "")
    except GhostlabError:
        return "", ""
    try:
        resolve_criterion(config.select or FIRST_CRITERION)
    except GhostlabError as error:
        return "select", str(error)
    return "", ""


def fill(config: RunConfig) -> dict[str, Any]:
    """Updates that make the controls say ``config``, by name; the inverse of :func:`read`."""
    values: dict[str, Any] = {f.name: getattr(config, f.name) for f in fields(config)}
    values |= {name: values[name] or "" for name in _OPTIONAL}
    pasted = config.text.startswith(PASTE)
    values["pasted"] = config.text.removeprefix(PASTE) if pasted else ""
    values["text"] = RunConfig.text if pasted else config.text
    values |= operators.tick(config.recover)
    values["chooser"] = BY_CRITERION if config.select else BY_HAND
    values["drop"] = config.drop or ""
    values["select"] = config.select or FIRST_CRITERION
    return values


def describe(criterion: str | None) -> str:
    """The words on a criterion, whatever options are asked of it."""
    entry = CRITERIA.get((criterion or "").partition(",")[0].strip())
    return "There is no such criterion." if entry is None else explain.criterion(entry)


def build(page: Page) -> Sidebar:
    """Lay the sidebar out and put its controls into the page. The example may know the first scores."""
    default, example = RunConfig(), page.service.example_atlas
    info = (
        scores_from_atlas(example, replace(default, drop=None, select=FIRST_CRITERION)) if example else None
    )
    with gr.Sidebar(width=348, elem_id="sidebar"):
        named, upload = controls.what(default, page.service.settings)
        cut = controls.cut(default, info)
        named |= {**cut.controls, **controls.recovery(default), **controls.amounts(default)}
        with gr.Accordion("Generation", open=False):
            named |= controls.generation(default)
        with gr.Accordion("More settings", open=False):
            named |= controls.more(default)
        with gr.Row(elem_classes="gl-buttons"):
            page.run.render()
            stop = gr.Button("Stop", variant="stop", interactive=False, elem_id="stop", min_width=80)
    page.controls |= named
    page.buttons += [
        JobButtons((), stop),
        JobButtons([cut.scores.start], cut.scores.stop, cut.scores.progress),
    ]
    page.found["scores"] = cut.scores.found
    select: Any = named["select"]
    on(select.change, describe, select, cut.words)
    return Sidebar(upload, cut.picker, cut.scores)


def bind(page: Page, sidebar: Sidebar) -> None:
    """Wire what needs the page with all its tabs."""
    uploads.bind(page, sidebar.upload)
    picker.bind(page, sidebar.picker)
    scores.bind(page, sidebar.picker, sidebar.scores.start, sidebar.scores.found)
