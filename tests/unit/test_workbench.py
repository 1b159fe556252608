"""What a lab remembers between runs is never taken for something else."""

from __future__ import annotations

import weakref

import pytest
import torch

from ghostlab import workbench
from ghostlab.config import RunConfig
from ghostlab.progress import SILENT
from ghostlab.settings import Settings
from ghostlab.text.corpora import PASTE
from ghostlab.workbench import Workbench
from tests.helpers.lm import tiny_lm

pytestmark = pytest.mark.unit


def test_two_pasted_texts_have_each_their_own_calibration() -> None:
    bench, model = Workbench(Settings()), tiny_lm()
    ids = []
    for word in ("w7", "w8", "w7"):
        config = RunConfig(
            text=PASTE + "\n\n".join([f"{word} w9 " * 60] * 60), sequences=4, length=16, held_out=2
        )
        calib = bench.calibration(config, model, bench.text(config.text, SILENT))
        ids.append(calib.windows.ids)
    assert not torch.equal(ids[0], ids[1])
    assert torch.equal(ids[0], ids[2])


def test_a_full_shelf_lets_the_oldest_go_before_the_next_is_made() -> None:
    class Heavy:
        pass

    shelf: dict[tuple[object, ...], Heavy] = {}
    alive: list[weakref.ref[Heavy]] = []

    def make() -> Heavy:
        assert sum(one() is not None for one in alive) < 2, "no room is made before loading"
        made = Heavy()
        alive.append(weakref.ref(made))
        return made

    for name in ("a", "b", "a", "c", "a", "d"):
        workbench._recall(shelf, (name,), 2, make)
    assert list(shelf) == [("a",), ("d",)], "the one used last stays"
    assert len(alive) == 4
