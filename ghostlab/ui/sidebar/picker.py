"""The block picker: the model as a strip of its layers, clicked and dragged over in the browser alone.

Its value is the text of the blocks to drop, the same as that of the field below it; ``picker.js`` draws,
listens and counts. From here it gets what to draw: the outline of the model and the scores of a criterion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from ghostlab.config import RunConfig
from ghostlab.cut import parse_cut
from ghostlab.errors import GhostlabError
from ghostlab.model import outline
from ghostlab.model.catalog import Outline
from ghostlab.plots import formats as fmt
from ghostlab.plots import style
from ghostlab.results.records import SelectionInfo
from ghostlab.settings import Settings
from ghostlab.ui import html, theme
from ghostlab.ui.page import Page, on
from ghostlab.ui.service.laboratory import load

BY_HAND, BY_CRITERION = "Blocks I name", "A criterion"
"""Who decides what is dropped."""
_SHORTEST = 0.06
"""Length of the least score's bar, as a share."""
_ESTIMATE = (
    "An estimate before any measurement: multiplications per token in layers and output matrix, with all of "
    "them over without those dropped. Attention over a long context, memory traffic and what a recovery adds "
    "are not counted."
)
_FACTS = {
    "blocks": ("Layers", ""),
    "parameters": ("Parameters", ""),
    "memory": ("Memory", ""),
    "speed": ("Speed-up", _ESTIMATE),
    "keep": ("Keeps", "The layers that stay, as mergekit writes them: layer_range, end not included."),
}
_NOT_SEEN = "The layers of {} are shown once it has been loaded; name blocks in the field, and press Run."


def build(default: RunConfig, info: SelectionInfo | None = None) -> gr.HTML:
    """The picker on the default model, with the scores of a criterion; to be called inside ``gr.Blocks``."""
    return _drawn(
        outline.stored(default.model),
        value=default.drop or "",
        html_template=html.piece("picker", _FACTS),
        js_on_load=theme.static("picker.js"),
        apply_default_css=False,
        label="Layers of the model",
        elem_id="picker",
        by_hand=True,
        scores=scores(info),
    )


def look(model: str | None, revision: str | None, settings: Settings) -> Iterator[gr.HTML]:
    """What the picker shows of a model: at once what its configuration says, then what is to be counted.

    Of a hub model that was never loaded, the configuration alone is fetched, in a few seconds or not at all.
    """
    source = (model or "").strip()
    if known := outline.stored(source):
        yield _drawn(known)
        return
    try:
        at = (revision or "").strip() or None
        folder = outline.config_folder(source, at, settings)
        if folder is None and outline.on_the_hub(source, settings):
            yield _drawn(None, f"Looking {source} up on the hub\N{HORIZONTAL ELLIPSIS}")
            load()
            from ghostlab.model.hub import fetch_config

            folder = fetch_config(source, at, outline.fetched(settings))
        if folder is None:
            yield _drawn(None, _NOT_SEEN.format(source))
            return
        path = Path(source).expanduser()
        name = path.resolve().name if folder == path else source
        plain = outline.read_plain(folder, name)
        yield _drawn(plain)
        load()
        from ghostlab.model.preflight import measure, read_config

        yield _drawn(measure(read_config(folder), name))
    except GhostlabError as error:
        yield _drawn(None, str(error))


def _drawn(model: Outline | None, note: str = "", **options: Any) -> gr.HTML:
    """The picker with what ``picker.js`` draws a model from, or a note why it cannot."""
    return gr.HTML(outline=model.to_dict() if model else None, note=note, **options)


def choose(blocks: str) -> list[str]:
    """Values of the sidebar's choice and blocks to drop that name these blocks; tells the visitor."""
    gr.Info(f"Blocks to drop: {blocks}. Press Run to measure them.", title="Chosen", duration=5)
    return [BY_HAND, blocks]


def scores(info: SelectionInfo | None) -> dict[str, Any] | None:
    """Bars for the blocks: each candidate's score at the block where it starts.

    Returns:
        ``heights`` (0 to 1, ``None`` where there is no score) and ``words`` per block, the ``chosen`` blocks,
        and a ``legend``; ``None`` for no scores.
    """
    if info is None:
        return None
    candidates = [parse_cut(name).blocks[0] for name in info.labels]
    layers = max((block.stop for block in candidates), default=0)
    heights: list[float | None] = [None] * layers
    words = [""] * layers
    scale = _scale(style.finite(info.scores))
    for block, score in zip(candidates, info.scores, strict=True):
        if math.isfinite(score):
            heights[block.start] = scale(score)
            of = "" if block.size == 1 else f" of {block}"
            words[block.start] = f"{info.criterion} score{of} {fmt.number(score)}"
    single = all(block.size == 1 for block in candidates)
    legend = f"{info.criterion}{'' if single else ' from that layer on'}: shortest goes first"
    return {"heights": heights, "words": words, "chosen": info.chosen, "legend": legend}


def _scale(scores: list[float]) -> Callable[[float], float]:
    """From a score to the length of its bar, logarithmic where the scores' axis would be."""
    curve: Callable[[float], float] = math.log if style.axis_type(scores) == "log" else float
    low, high = (curve(min(scores)), curve(max(scores))) if scores else (0.0, 0.0)
    return lambda score: _SHORTEST + (1 - _SHORTEST) * (curve(score) - low) / ((high - low) or 1.0)


def bind(page: Page, picker: gr.HTML) -> None:
    """Wire the picker with the field of the blocks, both ways and without the server, and with the model."""
    drop, chooser, model, revision = (
        page.controls[name] for name in ("drop", "chooser", "model", "revision")
    )
    settings = page.service.settings
    drop.change(None, drop, picker, js="(text) => text ?? ''")
    picker.input(None, picker, [drop, chooser], js=f"(text) => [text, '{BY_HAND}']")

    def draw(source: str | None, asked_revision: str | None) -> Iterator[gr.HTML]:
        yield from look(source, asked_revision, settings)

    on([model.change, revision.change], draw, [model, revision], picker)
