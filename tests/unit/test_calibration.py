"""Passes over the model, lazily and once: moments, similarities, stored states, broken activations."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ghostlab.calibration.activations import Activations
from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.store import Budget
from ghostlab.cut import Block, parse_cut
from ghostlab.errors import Cancelled, CutError, NumericsError
from ghostlab.model.decoder import Decoder
from ghostlab.progress import CancelToken, Progress
from ghostlab.pruning.registry import score, select
from ghostlab.recovery.fitting import apply, fit
from tests.helpers.lm import tiny_lm, tiny_windows
from tests.helpers.tiny import DEPTH

pytestmark = pytest.mark.unit


def calibration(**options: Any) -> Calibration:
    return Calibration(tiny_lm(), tiny_windows(), batch=4, **options)


def count_passes(calib: Calibration) -> list[int]:
    """Counts, in its only entry, how often the first block runs."""
    counter = [0]
    calib.model.decoder.blocks[0].register_forward_hook(lambda *_: counter.__setitem__(0, counter[0] + 1))
    return counter


def all_states(calib: Calibration) -> torch.Tensor:
    trace = calib.model.decoder.trace(calib.windows.ids, range(DEPTH + 1))
    return torch.stack([trace.states[b] for b in range(DEPTH + 1)])


def test_moments_are_those_of_the_states() -> None:
    calib = calibration()
    states = all_states(calib).flatten(1, 2).double()
    for block, moments in calib.moments(parse_cut("1:3,4:6")).items():
        x, d = states[block.start], states[block.stop] - states[block.start]
        found = moments.all()
        torch.testing.assert_close(found.gram, x.T @ x, rtol=1e-5, atol=1e-4)
        torch.testing.assert_close(found.cross, x.T @ d, rtol=1e-5, atol=1e-4)
        assert found.count == calib.tokens
        assert len(moments.folds()) == 3


def test_one_pass_serves_all_blocks_and_is_remembered() -> None:
    calib = calibration()
    counter = count_passes(calib)
    calib.moments(parse_cut("1:3,4:6"))
    assert counter[0] == 2, "six windows in batches of four"
    calib.moments(parse_cut("4:6"))
    assert counter[0] == 2
    calib.moments(parse_cut("0:2"))
    assert counter[0] == 2, "the pass kept what it came by"


@pytest.mark.parametrize(("budget", "further_passes"), [(1 << 30, 0), (0, 2)])
def test_states_are_kept_where_they_fit(budget: int, further_passes: int) -> None:
    calib, plain = calibration(budget=Budget(budget)), calibration()
    counter = count_passes(calib)
    calib.similarity()
    before = counter[0]
    (moments,) = calib.moments([Block(2, 5)]).values()
    assert counter[0] - before == further_passes
    (expected,) = plain.moments([Block(2, 5)]).values()
    torch.testing.assert_close(moments.all().gram, expected.all().gram, rtol=1e-6, atol=1e-6)


def test_similarities_by_brute_force() -> None:
    calib = calibration()
    states = all_states(calib)
    found = calib.similarity()
    for i, j in ((0, 1), (2, 5), (0, DEPTH)):
        a, b = states[i], states[j]
        cosine = torch.nn.functional.cosine_similarity(a, b, dim=-1)
        assert float(found.cosine("token")[i, j]) == pytest.approx(float(cosine.mean()), abs=1e-5)
        angle = cosine[:, -1].clamp(-1, 1).arccos() / torch.pi
        assert float(found.angle("last")[i, j]) == pytest.approx(float(angle.mean()), abs=1e-4)
        flat = torch.nn.functional.cosine_similarity(a.flatten(), b.flatten(), dim=0)
        assert float(found.cosine("flat")[i, j]) == pytest.approx(float(flat), abs=1e-5)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_streamline_by_brute_force_first_and_last_block_included(count: int) -> None:
    calib = calibration()
    states = all_states(calib)
    cosines = [
        float(torch.nn.functional.cosine_similarity(states[s], states[s + count], dim=-1).mean())
        for s in range(DEPTH - count + 1)
    ]
    found = score(calib, "streamline", count)
    assert found.values == pytest.approx([1 - c for c in cosines], abs=1e-5)
    best = max(range(len(cosines)), key=cosines.__getitem__)
    assert str(found.cut) == f"{best}:{best + count}"


def test_shortgpt_by_brute_force() -> None:
    calib = calibration()
    states = all_states(calib)
    influence = [
        1 - float(torch.nn.functional.cosine_similarity(states[i], states[i + 1], dim=-1).mean())
        for i in range(DEPTH)
    ]
    found = score(calib, "shortgpt", 3)
    assert found.values == pytest.approx(influence, abs=1e-5)
    assert found.cut.dropped == tuple(sorted(sorted(range(DEPTH), key=influence.__getitem__)[:3]))


@pytest.mark.parametrize("count", [0, DEPTH])
def test_impossible_counts_are_refused(count: int) -> None:
    with pytest.raises(CutError, match="cannot be dropped"):
        select(calibration(), "streamline", count)


def test_broken_activations_name_the_block() -> None:
    calib = calibration()
    weight = next(p for p in calib.model.decoder.blocks[3].parameters() if p.ndim > 1)
    weight[0, 0] = torch.nan
    with pytest.raises(NumericsError, match="layer 3"):
        calib.moments(parse_cut("1:5"))
    calib.moments(parse_cut("0:2"))  # blocks before it are sound


def test_a_stop_takes_effect_before_the_next_batch() -> None:
    model, windows, token = tiny_lm(), tiny_windows(), CancelToken()
    found = Activations(model, windows, batch=2, budget=Budget(0))
    batches = found.states({2}, Progress(cancel=token))
    next(batches)
    token.cancel()
    with pytest.raises(Cancelled):
        next(batches)


@pytest.mark.parametrize("method", ["ghost", "affine"])
def test_fits_beat_dropping_on_their_own_tokens_and_apply(method: str) -> None:
    calib = calibration()
    cut = parse_cut("1:3,4:6")
    fitted = fit(calib, cut, method, ridge="0")
    assert set(fitted.replacements) == set(cut.blocks)
    assert all(block.explained_train > 0.3 for block in fitted.blocks.values())
    recovered = apply(calib.model, cut, fitted)
    assert recovered.depth == DEPTH - 4
    assert recovered.parameters == apply(calib.model, cut).parameters + sum(
        replacement.map.parameters_added for replacement in fitted.replacements.values()
    )
    assert Decoder(recovered.hf).depth == recovered.depth


def test_the_operator_is_the_least_squares_solution_at_the_boundary() -> None:
    calib = calibration()
    states = all_states(calib).flatten(1, 2).double()
    fitted = fit(calib, parse_cut("2:5"), "ghost", ridge="0")
    expected = torch.linalg.lstsq(states[2], states[5] - states[2]).solution
    found = fitted.replacements[Block(2, 5)].map.matrix()
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
