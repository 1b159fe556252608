"""The recovery operators of the sidebar: ticked in one box per kind, or typed with options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr
from gradio.components import Component

from ghostlab.recovery.registry import OPERATORS
from ghostlab.spec import GROUPS, RecoverySpec
from ghostlab.ui import explain

UNKNOWN = "recover"
BOXES = (UNKNOWN, *(f"recover_{group}" for group in GROUPS))
"""Names of the boxes; the first holds names from a link that no operator has."""
_TITLES = {UNKNOWN: "Unknown operators", **{f"recover_{group}": title for group, title in GROUPS.items()}}


def build(asked: Sequence[RecoverySpec]) -> dict[str, Component]:
    """The boxes and the field, by name; to be called inside ``gr.Blocks``."""
    with gr.Group(elem_id="operators"):
        boxes: dict[str, Component] = {
            name: gr.CheckboxGroup(label=_TITLES[name], elem_id=name.replace("_", "-"), **box)
            for name, box in _boxes(asked).items()
        }
        boxes["typed"] = gr.Textbox(
            "", label="More operators, with options", max_lines=3, elem_id="typed",
            placeholder="ghost,rank=64  affine,ridge=1e-3",
        )  # fmt: skip
    return boxes


def tick(asked: Sequence[RecoverySpec]) -> dict[str, Any]:
    """Updates that tick these and nothing else."""
    return {**{name: gr.CheckboxGroup(**box) for name, box in _boxes(asked).items()}, "typed": ""}


def _boxes(asked: Sequence[RecoverySpec]) -> dict[str, dict[str, Any]]:
    """Choices and ticks of each box: all operators of its kind, and those that are ticked with options."""
    boxes: dict[str, dict[str, Any]] = {name: {"choices": [], "value": []} for name in BOXES}
    for name, entry in OPERATORS.items():
        boxes[f"recover_{entry.group}"]["choices"].append((explain.full_name(entry), name))
    for spec in asked:
        known, name = OPERATORS.get(spec.method), str(spec)
        box = boxes[f"recover_{known.group}" if known else UNKNOWN]
        box["value"].append(name)
        if all(value != name for _, value in box["choices"]):
            box["choices"].append((explain.full_name(known, spec.label) if known else name, name))
    return {name: {**box, "visible": bool(box["choices"])} for name, box in boxes.items()}
