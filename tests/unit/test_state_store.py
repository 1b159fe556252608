"""States kept in memory and in files: the same as computed anew, whole or not at all, within the budget."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from ghostlab.calibration.activations import Activations
from ghostlab.calibration.store import Budget, StateStore
from ghostlab.errors import Cancelled
from ghostlab.progress import CancelToken, Progress
from tests.helpers.lm import tiny_lm, tiny_windows
from tests.helpers.tiny import DEPTH

pytestmark = pytest.mark.unit
EVERY = range(DEPTH + 1)
SHAPE = (6, 16, 32)


def activations(budget: Budget, **options: bool) -> Activations:
    return Activations(tiny_lm(), tiny_windows(), batch=4, budget=budget, **options)


def gathered(found: Activations, boundaries: range = EVERY) -> torch.Tensor:
    parts = [torch.stack([states[b] for b in boundaries]) for _, states in found.states(boundaries)]
    return torch.cat(parts, dim=1)


def size() -> int:
    return activations(Budget()).store.size


def runs(found: Activations) -> list[int]:
    ran: list[int] = []
    for index, block in enumerate(found.model.decoder.blocks):
        block.register_forward_hook(lambda *_, index=index: ran.append(index))
    return ran


@pytest.mark.parametrize(("memory", "disk"), [(99, 0), (2, 99), (0, 99), (1, 3), (0, 0)])
def test_states_are_those_of_a_plain_pass(tmp_path: Path, memory: int, disk: int) -> None:
    budget = Budget(memory * size(), disk * size(), tmp_path)
    found, plain = activations(budget, rounded=False), gathered(activations(Budget(0), rounded=False))
    assert torch.equal(gathered(found), plain)
    assert len(found.store.boundaries) == min(memory + disk, DEPTH + 1)
    torch.testing.assert_close(gathered(found), plain, rtol=1e-5, atol=1e-6)
    assert torch.equal(gathered(found, range(1, 3)), plain[1:3])


def test_another_process_finds_the_files_again(tmp_path: Path) -> None:
    budget = Budget(0, 99 * size(), tmp_path)
    first = gathered(activations(budget))
    later = activations(budget)
    ran = runs(later)
    assert torch.equal(gathered(later), first)
    assert not ran
    other = Activations(tiny_lm(), tiny_windows(seed=5), batch=4, budget=budget)
    assert not other.store.boundaries, "other windows, other files"


def test_a_stopped_pass_leaves_nothing(tmp_path: Path) -> None:
    token = CancelToken()
    found = activations(Budget(size(), 99 * size(), tmp_path))
    batches = found.states(EVERY, Progress(cancel=token))
    next(batches)
    token.cancel()
    with pytest.raises(Cancelled):
        next(batches)
    assert not found.store.boundaries
    assert torch.equal(gathered(found), gathered(activations(Budget())))
    assert not list(tmp_path.rglob("*.part"))


def test_a_torn_file_is_not_taken_for_whole(tmp_path: Path) -> None:
    budget = Budget(0, 99 * size(), tmp_path)
    whole = gathered(activations(budget))
    (torn,) = tmp_path.rglob("3.states")
    torn.write_bytes(torn.read_bytes()[:-4])
    later = activations(budget)
    assert later.store.boundaries == set(EVERY) - {3}
    assert torch.equal(gathered(later), whole)


def test_the_longest_unused_makes_room(tmp_path: Path) -> None:
    budget = Budget(0, 2 * (DEPTH + 1) * size(), tmp_path)
    folders = []
    for seed in range(3):
        found = Activations(tiny_lm(), tiny_windows(seed=seed), batch=4, budget=budget)
        gathered(found)
        new = next(path for path in tmp_path.iterdir() if path not in folders)
        os.utime(new, (seed, seed))
        folders.append(new)
        if seed == 1:
            list(Activations(tiny_lm(), tiny_windows(seed=0), batch=4, budget=budget).states({0}))
    assert [folder.exists() for folder in folders] == [True, False, True]


def test_a_full_disk_ends_the_keeping_not_the_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = activations(Budget(0, 99 * size(), tmp_path))

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", refuse)
        states = gathered(found)
    assert torch.equal(states, gathered(activations(Budget())))
    assert not found.store.boundaries


def test_sixteen_bits_only_where_forced_and_what_they_lose_is_measured() -> None:
    assert activations(Budget(99 * size())).store.rounding is None
    found, exact = activations(Budget(3 * size())), gathered(activations(Budget()))
    assert found.store.dtype == torch.bfloat16
    gathered(found)
    (kept,) = found.store.boundaries & {DEPTH}
    rounded = torch.cat([states[kept] for _, states in found.states({kept})])
    lost = float((rounded - exact[kept]).norm() / exact[kept].norm())
    assert found.store.rounding is not None
    assert 0 < lost < 2**-8
    assert found.store.rounding == pytest.approx(lost, rel=0.5)


def test_room_is_spread_over_the_boundaries_come_by() -> None:
    store = StateStore(SHAPE, 30, torch.float32, Budget(5 * 6 * 16 * 32 * 4), "key", rounded=False)
    assert store.begin({25}, range(25)) == {25, 16, 8, 24, 4}


def test_some_windows_take_their_states_along() -> None:
    whole = activations(Budget())
    states = gathered(whole)
    part = whole.some(3)
    ran = runs(part)
    assert torch.equal(gathered(part), states[:, [0, 2, 4]])
    assert not ran
