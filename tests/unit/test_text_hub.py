"""Data sets of the hub as a source of text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import IterableDataset
from datasets.exceptions import DatasetNotFoundError

from ghostlab.errors import TextError
from ghostlab.settings import PUBLIC_LIMITS, Settings
from ghostlab.text.corpora import load_text
from ghostlab.text.hub import HubText
from tests.helpers.documents import DOCUMENTS
from tests.helpers.fake_hub import fake_data_hub

pytestmark = pytest.mark.unit

LOCAL = Settings()
PUBLIC = Settings("public", limits=PUBLIC_LIMITS)


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


@pytest.mark.parametrize("name", ["private/data", "folder", "text", "csv", "imagefolder", "text/train"])
def test_files_of_the_server_are_never_read_nor_revealed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path / "private" / "data", tmp_path / "folder", tmp_path):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "train.txt").write_text("secret " * 500)
        (folder / "train.csv").write_text("text\nsecret\n" * 500)
    monkeypatch.chdir(tmp_path)
    for source in (f"hf:{name}:train", "hf:no/folder:train"):
        with (
            fake_data_hub({}, tmp_path / "cache"),
            pytest.raises(TextError, match="on the hub"),
        ):
            load_text(source, settings=PUBLIC)
