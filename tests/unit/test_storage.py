"""Files and folders appear whole or not at all."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from ghostlab.storage import read_json, whole, write_text

pytestmark = pytest.mark.unit


def test_a_file_is_replaced_only_when_the_writing_ended_well(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file.json"
    write_text(target, "{}")
    with suppress(ZeroDivisionError), whole(target) as partial:
        partial.write_text("half")
        _ = 1 / 0
    assert [path.name for path in target.parent.iterdir()] == ["file.json"]
    assert read_json(target) == {}


def test_a_folder_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    for name in ("old", "new"):
        with whole(target) as partial:
            partial.mkdir()
            (partial / name).touch()
    with suppress(ZeroDivisionError), whole(target) as partial:
        partial.mkdir()
        _ = 1 / 0
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["folder", "folder/new"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_what_is_no_json_object_reads_as_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.json").write_bytes(content)
    assert read_json(tmp_path / "x.json") is None
    assert read_json(tmp_path / "missing.json") is None
