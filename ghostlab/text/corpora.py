"""Where text comes from: the registry of built-in corpora, files, pasted text and data sets of the hub."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ghostlab.errors import TextError
from ghostlab.progress import SILENT, Progress
from ghostlab.settings import Settings
from ghostlab.text import embedded
from ghostlab.text.documents import Text, divide
from ghostlab.text.files import SUFFIXES, read_file
from ghostlab.text.hub import PREFIX, HubText, read_hub
from ghostlab.text.uploads import UPLOAD, find

PASTE = "paste:"


@dataclass(frozen=True)
class Corpus:
    """A built-in corpus: its title and licence for people, and what yields its documents."""

    title: str
    licence: str
    read: Callable[[], Iterator[str]]


CORPORA: dict[str, Corpus] = {
    "wikipedia": Corpus("Wikipedia articles (SQuAD)", "CC BY-SA 4.0", embedded.wikipedia),
    "stories": Corpus("Stories and articles (CoQA)", "mixed, see CoQA", embedded.stories),
    "novels": Corpus("Novels (LAMBADA)", "as upstream (CC BY 4.0)", embedded.novels),
}


def load_text(
    source: str = "wikipedia",
    *,
    settings: Settings | None = None,
    progress: Progress = SILENT,
    limit_bytes: int = 8_000_000,
) -> Text:
    """Load a text and divide it into a calibration and a held-out part.

    Args:
        source: ``wikipedia``, ``stories``, ``novels``; a .txt, .md, .jsonl, .csv or .parquet file;
            ``hf:dataset/config:split:column``; or ``paste:`` followed by the text itself.
        settings: Host settings; read from the environment when not given.
        progress: Told how much has been read; a stop is obeyed between documents.
        limit_bytes: Read no more than this many bytes of UTF-8; the document that reaches it is cut there.

    Raises:
        TextError: If the source is unknown, unreadable, or holds too little to be divided.
    """
    settings = settings or Settings.from_env()
    name, title, licence, documents = _open(source, settings)
    taken = _limited(documents, limit_bytes, progress, f"Reading {title}")
    return divide(taken, name=name, title=title, licence=licence)


def text_from_string(content: str, name: str = "pasted") -> Text:
    """Pasted text as a source: its first four fifths for calibration, its last fifth held out.

    Raises:
        TextError: If it is empty or a single sentence.
    """
    return divide([content], name=name, title="The pasted text", licence="your own")


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
            f"Use {', '.join(CORPORA)}, {PREFIX}dataset:split, or paste the text.",
        )
    path = Path(source).expanduser()
    if not path.exists() and path.suffix.lower() not in SUFFIXES:
        raise TextError(
            f"There is no text '{source}'.",
            f"Use {', '.join(CORPORA)}, {PREFIX}dataset:split, or a {', '.join(SUFFIXES)} file.",
        )
    return path.name, path.name, "your own file", read_file(path)


def _limited(documents: Iterable[str], limit: int, progress: Progress, message: str) -> Iterator[str]:
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
