"""The atlas, figure by figure, against plain least squares on the states of one block at a time."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.linalg import solve_continuous_lyapunov

from ghostlab.analysis import band
from ghostlab.analysis.atlas import KL_WINDOWS, survey
from ghostlab.analysis.band import take_census
from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.solve import RELATIVE_RIDGES
from ghostlab.calibration.store import Budget
from ghostlab.config import RunConfig
from ghostlab.cut import Block, Cut
from ghostlab.errors import Cancelled, ConfigError, CutError, ResultError
from ghostlab.evaluation.scoreboard import score
from ghostlab.lab.records import selection_info
from ghostlab.model.replacement import Replacement
from ghostlab.progress import SILENT, CancelToken, Progress
from ghostlab.pruning.affine_fit import split_fit
from ghostlab.pruning.registry import score as scores_of
from ghostlab.results.atlas import Atlas, AtlasBlock, parse_lengths, scores_from_atlas
from tests.helpers.lm import tiny_lm, tiny_windows
from tests.helpers.tiny import DEPTH

pytestmark = pytest.mark.unit
LENGTHS = (1, 2, 4)


def calibration(family: str = "llama", *, folds: int = 3, **options: Budget) -> Calibration:
    model = tiny_lm(family)
    with torch.no_grad():  # a token that turns massive although it is not first
        model.hf.get_input_embeddings().weight[7] *= 400
    return Calibration(model, tiny_windows(24, folds=folds), batch=5, **options)


def sides(calib: Calibration, boundary: int) -> dict[str, np.ndarray]:
    """States of ordinary and of special tokens, fitted and tried, straight from a forward pass."""
    census = take_census(calib, SILENT)
    trace = calib.model.decoder.trace(calib.windows.ids, {boundary})
    states, special = trace.states[boundary].double().numpy(), census.special.numpy()
    tried = census.test.numpy()[:, None] & np.ones_like(special)
    fitted = ~tried if not tried.all() else tried
    return {
        "fit": states[fitted & ~special],
        "fit_special": states[fitted & special],
        "try": states[tried & ~special],
        "try_special": states[tried & special],
    }


def ridge_maps(x: np.ndarray, d: np.ndarray) -> list[np.ndarray]:
    """M of every candidate ridge, by a plain solve each."""
    gram = x.T @ x
    scale = np.trace(gram) / len(gram)
    eye = np.eye(len(gram))
    return [np.linalg.solve(gram + ridge * scale * eye, x.T @ d) for ridge in RELATIVE_RIDGES]


def by_hand(calib: Calibration, start: int, stop: int) -> dict[str, float]:
    before, after = sides(calib, start), sides(calib, stop)
    x, y = before["fit"], after["fit"]
    xt, yt = before["try"], after["try"]
    power = (yt**2).sum()

    def left(error: np.ndarray) -> float:
        return math.sqrt((error**2).sum() / power)

    mean, step = x.mean(0), (y - x).mean(0)
    found = {"gap": left(xt - yt)}
    maps = ridge_maps(x - mean, y - x - step)
    errors = [left((xt - mean) @ m + step + xt - yt) for m in maps]
    found["ghost_sink"] = min(errors)
    chosen = maps[int(np.argmin(errors))]
    values = np.linalg.svd((x - mean) @ chosen, compute_uv=False) ** 2
    found["effective_rank"] = values.sum() ** 2 / (values**2).sum()

    xa = np.concatenate([x, before["fit_special"]])
    da = np.concatenate([y, after["fit_special"]]) - xa
    xs, ys = before["try_special"], after["try_special"]
    alpha = (xa * da).sum() / (xa**2).sum()
    found["scalar"] = left(xt * (1 + alpha) - yt)
    maps = ridge_maps(xa, da)
    everyone = [((xt + xt @ m - yt) ** 2).sum() + ((xs + xs @ m - ys) ** 2).sum() for m in maps]
    best = int(np.argmin(everyone))
    found["ghost"] = left(xt + xt @ maps[best] - yt)
    gram = xa.T @ xa
    gram += RELATIVE_RIDGES[best] * np.trace(gram) / len(gram) * np.eye(len(gram))
    symmetric = solve_continuous_lyapunov(gram, xa.T @ da + da.T @ xa)
    found["symmetric"] = left(xt + xt @ symmetric - yt)
    return found


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_figures_are_those_of_plain_least_squares(family: str) -> None:
    calib = calibration(family)
    blocks = survey(calib, LENGTHS).blocks
    assert [(b.start, b.stop) for b in blocks] == [
        (s, s + n) for s in range(DEPTH) for n in LENGTHS if s + n <= DEPTH
    ]
    assert int(take_census(calib, SILENT).special[:, 1:].sum()) > 0
    for block in blocks[::3]:
        for name, expected in by_hand(calib, block.start, block.stop).items():
            assert getattr(block, name) == pytest.approx(expected, rel=2e-3), (block, name)


def test_one_fold_is_tried_on_what_it_was_fitted_on() -> None:
    calib = calibration(folds=1)
    (block,) = [b for b in survey(calib, (2,)).blocks if b.start == 3]
    for name, expected in by_hand(calib, 3, 5).items():
        assert getattr(block, name) == pytest.approx(expected, rel=2e-3), name


def test_similarities_are_the_criteria_s() -> None:
    calib = calibration()
    similarity = calib.similarity()
    for block in survey(calib, (3,)).blocks:
        assert block.cosine == pytest.approx(float(similarity.cosine("token")[block.start, block.stop]))
        assert block.angle == pytest.approx(float(similarity.angle("last")[block.start, block.stop]))


def test_a_tight_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = survey(calibration(), LENGTHS).blocks
    monkeypatch.setattr(band, "MOMENT_BYTES", 1)  # one start at a time
    tight = survey(calibration(budget=Budget(0)), LENGTHS).blocks  # no state kept: passes instead
    for one, other in zip(whole, tight, strict=True):
        assert one.ghost_sink == pytest.approx(other.ghost_sink, rel=1e-4)
        assert one.symmetric == pytest.approx(other.symmetric, rel=1e-4)


def test_kl_is_that_of_the_recovered_variant() -> None:
    calib = calibration()
    blocks = survey(calib, (2,)).blocks
    (best,) = [b for b in blocks if b.kl is not None]
    assert best.ghost_sink == min(b.ghost_sink for b in blocks)
    block = Block(best.start, best.stop)
    # fitted by the recovery itself on the same tokens: all but the last fold, unweighted
    (moments,) = calib.moments([block]).values()
    replacement = Replacement(split_fit(moments, without=calib.folds - 1))
    variant = calib.model.without(Cut((block,)), {block: replacement})
    sample = calib.some(KL_WINDOWS, fold=calib.folds - 1)
    _, scores = score(sample, [variant])
    assert best.kl == pytest.approx(scores.kl.value, rel=0.2), (
        "massive tokens are left out of the atlas's fit"
    )


def test_after_the_first_pass_no_block_runs_but_for_the_kl() -> None:
    calib = calibration()
    calib.similarity()
    ran: list[int] = []
    for index, block in enumerate(calib.model.decoder.blocks):
        block.register_forward_hook(lambda *_, index=index: ran.append(index))
    best = [b for b in survey(calib, (2, 4)).blocks if b.kl is not None]
    expected = sum(DEPTH - b.stop for b in best)
    assert len(ran) - expected in {0, DEPTH}, "suffixes, and at most one trace of what blocks are handed"


@pytest.mark.parametrize("lengths", [(), (0,), (DEPTH,)])
def test_impossible_lengths_are_refused(lengths: tuple[int, ...]) -> None:
    with pytest.raises(CutError, match=f"1 to {DEPTH - 1}"):
        survey(calibration(), lengths)


def test_a_stop_takes_effect() -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        survey(calibration(), (1,), Progress(cancel=token))


def example() -> Atlas:
    blocks = [
        AtlasBlock(s, s + n, 0.9, 0.1, 0.5, 0.4, 0.35, 0.3, 0.2 + 0.01 * s, 12.5, 0.3 if s == 0 else None)
        for s in range(3)
        for n in (1, 2)
    ]
    return Atlas(RunConfig(seed=3), "tiny", 6, 100, 30, 7, blocks, 1.5, {"python": "3"})


def test_saving_and_loading_changes_nothing(tmp_path: Path) -> None:
    atlas = example()
    assert Atlas.load(atlas.save(tmp_path / "deep" / "atlas.json")) == atlas
    assert atlas.best(2) == atlas.block(0, 2)
    assert atlas.block(5, 6) is None
    assert list(atlas.to_frame().columns)[:3] == ["start", "stop", "cosine"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"config": {}, "blocks": 3}', '{"config": 3}'])
def test_what_is_no_atlas_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "atlas.json"
    path.write_text(text)
    with pytest.raises(ResultError):
        Atlas.load(path)


@pytest.mark.parametrize(("text", "lengths"), [("1-3", (1, 2, 3)), ("4", (4,)), ("6, 2-3,2", (2, 3, 6))])
def test_lengths_are_read(text: str, lengths: tuple[int, ...]) -> None:
    assert parse_lengths(text) == lengths


@pytest.mark.parametrize(
    "text", ["", "a", "3-1", "0-2", "-1", "1-", "1..3", "1-9999999999", "2001", "1-2001", "²"]
)
def test_what_are_no_lengths_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="1-10"):
        parse_lengths(text)


@pytest.mark.parametrize("criterion", ["streamline", "shortgpt", "angular", "angular,convention=last"])
def test_an_atlas_tells_the_scores_of_criteria_of_similarity(criterion: str) -> None:
    calib, config = calibration(), RunConfig(drop=None, select=criterion, count=2)
    surveyed = survey(calib, LENGTHS).blocks
    atlas = Atlas(RunConfig(), "tiny", DEPTH, 0, 0, 0, surveyed, 0.0, {})
    told = scores_from_atlas(atlas, config)
    computed = selection_info(config, scores_of(calib, criterion, 2))
    assert told is not None
    assert told.scores == pytest.approx(computed.scores, abs=1e-12)
    assert replace(told, scores=computed.scores) == computed
