"""What holds for all criteria: options and stops."""

from __future__ import annotations

import pytest

from ghostlab.calibration.calibrate import Calibration
from ghostlab.config import RunConfig
from ghostlab.errors import Cancelled, ConfigError
from ghostlab.lab.records import selection_info
from ghostlab.progress import CancelToken, Progress, ProgressUpdate
from ghostlab.pruning.registry import CRITERIA, score
from ghostlab.spec import CriterionSpec
from tests.helpers.lm import tiny_lm, tiny_windows

pytestmark = pytest.mark.unit

DEEP = 9
BATCHES = 6


@pytest.fixture(scope="module")
def calib() -> Calibration:
    return Calibration(tiny_lm(num_hidden_layers=DEEP), tiny_windows(), batch=1)


@pytest.mark.parametrize("name", CRITERIA)
def test_all_candidates_are_listed_and_the_cut_has_the_count(name: str, calib: Calibration) -> None:
    found = score(calib, name, 2)
    starts = DEEP if CRITERIA[name].unit == "layer" else DEEP - 1
    size = 1 if CRITERIA[name].unit == "layer" else 2
    assert [(b.start, b.size) for b in found.candidates] == [(start, size) for start in range(starts)]
    assert len(found.values) == starts
    assert len(found.cut.dropped) == 2
    assert found.convention
    info = selection_info(RunConfig(drop=None, select=name), found)
    assert len(info.labels) == len(info.scores)
    assert str(found.cut) == info.chosen


def test_no_two_criteria_are_described_alike() -> None:
    assert len({entry.summary for entry in CRITERIA.values()}) == len(CRITERIA)


@pytest.mark.parametrize("name", sorted(set(CRITERIA) - {"random", "reverse_order"}))
def test_a_stop_takes_effect_within_a_batch(name: str) -> None:
    fresh = Calibration(tiny_lm(num_hidden_layers=DEEP), tiny_windows(), batch=1)
    token, updates = CancelToken(), list[ProgressUpdate]()

    def sink(update: ProgressUpdate) -> None:
        updates.append(update)
        if len(updates) == 2:
            token.cancel()

    with pytest.raises(Cancelled):
        score(fresh, name, 2, Progress(sink, token))
    assert len(updates) == 2


@pytest.mark.parametrize("name", CRITERIA)
def test_progress_never_goes_back(name: str, calib: Calibration) -> None:
    updates: list[ProgressUpdate] = []
    score(calib, name, 2, Progress(updates.append))
    fractions = [update.fraction for update in updates]
    assert fractions == sorted(fractions)


@pytest.mark.parametrize(
    ("asked", "says", "hint"),
    [
        ("shortgpt,convention=channel", "convention=channel", "token, last, flat"),
        ("perplexity,windows=0", "windows=0", "at least 1"),
        ("perplexity,windows=many", "windows=many", "whole number"),
        ("perplexity,window=4", "no option 'window'", "windows"),
        ("magnitude_l1,windows=4", "no option 'windows'", "none"),
        ("random,seed=-1", "seed=-1", "at least 0"),
        ("nothing", "no criterion 'nothing'", "streamline"),
        ("shortgpt,convention", "Unknown option 'convention='", "shortgpt,convention=flat"),
    ],
)
def test_what_cannot_be_asked(asked: str, says: str, hint: str, calib: Calibration) -> None:
    with pytest.raises(ConfigError) as caught:
        score(calib, asked, 2)
    assert says in str(caught.value)
    assert hint in caught.value.hint


def test_a_run_names_options_in_one_spelling() -> None:
    asked = "sleb , windows = 2, ends=free"
    config = RunConfig.from_dict({"select": asked})
    assert config.select == str(CriterionSpec.parse(asked)) == "sleb,ends=free,windows=2"
    assert RunConfig.from_query(config.to_query()) == config
    assert "--select sleb,ends=free,windows=2" in config.to_command()
    assert RunConfig(drop=None, select=asked).key == config.key
    with pytest.raises(ConfigError, match="Unknown option 'windows='"):
        RunConfig(drop=None, select="sleb,windows")
