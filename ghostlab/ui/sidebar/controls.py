"""The sidebar's controls, one for every field of RunConfig, made from what the field says of itself.

And how their values become a configuration (:func:`read`), and the other way round (:func:`fill`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.config import FIELDS, RunConfig
from ghostlab.errors import ConfigError, CutError, GhostlabError
from ghostlab.model.catalog import available
from ghostlab.pruning.registry import CRITERIA
from ghostlab.pruning.registry import resolve as resolve_criterion
from ghostlab.recovery.registry import OPERATORS, resolve
from ghostlab.settings import Settings
from ghostlab.spec import GROUPS, RecoverySpec
from ghostlab.text.corpora import CORPORA, PASTE
from ghostlab.text.uploads import suffixes
from ghostlab.ui import explain
from ghostlab.ui.service import requests
from ghostlab.ui.sidebar.picker import BY_CRITERION, BY_HAND

FIRST_CRITERION = "streamline"
AMOUNTS = (("sequences", "length", "held_out"),)
GENERATION = (("prompt",), ("prompt_format",), ("new_tokens", "temperature", "top_p"))
MORE = (("rank", "ridge"), ("seed", "batch"), ("bos", "dtype"), ("order",), ("held_out_text",), ("revision",))
"""Fields by where they stand: rows of controls."""
_CUT = ("drop", "select", "count")
_IN_SIGHT = ("drop", *AMOUNTS[0])
"""Controls that no accordion hides: only there is a message beside the control sure to be seen."""
UNKNOWN = "recover"
BOXES = (UNKNOWN, *(f"recover_{group}" for group in GROUPS))
"""Names of the boxes; the first holds names from a link that no operator has."""
_TITLES = {UNKNOWN: "Unknown operators", **{f"recover_{group}": title for group, title in GROUPS.items()}}


def control(name: str, **changes: Any) -> Component:
    """The control of a field; ``changes`` are arguments of the component that the field does not know."""
    field = FIELDS[name]
    options: dict[str, Any] = {"label": field.label, "info": field.help, "elem_id": name, **changes}
    value = options.pop("value", field.default)
    if field.choices or "choices" in options:
        return gr.Dropdown(options.pop("choices", list(field.choices)), value=value, **options)
    if field.kind is str:
        return gr.Textbox(value or "", **{"max_lines": 1, **options})
    return gr.Number(value, **({"precision": 0} if field.kind is int else {"step": 0.05}), **options)


def rows(names: Sequence[Sequence[str]]) -> dict[str, Component]:
    """Controls of fields, row by row; where three share a row there is no room for help."""
    controls: dict[str, Component] = {}
    for row in names:
        changes: dict[str, Any] = {"min_width": 88} if len(row) > 1 else {}
        if len(row) > 2:
            changes["info"] = None
        with gr.Row():
            controls |= {name: control(name, **changes) for name in row}
    return controls


def source(settings: Settings) -> tuple[dict[str, Component], gr.UploadButton]:
    """Model and text, and the button for a file of one's own."""
    paths = ", a local folder or a .gguf file" if settings.limits.local_paths else ""
    files = ", a file" if settings.limits.local_paths else ""
    most = settings.limits.parameters
    models = [entry.source for entry in available() if most is None or entry.outline.total <= most]
    model = control(
        "model", choices=models, allow_custom_value=True,
        info=f"From the list, or any hub id (org/name){paths}.",
    )  # fmt: skip
    text = control(
        "text", choices=list(CORPORA), allow_custom_value=True,
        info=f"To fit and to evaluate on. From the list{files} or hf:dataset/config:split:column.",
    )  # fmt: skip
    with gr.Accordion("Use a text of your own", open=False, elem_id="own-text"):
        kinds = suffixes(settings)
        endings = " ".join(kind.removeprefix(".") for kind in kinds)
        upload = gr.UploadButton(
            f"Upload {endings} (up to {settings.limits.upload_bytes / 1e6:g} MB)", file_types=list(kinds),
            type="filepath", size="sm", elem_id="upload",
        )  # fmt: skip
        pasted = gr.Textbox(
            "", label="Pasted text", lines=5, max_lines=10, elem_id="pasted", max_length=2_000_000,
            info="Used instead of the text above while it is not empty.",
        )  # fmt: skip
    return {"model": model, "text": text, "pasted": pasted}, upload


def cut() -> dict[str, Component]:
    """The blocks by name, or a criterion and a count: the latter two are hidden at first."""
    return {
        "drop": control("drop", info="The same in words, stop not included: 20:25 or 10:12, 27."),
        "select": control(
            "select", choices=list(CRITERIA), value=FIRST_CRITERION, visible=False, allow_custom_value=True,
            info="From the list; options after it: shortgpt,convention=flat.",
        ),
        "count": control("count", visible=False, info=None),
    }  # fmt: skip


