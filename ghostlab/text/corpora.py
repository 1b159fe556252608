"""Where text comes from: the registry of built-in corpora, files, pasted text and data sets of the hub."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ghostlab.errors import TextError
from ghostlab.progress import SILENT, Progress
from ghostlab.registry import Registry
from ghostlab.settings import Settings
from ghostlab.text import embedded
from ghostlab.text.documents import Text, divide
from ghostlab.text.files import SUFFIXES, read_file
from ghostlab.text.hub import PREFIX, HubText, read_hub
from ghostlab.text.mixture import mix, parse_mixture
from ghostlab.text.presets import PRESETS, load_preset
from ghostlab.text.uploads import UPLOAD, find

PASTE = "paste:"


@dataclass(frozen=True)
class Corpus:
    """A corpus: its name, its title and licence for people, and what yields its documents."""

    name: str
    title: str
    licence: str
    read: Callable[[], Iterator[str]]


BUILT_IN = (
    Corpus("wikipedia", "Wikipedia articles (SQuAD)", "CC BY-SA 4.0", embedded.wikipedia),
    Corpus("stories", "Stories and articles (CoQA)", "mixed, see CoQA", embedded.stories),
    Corpus("novels", "Novels (LAMBADA)", "as upstream (CC BY 4.0)", embedded.novels),
)
CORPORA = Registry("corpus", Corpus, ("ghostlab.text.corpora:BUILT_IN",), group="ghostlab.corpora")


def load_text(
    source: str = "wikipedia",
    *,
    settings: Settings | None = None,
    progress: Progress = SILENT,
    limit_bytes: int = 8_000_000,
) -> Text:
    """Load a text and divide it into a calibration and a held-out part.

    Args:
        source: ``wikipedia``, ``stories``, ``novels``; from the hub, with the papers' windows, ``wikitext2``,
            ``ptb``, ``ptb_new``, ``c4``; a .txt, .md, .jsonl, .csv or .parquet file;
            ``hf:dataset/config:split:column``; ``paste:`` followed by the text; or several of these (but not
            pasted text) as a mixture, ``wikipedia+novels`` or ``3*wikipedia+1*novels``.
        settings: Host settings; read from the environment when not given.
        progress: Told how much has been read; a stop is obeyed between documents.
        limit_bytes: Read no more than this many bytes of UTF-8; the document that reaches it is cut there.

    Raises:
        TextError: If the source is unknown, unreadable, or holds too little to be divided.
    """
    settings = settings or Settings.from_env()
    if _is_mixture(source, settings):
        parts = parse_mixture(source)
        texts = [
            load_text(part.source, settings=settings, progress=steps, limit_bytes=limit_bytes)
            for part, steps in zip(parts, progress.shares(len(parts)), strict=True)
        ]
        return mix(texts, parts, source)
    if source in PRESETS:
        return load_preset(source, partial(_limited, limit=limit_bytes), progress)
    name, title, licence, documents = _open(source, settings)
    taken = _limited(documents, progress, f"Reading {title}", limit=limit_bytes)
    return divide(taken, name=name, title=title, licence=licence)


def text_from_string(content: str, name: str = "pasted") -> Text:
    """Pasted text as a source: its first four fifths for calibration, its last fifth held out.

    Raises:
        TextError: If it is empty or a single sentence.
    """
    return divide([content], name=name, title="The pasted text", licence="your own")


def sources_of(source: str, settings: Settings) -> list[str]:
    """The texts that ``source`` names: the parts of a mixture, or itself.

    Raises:
        TextError: If it is a mixture that is not understood.
    """
    mixed = _is_mixture(source, settings)
    return [part.source for part in parse_mixture(source)] if mixed else [source]


def _is_mixture(source: str, settings: Settings) -> bool:
    """Whether ``source`` names several texts; a file may have a plus sign in its name."""
    if "+" not in source or source.startswith(PASTE):
        return False
    return not (settings.limits.local_paths and Path(source).expanduser().exists())


def _open(source: str, settings: Settings) -> tuple[str, str, str, Iterable[str]]:
    """Name, title, licence and documents of a source."""
    if source in CORPORA:
        corpus = CORPORA[source]
        return source, corpus.title, corpus.licence, corpus.read()
    if source.startswith(PASTE):
        return "pasted", "The pasted text", "your own", [source.removeprefix(PASTE)]
    if source.startswith(PREFIX):
        spec = HubText.parse(source)
        return source, source.removeprefix(PREFIX), "see the data set's page", read_hub(spec)
    if source.startswith(UPLOAD):
        path = find(source, settings)
        return path.name, path.name, "your own file", read_file(path)
    if not settings.limits.local_paths:
        raise TextError(
            f"'{source}' is not a text that this server offers.",
            f"Use {_names()}, {PREFIX}dataset:split, or paste the text.",
        )
    path = Path(source).expanduser()
    if not path.exists() and path.suffix.lower() not in SUFFIXES:
        raise TextError(
            f"There is no text '{source}'.",
            f"Use {_names()}, {PREFIX}dataset:split, or a {', '.join(SUFFIXES)} file.",
        )
    return path.name, path.name, "your own file", read_file(path)


def _limited(documents: Iterable[str], progress: Progress, message: str, *, limit: int) -> Iterator[str]:
    """Documents up to ``limit`` bytes in all; the last one is cut to fit."""
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


def _names() -> str:
    return ", ".join([*CORPORA, *PRESETS])
