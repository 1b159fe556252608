"""The texts of the papers' perplexity tables: WikiText-2, PTB and C4 from the hub, with their own windows.

An operator is fitted on the training part and shown on the part that the papers show, cut into windows as
they cut it. The rules are those of GPTQ's ``datautils.py``, which LinearPatch uses too. Ghosted Layers
streams and shuffles C4 instead: its figures there stem from other windows, not comparable to the digit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ghostlab.progress import Progress
from ghostlab.text.documents import Documents, Protocol, Text
from ghostlab.text.hub import HubText, read_hub

_TITLE = re.compile(r"\s*= [^=].* =\s*")
SENTENCES = 40
"""Sentences of PTB, which has lost its paragraphs, that are kept together as one document to fit on."""


@dataclass(frozen=True)
class Preset:
    """A text of the papers.

    Attributes:
        title, licence: For people.
        train: What operators are fitted on.
        documents: Makes documents of the rows of ``train``.
        shown: What figures are shown on.
        protocol: How that is cut into windows.
    """

    title: str
    licence: str
    train: HubText
    documents: Callable[[Iterable[str]], Iterable[str]]
    shown: HubText
    protocol: Protocol


def articles(rows: Iterable[str]) -> Iterator[str]:
    """WikiText's lines as articles; a line such as ``= Title =`` begins one."""
    lines: list[str] = []
    for row in rows:
        if _TITLE.fullmatch(row) and lines:
            yield "".join(lines)
            lines = []
        lines.append(row if row.endswith("\n") else row + "\n")
    yield "".join(lines)


def passages(rows: Iterable[str]) -> Iterator[str]:
    """Sentences in groups, each a document."""
    group: list[str] = []
    for row in rows:
        group.append(row.strip())
        if len(group) == SENTENCES:
            yield "\n".join(group)
            group = []
    yield "\n".join(group)


def _wikitext(split: str) -> HubText:
    return HubText("Salesforce/wikitext/wikitext-2-raw-v1", split, "text")


def _ptb(split: str) -> HubText:
    """From the hub's own conversion to Parquet: the data set itself is a script."""
    return HubText(
        "ptb-text-only/ptb_text_only",
        split,
        "sentence",
        revision="refs/convert/parquet",
        files=f"penn_treebank/{split}/0000.parquet",
    )


def _c4(split: str, parts: str) -> HubText:
    return HubText("allenai/c4", split, "text", files=f"en/c4-{split}.00000-of-{parts}.json.gz")


PRESETS: dict[str, Preset] = {
    "wikitext2": Preset(
        "WikiText-2 (test)",
        "CC BY-SA 3.0",
        _wikitext("train"),
        articles,
        _wikitext("test"),
        Protocol("GPTQ", "\n\n"),
    ),
    "ptb": Preset(
        "Penn Treebank (validation)",
        "LDC user agreement",
        _ptb("train"),
        passages,
        _ptb("validation"),
        Protocol("GPTQ", "\n\n"),
    ),
    "ptb_new": Preset(
        "Penn Treebank (test)",
        "LDC user agreement",
        _ptb("train"),
        passages,
        _ptb("test"),
        Protocol("GPTQ, new", " "),
    ),
    "c4": Preset(
        "C4 (validation, first part)",
        "ODC-BY",
        _c4("train", "01024"),
        lambda rows: rows,
        _c4("validation", "00008"),
        Protocol("GPTQ", None),
    ),
}


def load_preset(
    name: str, limit: Callable[[Iterable[str], Progress, str], Iterable[str]], progress: Progress
) -> Text:
    """Read a preset.

    Args:
        name: A key of :data:`PRESETS`.
        limit: Cuts the training part to a size; the part that is shown is read whole, or its windows would be
            others than the papers'.
        progress: Told how much has been read.

    Raises:
        TextError: If the hub cannot be reached.
    """
    preset = PRESETS[name]
    message = f"Reading {preset.title}"
    shown = list(progress.part(0.0, 0.6).over(read_hub(preset.shown), 50_000, message))
    join = preset.protocol.join
    texts = tuple(shown) if join is None else (join.join(shown),)
    documents = limit(preset.documents(read_hub(preset.train)), progress.part(0.6, 1.0), message)
    unique = dict.fromkeys(text.strip() for text in documents)
    held_out = Documents(f"{name}, {preset.shown.split}", texts, preset.protocol)
    calibration = Documents(f"{name}, {preset.train.split}", tuple(text for text in unique if text))
    return Text(name, preset.title, preset.licence, calibration, held_out, held_out)