def operators(recoveries: Sequence[RecoverySpec]) -> dict[str, Component]:
    """A box to tick operators in for each kind, and a field for more with options; by name."""
    with gr.Group(elem_id="operators"):
        boxes: dict[str, Component] = {
            name: gr.CheckboxGroup(label=_TITLES[name], elem_id=name.replace("_", "-"), **box)
            for name, box in _boxes(recoveries).items()
        }
        boxes["typed"] = gr.Textbox(
            "", label="More operators, with options", max_lines=3, elem_id="typed",
            placeholder="ghost,rank=64  affine,ridge=1e-3",
        )  # fmt: skip
    return boxes


def tick(recoveries: Sequence[RecoverySpec]) -> dict[str, Any]:
    """Updates that tick these and nothing else."""
    return {**{name: gr.CheckboxGroup(**box) for name, box in _boxes(recoveries).items()}, "typed": ""}


def _boxes(recoveries: Sequence[RecoverySpec]) -> dict[str, dict[str, Any]]:
    """Choices and ticks of each box: all operators of its kind, and those that are ticked with options."""
    boxes: dict[str, dict[str, Any]] = {name: {"choices": [], "value": []} for name in BOXES}
    for name, entry in OPERATORS.items():
        boxes[f"recover_{entry.group}"]["choices"].append((explain.full_name(entry), name))
    for spec in recoveries:
        known, name = OPERATORS.get(spec.method), str(spec)
        box = boxes[f"recover_{known.group}" if known else UNKNOWN]
        box["value"].append(name)
        if all(value != name for _, value in box["choices"]):
            box["choices"].append((explain.full_name(known, spec.label) if known else name, name))
    return {name: {**box, "visible": bool(box["choices"])} for name, box in boxes.items()}


def read(values: Mapping[str, Any]) -> RunConfig:
    """The configuration that the controls' values say, by name.

    Raises:
        GhostlabError: For the first value that cannot work, in one sentence.
    """
    cut = ("drop",) if values["chooser"] == BY_HAND else ("select", "count")
    ticked = [spec for name in BOXES for spec in values[name] or ()]
    recover = [*map(RecoverySpec.parse, ticked), *RecoverySpec.parse_all(values["typed"] or "")]
    names = [name for name in FIELDS if name != "recover" and (name in cut or name not in _CUT)]
    return read_some(values, names, recover=tuple(dict.fromkeys(recover)))


def read_some(values: Mapping[str, Any], names: Iterable[str], **rest: Any) -> RunConfig:
    """The configuration that some controls alone say; raises as :func:`read`."""
    settings: dict[str, Any] = {"drop": None, **rest}
    for name in names:
        field, value = FIELDS[name], values[name]
        if isinstance(value, str) and field.optional and name not in _CUT:
            value = value.strip() or None
        if value is None and field.kind in (int, float) and not field.optional:
            raise ConfigError(f"'{field.label}' is empty.", "Give a number.", name)
        settings[name] = value
    if pasted := (values["pasted"] or "").strip():
        settings["text"] = PASTE + pasted
    return RunConfig.from_dict(settings)


def problem(values: Mapping[str, Any], settings: Settings) -> tuple[str, str]:
    """The name of a control in sight and what is wrong with it; two empty words when nothing is."""
    by_hand = values["chooser"] == BY_HAND
    try:
        name = "typed"
        resolve(RecoverySpec.parse_all(values["typed"] or ""))
        name = "select"
        resolve_criterion(FIRST_CRITERION if by_hand else values["select"] or "")
        name = ""
        requests.check(read(values), settings)
    except CutError as error:
        return "drop" if by_hand else "count", str(error)
    except GhostlabError as error:
        setting = getattr(error, "setting", "")
        name = name or (setting if setting in _IN_SIGHT else "")
        return name, str(error) if name else ""
    return "", ""


def fill(config: RunConfig) -> dict[str, Any]:
    """Updates that make the controls say ``config``, by name; the inverse of :func:`read`."""
    values = {name: getattr(config, name) for name in FIELDS}
    values |= {name: values[name] or "" for name, field in FIELDS.items() if field.kind is str}
    pasted = config.text.startswith(PASTE)
    values["pasted"] = config.text.removeprefix(PASTE) if pasted else ""
    values["text"] = RunConfig.text if pasted else config.text
    values["chooser"] = BY_CRITERION if config.select else BY_HAND
    values["select"] = config.select or FIRST_CRITERION
    return values | tick(config.recover)
