"""Where text comes from: the registry of built-in corpora, files, pasted text and data sets of the hub."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ghostlab.errors import TextError
from ghostlab.progress import SILENT, Progress
from ghostlab.registry import Registry
from ghostlab.settings import Settings
from ghostlab.storage import local_path
from ghostlab.text.documents import Corpus, Text
from ghostlab.text.files import SUFFIXES, read_file
from ghostlab.text.hub import PREFIX, HubText, read_hub
from ghostlab.text.mixture import Part, mix, parse_mixture
from ghostlab.text.uploads import UPLOAD, find

PASTE = "paste:"

CORPORA = Registry(
    "corpus", Corpus, ["ghostlab.text.embedded:CORPORA", "ghostlab.text.presets:PRESETS"], "ghostlab.corpora"
)
"""Texts by name: the built-in ones, those of the papers, and those of plug-ins."""


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
        progress: Reports how much has been read; a stop is obeyed between documents.
        limit_bytes: Read no more than this many bytes of UTF-8; the document that reaches it is cut there.

    Raises:
        TextError: If the source is unknown, unreadable, or holds too little to be divided.
    """
    settings = settings or Settings.from_env()
    parts = _parts(source, settings)
    if len(parts) > 1:
        texts = [
            load_text(part.source, settings=settings, progress=steps, limit_bytes=limit_bytes)
            for part, steps in zip(parts, progress.shares(len(parts)), strict=True)
        ]
        return mix(texts, parts, source)
    corpus = CORPORA.get(source) or _open(source, settings)
    return corpus.load(limit_bytes, progress)


def sources_of(source: str, settings: Settings) -> list[str]:
    """The texts that ``source`` names: the parts of a mixture, or itself.

    Raises:
        TextError: If it is a mixture that is not understood.
    """
    return [part.source for part in _parts(source, settings)]


def _parts(source: str, settings: Settings) -> list[Part]:
    """The parts of a mixture, or the one text that it is; a file may have a plus sign in its name."""
    if "+" not in source or source.startswith(PASTE):
        return [Part(source)]
    path = local_path(source) if settings.limits.local_paths else None
    return [Part(source)] if path and path.exists() else parse_mixture(source)


def _open(source: str, settings: Settings) -> Corpus:
    """The text that a source names, which is not one of :data:`CORPORA`."""
    if source.startswith(PASTE):
        return Corpus("pasted", "The pasted text", "your own", lambda: [source.removeprefix(PASTE)])
    if source.startswith(PREFIX):
        read = partial(read_hub, HubText.parse(source))
        return Corpus(source, source.removeprefix(PREFIX), "see the data set's page", read)
    if source.startswith(UPLOAD):
        return _file(find(source, settings))
    offered = ", ".join(CORPORA)
    if not settings.limits.local_paths:
        raise TextError(
            f"'{source[:80]}' is not a text that this server offers.",
            f"Use {offered}, {PREFIX}dataset:split, or paste the text.",
        )
    local = local_path(source)
    if local is None or (not local.exists() and local.suffix.lower() not in SUFFIXES):
        raise TextError(
            f"There is no text '{source[:80]}'.",
            f"Use {offered}, {PREFIX}dataset:split, or a {', '.join(SUFFIXES)} file.",
        )
    return _file(local)


def _file(path: Path) -> Corpus:
    return Corpus(path.name, path.name, "your own file", partial(read_file, path))
