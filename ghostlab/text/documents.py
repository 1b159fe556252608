"""Documents, corpora that yield them, and their division into a calibration and a held-out part."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ghostlab.errors import TextError
from ghostlab.progress import Progress

HELD_OUT_SHARE = 0.2
FEW = 5
"""With fewer documents than this the text is cut in one place instead of document by document."""

PARAGRAPH = "\n\n"


@dataclass(frozen=True)
class Protocol:
    """How a paper cuts its evaluation text into windows; see :mod:`ghostlab.text.presets`.

    ``join`` stands between documents, which are then one text; ``None`` if windows come from documents.
    """

    name: str
    join: str | None


@dataclass(frozen=True)
class Documents:
    """Texts, each independent of the others, in the order of their source.

    Attributes:
        name: What they are, for messages and records: ``wikipedia, held out``.
        protocol: A paper's way to cut them into windows; otherwise windows are drawn from all of them.
    """

    name: str
    texts: tuple[str, ...]
    protocol: Protocol | None = None

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def characters(self) -> int:
        """Total length in characters."""
        return sum(len(text) for text in self.texts)


@dataclass(frozen=True)
class Text:
    """A source of text, divided once and for all.

    Attributes:
        name: What was given as ``--text``, shortened for display.
        calibration: What operators are fitted on.
        held_out: What figures are measured on; shares no document with ``calibration``.
        whole: All documents undivided and in order, for a text that is only evaluated on.
    """

    name: str
    title: str
    licence: str
    calibration: Documents
    held_out: Documents
    whole: Documents


@dataclass(frozen=True)
class Corpus:
    """A text that is offered by name; ``read`` yields its documents, one independent text each."""

    name: str
    title: str
    licence: str
    read: Callable[[], Iterable[str]]

    @property
    def about(self) -> str:
        """What it is, in a few words."""
        return self.title

    def load(self, limit: int, progress: Progress) -> Text:
        """Read it, up to ``limit`` bytes, and divide it."""
        documents = limited(self.read(), limit, progress, f"Reading {self.title}")
        return divide(documents, name=self.name, title=self.title, licence=self.licence)


def limited(documents: Iterable[str], limit: int, progress: Progress, message: str) -> Iterator[str]:
    """Documents up to ``limit`` bytes of UTF-8 in all; the last one is cut to fit."""
    left = limit
    progress.at(0.0, message)
    for document in documents:
        encoded = document.encode("utf-8", "replace")
        if len(encoded) >= left:
            yield encoded[:left].decode("utf-8", "ignore")
            break
        left -= len(encoded)
        yield document
        progress.at(1 - left / limit, message)
    progress.at(1.0, message)


def divide(texts: Iterable[str], *, name: str, title: str, licence: str) -> Text:
    """Divide documents into calibration and held-out part, the same way every time and for every seed.

    Duplicates collapse and empty documents vanish. About one document in five is held out, decided by its
    hash alone; of fewer than five documents the last fifth of the whole is held out, cut between paragraphs.

    Raises:
        TextError: If there is no text, or a single paragraph that cannot be divided.
    """
    unique = tuple(dict.fromkeys(text for text in (_clean(t) for t in texts) if text))
    if not unique:
        raise TextError(f"{title} holds no text.", "Give a source with some paragraphs of prose.")
    held = {text for text in unique if _held_out(text)}
    if len(unique) < FEW or not held or len(held) == len(unique):
        calibration, held_out = _cut_once(PARAGRAPH.join(unique), title)
    else:
        calibration = tuple(text for text in unique if text not in held)
        held_out = tuple(text for text in unique if text in held)
    parts = Documents(f"{name}, calibration", calibration), Documents(f"{name}, held out", held_out)
    return Text(name, title, licence, *parts, whole=Documents(name, unique))


def _clean(text: str) -> str:
    """Without outer white space, and without lone surrogates, which no tokenizer accepts."""
    return text.strip().encode("utf-8", "replace").decode()


def _held_out(text: str) -> bool:
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") < HELD_OUT_SHARE * 2**64


def _cut_once(text: str, title: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """First four fifths and last fifth of a text, cut at the nearest end of a paragraph, line or sentence."""
    wanted = (1 - HELD_OUT_SHARE) * len(text)
    for mark in (PARAGRAPH, "\n", ". "):
        ends = [match.end() for match in re.finditer(re.escape(mark), text)]
        ends = [end for end in ends if 0.5 * len(text) <= end <= 0.95 * len(text)]
        if ends:
            cut = min(ends, key=lambda end: abs(end - wanted))
            return (text[:cut].strip(),), (text[cut:].strip(),)
    raise TextError(
        f"{title} is a single piece of {len(text)} characters that cannot be divided.",
        "A part must be held out for evaluation: give several paragraphs or documents.",
    )


def sections(text: str, size: int) -> tuple[str, ...]:
    """Cut a document into pieces of about ``size`` characters, best between paragraphs."""
    if len(text) <= 1.5 * size:
        return (text,)
    pieces, start = [], 0
    while len(text) - start > 1.5 * size:
        stop = _break_near(text, start + size // 2, start + size + size // 2, start + size)
        pieces.append(text[start:stop].strip())
        start = stop
    pieces.append(text[start:].strip())
    return tuple(piece for piece in pieces if piece)


def _break_near(text: str, low: int, high: int, wanted: int) -> int:
    """The best place to cut between ``low`` and ``high``, near ``wanted``."""
    for mark in (PARAGRAPH, "\n", ". ", " "):
        after = text.find(mark, wanted, high)
        before = text.rfind(mark, low, wanted)
        ends = [place + len(mark) for place in (before, after) if place >= 0]
        if ends:
            return min(ends, key=lambda place: abs(place - wanted))
    return wanted
