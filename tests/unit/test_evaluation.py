"""Scores that start late and stream the head, against full forward passes and full logits."""

from __future__ import annotations

import math

import pytest
import torch

from ghostlab.calibration.activations import Activations
from ghostlab.cut import parse_cut
from ghostlab.errors import Cancelled
from ghostlab.evaluation.metrics import summarise
from ghostlab.evaluation.scoreboard import Scoreboard, score
from ghostlab.model import likelihood
from ghostlab.model.likelihood import TokenScores
from ghostlab.model.model import Model
from ghostlab.progress import CancelToken, Progress
from ghostlab.results.statistics import resamples
from ghostlab.text.tokens import KINDS
from tests.helpers.lm import tiny_lm, tiny_windows
from tests.helpers.tiny import DEPTH, FAMILY_OPTIONS
from tests.unit.test_decoder import random_replacements

pytestmark = pytest.mark.unit
CUTS = ("0:1", "2:4", "4:6", "0:2,3:4")


def variants_of(model: Model) -> list[Model]:
    found = []
    for text in CUTS:
        cut = parse_cut(text)
        found += [model.without(cut), model.without(cut, random_replacements(text))]
    return found


@pytest.mark.parametrize("family", sorted(FAMILY_OPTIONS))
def test_late_start_equals_full_forward_passes(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likelihood, "LOGIT_BYTES", 4 * 96 * 7)  # seven tokens per chunk
    model, windows = tiny_lm(family), tiny_windows(count=5)
    variants = variants_of(model)
    board = Scoreboard(model, variants)
    for batch in Activations(model, windows, batch=2).batches(board.boundaries):
        board.add(batch)
    targets = windows.ids[:, 1:]
    reference = model.hf(windows.ids).logits[:, :-1].double().log_softmax(-1)
    for number, variant in enumerate([model, *variants]):
        found = TokenScores.concatenate(board._parts[number])
        own = variant.hf(windows.ids, use_cache=False).logits[:, :-1].double().log_softmax(-1)
        nll = -own.gather(-1, targets[..., None])[..., 0]
        kl = (reference.exp() * (reference - own)).sum(-1)
        torch.testing.assert_close(found.nll.double(), nll, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(found.kl.double(), kl, rtol=1e-3, atol=2e-5)
        assert (found.agrees == (own.argmax(-1) == reference.argmax(-1))).float().mean() > 0.98
        near = (own.topk(5).indices == reference.argmax(-1, keepdim=True)).any(-1)
        assert (found.near == near).float().mean() > 0.98


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2"])
def test_a_variant_resumed_up_to_any_boundary_equals_its_own_pass(family: str) -> None:
    model, ids = tiny_lm(family), tiny_windows(count=2).ids
    trace = model.decoder.trace(ids, range(DEPTH + 1))
    for variant in variants_of(model):
        own = variant.decoder.trace(ids, range(variant.depth + 1))
        for place, boundary in enumerate((*variant.kept, DEPTH)):
            if boundary > variant.first_change:
                expected = variant.decoder.receive(own.states[place], place)
                torch.testing.assert_close(variant.resume(trace, boundary), expected, rtol=1e-4, atol=1e-5)
        expected = variant.decoder.run_tail(own.states[variant.depth])
        torch.testing.assert_close(variant.resume(trace), expected, rtol=1e-4, atol=1e-5)


def test_a_stop_takes_effect_within_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """All variants of a batch are a long time: it is asked between them, and between chunks of the head."""
    monkeypatch.setattr(likelihood, "LOGIT_BYTES", 4 * 96 * 7)
    model, windows = tiny_lm(), tiny_windows(count=2)
    board = Scoreboard(model, variants_of(model))
    (batch,) = Activations(model, windows, batch=2).batches(board.boundaries)
    for steps in (0, 3, len(board.variants) + 2):  # at the first variant, at the fourth, in the head
        stop = _StopAfter(steps)
        with pytest.raises(Cancelled):
            board.add(batch, Progress(cancel=stop))
        assert stop.left == -1
    assert board._parts[0] == []


class _StopAfter(CancelToken):
    """Set once it was looked at so many times."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    @property
    def cancelled(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_variants_run_only_their_suffix() -> None:
    model, windows = tiny_lm(), tiny_windows(count=2)
    cut = parse_cut("3:5")
    variant, other = model.without(cut), model.without(parse_cut("1:2"))
    ran: list[int] = []
    for index, block in enumerate(variant.decoder.blocks):
        block.register_forward_hook(lambda *_, index=index: ran.append(index))
    activations = Activations(model, windows)
    score(activations, [variant])
    assert ran == [3]
    again: list[int] = []
    for block in model.decoder.blocks:
        block.register_forward_hook(lambda *_: again.append(1))
    score(activations, [other])
    assert not again, "the original's states are at hand from the first time"


def test_metrics_and_their_intervals() -> None:
    generator = torch.Generator().manual_seed(0)
    nll = 2 + torch.rand(8, 15, generator=generator)
    kl = torch.rand(8, 15, generator=generator)
    agrees = torch.rand(8, 15, generator=generator) > 0.4
    counts = torch.arange(40, 48)
    found = summarise(TokenScores(nll, kl, agrees, agrees), counts, seed=0)
    assert found.perplexity.value == pytest.approx(math.exp(float(nll.double().mean())))
    assert found.bits_per_byte.value == pytest.approx(
        float(nll.double().sum()) / math.log(2) / float(counts.sum())
    )
    assert found.kl.value == pytest.approx(float(kl.double().mean()))
    assert found.top1_agreement.value == pytest.approx(float(agrees.double().mean()))
    assert found.window_nll == pytest.approx(nll.double().mean(1).tolist())
    for metric in (found.perplexity, found.bits_per_byte, found.kl, found.top1_agreement):
        assert metric.low < metric.value < metric.high
    # the standard error of the mean over windows, from first principles
    half = 1.96 * float(nll.double().mean(1).std(correction=0)) / math.sqrt(8)
    width = math.log(found.perplexity.high) - math.log(found.perplexity.low)
    assert width == pytest.approx(2 * half, rel=0.1)


def test_agreement_by_window_position_and_kind() -> None:
    generator = torch.Generator().manual_seed(1)
    shape = (6, 9)
    original, nll, kl = (torch.rand(shape, generator=generator) for _ in range(3))
    agrees = torch.rand(shape, generator=generator) > 0.5
    near = agrees | (torch.rand(shape, generator=generator) > 0.5)
    kinds = torch.randint(3, shape, generator=generator)
    kinds[2, 4] = 5  # one token of a kind that most bootstrap samples lack
    truth = torch.ones(shape).bool()
    found = summarise(
        TokenScores(nll, kl, agrees, near),
        torch.arange(10, 16),
        0,
        original=TokenScores(original, kl * 0, truth, truth),
        kinds=kinds,
    ).agreement
    assert found is not None
    shift = (original - nll).double()
    assert found.shift.value == pytest.approx(float(shift.mean()))
    assert found.top5_agreement.value == pytest.approx(float(near.double().mean()))
    assert found.top5_agreement.low < found.top5_agreement.value < found.top5_agreement.high
    assert found.window_kl == pytest.approx(kl.double().mean(1).tolist())
    assert found.window_top5 == pytest.approx(near.double().mean(1).tolist())
    assert found.position_shift == pytest.approx(shift.mean(0).tolist())
    assert [each.name for each in found.classes] == [KINDS[0], KINDS[1], KINDS[2], KINDS[5]]
    assert sum(each.tokens for each in found.classes) == kl.numel()
    for number, each in zip((0, 1, 2, 5), found.classes, strict=True):
        mask = kinds == number
        assert each.kl == pytest.approx(float(kl[mask].double().mean()))
        assert each.top1_agreement == pytest.approx(float(agrees[mask].double().mean()))
        assert each.shift.value == pytest.approx(float(shift[mask].mean()))
        assert each.shift.low <= each.shift.value <= each.shift.high
    rare = found.classes[-1].shift
    assert rare.low == rare.high == pytest.approx(float(shift[2, 4]))


def test_the_original_has_no_agreement_and_variants_have_every_kind_once() -> None:
    model, windows = tiny_lm(), tiny_windows(count=3)
    original, drop = score(Activations(model, windows), [model.without(parse_cut("2:4"))])
    assert original.agreement is None
    assert drop.agreement is not None
    assert {each.name: each.tokens for each in drop.agreement.classes} == {
        "first": 3,
        "digit": windows.ids[:, 2:].numel(),
    }, "the tiny tokenizer's words are w3, w4 ..."
    difference = math.log(original.perplexity.value) - math.log(drop.perplexity.value)
    assert drop.agreement.shift.value == pytest.approx(difference, abs=1e-6)
    assert sum(drop.agreement.window_kl) / 3 == pytest.approx(drop.kl.value)


def test_one_window_has_an_interval_of_no_width() -> None:
    found = summarise(
        TokenScores(torch.ones(1, 4), torch.zeros(1, 4), *[torch.ones(1, 4).bool()] * 2), torch.tensor([9]), 0
    )
    assert found.perplexity.low == found.perplexity.high == pytest.approx(math.e)


def test_hopeless_likelihoods_stay_finite() -> None:
    found = summarise(
        TokenScores(torch.full((2, 3), 1e4), torch.zeros(2, 3), *[torch.ones(2, 3).bool()] * 2),
        torch.tensor([9, 9]),
        0,
    )
    assert math.isfinite(found.perplexity.value)


def test_resamples_draw_with_replacement() -> None:
    draws = resamples(6, seed=0)
    assert (draws.sum(1) == 6).all()
    assert (draws == resamples(6, seed=0)).all()
    assert abs(draws.mean() - 1) < 0.05


def test_depth_of_variants() -> None:
    assert [v.depth for v in variants_of(tiny_lm())] == [
        DEPTH - len(parse_cut(c).dropped) for c in CUTS for _ in "ab"
    ]
