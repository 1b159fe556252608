"""What a lab remembers between runs is never taken for something else."""

from __future__ import annotations

import pytest
import torch

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
