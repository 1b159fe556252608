"""Every criterion against brute force on a tiny model, first and last layer included."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch.nn.functional import cosine_similarity, cross_entropy

from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.store import Budget
from ghostlab.cut import Cut
from ghostlab.errors import CutError
from ghostlab.model.model import Model
from ghostlab.pruning.registry import score, select
from tests.helpers.lm import tiny_lm, tiny_windows
from tests.helpers.tiny import DEPTH

pytestmark = pytest.mark.unit

FAMILIES = ["llama", "gpt2", "gemma2", "falcon"]


def calibration(family: str = "llama", **options: int) -> Calibration:
    return Calibration(tiny_lm(family, **options), tiny_windows(), batch=4)


def all_states(calib: Calibration) -> torch.Tensor:
    trace = calib.model.decoder.trace(calib.windows.ids, range(calib.model.depth + 1))
    return torch.stack([trace.states[b] for b in range(calib.model.depth + 1)])


def cosine_by_hand(a: torch.Tensor, b: torch.Tensor, convention: str) -> torch.Tensor:
    """Cosines that are then averaged."""
    if convention == "flat":
        return cosine_similarity(a.flatten(), b.flatten(), dim=0)[None]
    return cosine_similarity(a, b, dim=-1) if convention == "token" else cosine_similarity(a[:, -1], b[:, -1])


@pytest.mark.parametrize("convention", ["token", "last", "flat"])
@pytest.mark.parametrize("criterion", ["shortgpt", "streamline", "angular"])
def test_similarities_under_each_convention(criterion: str, convention: str) -> None:
    calib, count = calibration(), 2
    states = all_states(calib)
    size = 1 if criterion == "shortgpt" else count
    expected = []
    for start in range(DEPTH - size + 1):
        cosine = cosine_by_hand(states[start], states[start + size], convention)
        value = cosine.arccos() / math.pi if criterion == "angular" else 1 - cosine
        expected.append(float(value.mean()))
    found = score(calib, f"{criterion},convention={convention}", count)
    assert found.values == pytest.approx(expected, abs=1e-5)
    order = sorted(range(len(expected)), key=expected.__getitem__)
    dropped = sorted(order[:count]) if criterion == "shortgpt" else range(order[0], order[0] + count)
    assert found.cut.dropped == tuple(dropped)


@pytest.mark.parametrize(
    ("criterion", "default"), [("shortgpt", "token"), ("streamline", "token"), ("angular", "last")]
)
def test_conventions_differ_and_are_printed(criterion: str, default: str) -> None:
    calib = calibration()
    found = {c: score(calib, f"{criterion},convention={c}", 2) for c in ("token", "last", "flat")}
    assert len({f.convention for f in found.values()}) == len({f.values for f in found.values()}) == 3
    assert score(calib, criterion, 2) == found[default]


def nll_by_hand(model: Model, ids: torch.Tensor) -> float:
    logits = model.hf(ids).logits[:, :-1].double()
    return float(cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()))


@pytest.mark.parametrize("family", FAMILIES)
def test_perplexity_is_that_of_every_variant(family: str) -> None:
    calib = calibration(family)
    expected = [
        math.exp(nll_by_hand(calib.model.without(Cut.of_layers([layer])), calib.windows.ids))
        for layer in range(DEPTH)
    ]
    found = score(calib, "perplexity", 2)
    assert found.values == pytest.approx(expected, rel=1e-4)
    assert found.cut.dropped == tuple(sorted(sorted(range(DEPTH), key=expected.__getitem__)[:2]))


def test_fewer_windows_are_spread_evenly() -> None:
    calib = calibration()
    (expected, *_) = [
        math.exp(nll_by_hand(calib.model.without(Cut.of_layers([0])), calib.windows.ids[[0, 2, 4]]))
    ]
    assert score(calib, "perplexity,windows=3", 1).values[0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_js_divergence_between_full_distributions(family: str) -> None:
    calib = calibration(family)
    p = calib.model.hf(calib.windows.ids).logits[:, :-1].double().softmax(-1)
    expected = []
    for layer in range(DEPTH):
        variant = calib.model.without(Cut.of_layers([layer]))
        q = variant.hf(calib.windows.ids).logits[:, :-1].double().softmax(-1)
        mixed = (p + q) / 2
        entropies = [-(d * d.clamp(min=1e-300).log()).sum(-1) for d in (mixed, p, q)]
        expected.append(float((entropies[0] - (entropies[1] + entropies[2]) / 2).mean()))
    found = score(calib, "js_divergence", 1)
    assert found.values == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert all(0 <= value <= math.log(2) for value in found.values)


@pytest.mark.parametrize("ends", ["keep", "free"])
def test_sleb_is_greedy(ends: str) -> None:
    calib, count = calibration(), 3
    allowed = range(1, DEPTH - 1) if ends == "keep" else range(DEPTH)
    dropped: list[int] = []
    values = [0.0] * DEPTH
    for _ in range(count):
        for layer in set(range(DEPTH)) - set(dropped):
            variant = calib.model.without(Cut.of_layers([*dropped, layer]))
            values[layer] = nll_by_hand(variant, calib.windows.ids)
        dropped.append(min(set(allowed) - set(dropped), key=values.__getitem__))
    found = score(calib, f"sleb,windows=6,ends={ends}", count)
    assert found.values == pytest.approx(values, rel=1e-4)
    assert found.cut.dropped == tuple(sorted(dropped))
    assert ("never drops the first or the last" in found.convention) == (ends == "keep")


@pytest.mark.parametrize("family", [*FAMILIES, "olmo2"])
def test_taylor_against_autograd_on_a_copy(family: str) -> None:
    calib = calibration(family)
    twin = copy.deepcopy(calib.model.hf).requires_grad_(True)
    ids = calib.windows.ids
    twin(ids, labels=ids).loss.backward()
    blocks = Model(twin, calib.model.tokenizer, name="twin").decoder.blocks
    expected = [float(sum((p.detach() * p.grad).abs().sum() for p in block.parameters())) for block in blocks]
    before = {name: p.clone() for name, p in calib.model.hf.named_parameters()}
    found = score(calib, "taylor", 2)
    assert found.values == pytest.approx(expected, rel=1e-3)
    assert found.cut.dropped == tuple(sorted(sorted(range(DEPTH), key=expected.__getitem__)[:2]))
    for name, parameter in calib.model.hf.named_parameters():
        assert not parameter.requires_grad
        assert parameter.grad is None
        assert torch.equal(parameter, before[name])


def test_taylor_needs_no_kept_states() -> None:
    frugal = Calibration(tiny_lm(), tiny_windows(), batch=4, budget=Budget(0))
    assert score(frugal, "taylor", 1).values == pytest.approx(
        score(calibration(), "taylor", 1).values, rel=1e-5
    )


@pytest.mark.parametrize("power", [1, 2])
def test_magnitudes(power: int) -> None:
    calib = calibration()
    expected = [
        float(sum(p.double().abs().pow(power).sum() for p in block.parameters()))
        for block in calib.model.decoder.blocks
    ]
    found = score(calib, f"magnitude_l{power}", 3)
    assert found.values == pytest.approx(expected, rel=1e-5)
    assert found.cut.dropped == tuple(sorted(sorted(range(DEPTH), key=expected.__getitem__)[:3]))


@pytest.mark.parametrize("base", ["taylor", "magnitude_l1", "magnitude_l2"])
def test_plus_spares_the_first_four_and_the_last_two(base: str) -> None:
    calib = calibration(num_hidden_layers=9)
    plain, plus = score(calib, base, 2), score(calib, f"{base}_plus", 2)
    assert plus.values == plain.values, "every layer is scored, spared or not"
    assert plus.cut.dropped == tuple(sorted(sorted([4, 5, 6], key=plain.values.__getitem__)[:2]))
    assert "never drops layers 0, 1, 2, 3, 7, 8" in plus.convention
    with pytest.raises(CutError, match="spares 6"):
        select(calib, f"{base}_plus", 4)


def test_reverse_order_drops_the_tail() -> None:
    assert str(select(calibration(), "reverse_order", 2)) == f"{DEPTH - 2}:{DEPTH}"


def test_random_is_decided_by_its_seed() -> None:
    calib = calibration()
    found = {seed: score(calib, f"random,seed={seed}", 2) for seed in range(20)}
    assert score(calib, "random", 2) == found[0]
    assert {layer for f in found.values() for layer in f.cut.dropped} == set(range(DEPTH))
    assert all(
        f.cut.dropped == tuple(sorted(sorted(range(DEPTH), key=f.values.__getitem__)[:2]))
        for f in found.values()
    )
