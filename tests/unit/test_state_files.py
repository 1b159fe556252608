"""Files of states while other processes delete them, and on disks that take nothing."""

from __future__ import annotations

import errno
import os
import shutil
from io import FileIO
from pathlib import Path

import pytest
import torch

from ghostlab.calibration import store
from ghostlab.calibration.store import Budget
from ghostlab.errors import ResultError
from tests.helpers.tiny import DEPTH
from tests.unit.test_state_store import EVERY, activations, gathered, runs, size

pytestmark = pytest.mark.unit


def test_only_parts_that_nobody_can_be_writing_are_cleared(tmp_path: Path) -> None:
    budget = Budget(0, 99 * size(), tmp_path)
    gathered(activations(budget), range(2))
    (folder,) = tmp_path.iterdir()
    abandoned, living = folder / "5.ab.part", folder / "5.cd.part"
    for part in (abandoned, living):
        part.touch()
    os.utime(abandoned, (0, 0))
    gathered(activations(budget))
    assert not abandoned.exists()
    assert living.exists(), "another process may be writing it"


def test_a_file_that_becomes_shorter_while_it_is_read_is_an_error_and_not_the_end(tmp_path: Path) -> None:
    budget = Budget(0, 99 * size(), tmp_path)
    gathered(activations(budget))
    batches = activations(budget).states(EVERY)
    next(batches)
    (file,) = tmp_path.rglob("3.states")
    os.truncate(file, size() // 2)
    with pytest.raises(ResultError, match="became shorter"):
        next(batches)


@pytest.mark.parametrize("lost", ["gone", "shorter", "gone at the end", "with its folder"])
def test_a_part_that_is_taken_away_is_not_kept(tmp_path: Path, lost: str) -> None:
    found = activations(Budget(0, 99 * size(), tmp_path))
    batches = found.states(EVERY)
    done = [next(batches)]
    if lost == "gone at the end":
        done.append(next(batches))
    (part,) = tmp_path.rglob("3.*.part")
    if lost == "with its folder":
        shutil.rmtree(part.parent)
    elif lost == "shorter":
        part.write_bytes(part.read_bytes()[:-4])
    else:
        part.unlink()
    done += batches
    plain = gathered(activations(Budget(0)))
    assert torch.equal(torch.cat([torch.stack([s[b] for b in EVERY]) for _, s in done], dim=1), plain)
    assert found.store.boundaries == (set() if lost == "with its folder" else set(EVERY) - {3})
    assert not list(tmp_path.rglob("*.part"))
    torch.testing.assert_close(gathered(found), plain, rtol=1e-5, atol=1e-6)
    assert found.store.boundaries == set(EVERY), "the next pass keeps it"


@pytest.mark.parametrize("moment", ["before it is opened", "while it is read"])
@pytest.mark.parametrize("wanted", [EVERY, range(2, DEPTH + 1)])
def test_a_folder_that_is_taken_away_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, wanted: range
) -> None:
    budget = Budget(0, 99 * size(), tmp_path)
    plain = gathered(activations(Budget(0)), wanted)
    gathered(activations(budget), range(3) if wanted != EVERY else EVERY)
    (folder,) = tmp_path.iterdir()
    later = activations(budget)
    if moment == "while it is read":
        batches = later.states(wanted)
        done = [next(batches)]
        shutil.rmtree(folder)
        done += batches
        states = torch.cat([torch.stack([s[b] for b in wanted]) for _, s in done], dim=1)
    else:

        def taken_away(path: Path) -> FileIO:
            shutil.rmtree(folder, ignore_errors=True)
            return FileIO(path)

        monkeypatch.setattr(store, "FileIO", taken_away)
        states = gathered(later, wanted)
    torch.testing.assert_close(states, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("refused", ["mkdir", "open", "replace"])
def test_a_folder_that_takes_nothing_is_read_and_the_pass_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    budget = Budget(0, 99 * size(), tmp_path)
    plain = gathered(activations(Budget(0)))
    gathered(activations(budget), range(2))
    later = activations(budget)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, refused, refuse)
    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    torch.testing.assert_close(gathered(later), plain, rtol=1e-5, atol=1e-6)
    assert later.store.boundaries == {0, 1}
    ran = runs(later)
    assert torch.equal(gathered(later, range(2)), plain[:2])
    assert not ran


def test_a_cache_folder_that_cannot_be_made_ends_the_keeping_not_the_pass(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = activations(Budget(0, 99 * size(), tmp_path / "file" / "states"))
    assert torch.equal(gathered(found), gathered(activations(Budget(0))))
    assert not found.store.boundaries


def test_room_is_made_while_others_make_room_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    (gone / "0.states").touch()
    looked = Path.stat

    def vanishes(path: Path, **options: bool) -> os.stat_result:
        seen = looked(path, **options)
        if path == gone:
            shutil.rmtree(gone)
        return seen

    monkeypatch.setattr(Path, "stat", vanishes)
    found = activations(Budget(0, 99 * size(), tmp_path))
    gathered(found)
    assert not gone.exists()
    assert found.store.boundaries == set(EVERY)
