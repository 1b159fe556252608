"""The texts of the papers' perplexity tables: WikiText-2, PTB and C4 from the hub, with their own windows.

An operator is fitted on the training part and evaluated on the part that the papers report, cut into windows
as they cut it, token for token. The rules are those of GPTQ's ``datautils.py``, which LinearPatch uses too.
Ghosted Layers streams and shuffles C4 instead: its figures there stem from other windows, and are not
comparable to the digit.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from ghostlab.errors import TextError
from ghostlab.progress import Progress
from ghostlab.text.documents import Corpus, Documents, Protocol, Text, limited
from ghostlab.text.hub import HubText, read_hub

if TYPE_CHECKING:
    from torch import Tensor

_TITLE = re.compile(r"\s*= [^=].* =\s*")
SENTENCES = 40
"""Sentences of PTB, which has lost its paragraphs, that are kept together as one document to fit on."""
DRAWN = 256
"""Windows that GPTQ draws from C4, with seed 0."""

Span = tuple["Tensor", "Tensor"]
"""Token ids, and for each the UTF-8 bytes of its text; special tokens have none."""

Encode = Callable[[str], Span]


@dataclass(frozen=True)
class Preset(Corpus):
    """A text of the papers: ``read`` yields what operators are fitted on, ``reported`` is evaluated on."""

    reported: HubText
    protocol: Protocol

    @property
    def about(self) -> str:
        """What it is, in a few words."""
        return f"{self.title}, from the hub, with the papers' windows"

    def load(self, limit: int, progress: Progress) -> Text:
        """Read both parts; the reported one whole, or its windows would be others than the papers'."""
        message = f"Reading {self.title}"
        rows = list(progress.part(0.0, 0.6).over(read_hub(self.reported), 50_000, message))
        join = self.protocol.join
        texts = tuple(rows) if join is None else (join.join(rows),)
        documents = limited(self.read(), limit, progress.part(0.6, 1.0), message)
        unique = dict.fromkeys(text.strip() for text in documents)
        held_out = Documents(f"{self.name}, {self.reported.split}", texts, self.protocol)
        calibration = Documents(f"{self.name}, train", tuple(text for text in unique if text))
        return Text(self.name, self.title, self.licence, calibration, held_out, held_out)


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


PRESETS = (
    Preset(
        "wikitext2",
        "WikiText-2 (test)",
        "CC BY-SA 3.0",
        lambda: articles(read_hub(_wikitext("train"))),
        _wikitext("test"),
        Protocol("GPTQ", "\n\n"),
    ),
    Preset(
        "ptb",
        "Penn Treebank (validation)",
        "LDC user agreement",
        lambda: passages(read_hub(_ptb("train"))),
        _ptb("validation"),
        Protocol("GPTQ", "\n\n"),
    ),
    Preset(
        "ptb_new",
        "Penn Treebank (test)",
        "LDC user agreement",
        lambda: passages(read_hub(_ptb("train"))),
        _ptb("test"),
        Protocol("GPTQ, new", " "),
    ),
    Preset(
        "c4",
        "C4 (validation, first part)",
        "ODC-BY",
        lambda: read_hub(_c4("train", "01024")),
        _c4("validation", "00008"),
        Protocol("GPTQ", None),
    ),
)


# -- windows as the papers cut them ------------------------------------------------------------------------


def spans(documents: Documents, encode: Encode, size: int, count: int | None) -> list[Span]:
    """Spans of ``size`` tokens as the protocol of ``documents`` takes them, the first ``count``; else all.

    A protocol that joins its documents takes one span after the other and drops what is left over at the end.
    One that does not takes each span from a random place of a random document that is longer.

    Raises:
        TextError: If there is none.
    """
    assert documents.protocol is not None
    windows = list(
        islice(_drawn(documents, encode, size), count or DRAWN)
        if documents.protocol.join is None
        else islice(_consecutive(encode(documents.texts[0]), size), count)
    )
    if not windows:
        raise TextError(f"{documents.name} holds no window of {size} tokens.", "Lower the length.")
    return windows


def _consecutive(encoded: Span, size: int) -> Iterator[Span]:
    tokens, sizes = encoded
    for start in range(0, len(tokens) - size + 1, size):
        yield tokens[start : start + size], sizes[start : start + size]


def _drawn(documents: Documents, encode: Encode, size: int) -> Iterator[Span]:
    """The same documents and places as ``random.seed(0)`` and ``randint`` give GPTQ."""
    chance = random.Random(0)
    encoded: dict[int, Span] = {}
    too_short: set[int] = set()
    while len(too_short) < len(documents.texts):
        number = chance.randint(0, len(documents.texts) - 1)
        if number not in encoded:
            encoded[number] = encode(documents.texts[number])
        tokens, sizes = encoded[number]
        if len(tokens) <= size:
            too_short.add(number)
            continue
        start = chance.randint(0, len(tokens) - size - 1)
        yield tokens[start : start + size], sizes[start : start + size]
