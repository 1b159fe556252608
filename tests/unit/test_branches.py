"""Answers from shared beginnings and late starts, against a plain forward pass of each model on each row."""

from __future__ import annotations

import pytest
import torch

from ghostlab.cut import parse_cut
from ghostlab.errors import Cancelled
from ghostlab.evaluation import branches
from ghostlab.evaluation.branches import Answer, Row, score_rows
from ghostlab.model.model import Model
from ghostlab.model.replacement import AffineMap, Replacement
from ghostlab.progress import CancelToken, Progress
from tests.helpers.lm import tiny_lm
from tests.helpers.tiny import DEPTH, FAMILY_OPTIONS, WIDTH, tiny_ids
from tests.unit.test_decoder import random_replacements

pytestmark = pytest.mark.unit


def questions() -> tuple[list[Row], list[int]]:
    """Six questions: choices of one and of many tokens, choices that begin alike, contexts that differ."""
    ids = tiny_ids(12, 40).tolist()
    made = [
        (0, ids[0][:9], [[5], [6], [7]]),
        (1, ids[1][:9], [ids[2][:4], ids[3][:7], [8]]),
        (2, ids[4][:25], [[9, 10, 11], [9, 10, 12, 13]]),
        (3, ids[5][:1], [[4, 5], [6]]),
        (5, ids[8][:22], [ids[9][:12], ids[10][:3]]),
    ]
    rows = [Row((*context, *choice), len(choice)) for _, context, choices in made for choice in choices]
    owners = [number for number, _, choices in made for _ in choices]
    for option in (70, 71):  # as WinoGrande asks: the option stands inside, what follows it is scored
        rows.append(Row((*ids[6][:11], option, *ids[7][:5]), 5))
        owners.append(4)
    for first in (72, 73):  # nothing in common
        rows.append(Row((first, *ids[11][:6]), 2))
        owners.append(6)
    return rows, owners


def plain(model: Model, rows: list[Row]) -> list[Answer]:
    """One pass over all rows, shorter ones followed by tokens that a causal model does not look back from."""
    longest = max(len(row.tokens) for row in rows)
    ids = torch.tensor([[*row.tokens, *[0] * (longest - len(row.tokens))] for row in rows])
    logits = model.hf(ids, use_cache=False).logits.double().log_softmax(-1)
    answers = []
    for row, mine in zip(rows, logits, strict=True):
        target = torch.tensor(row.tokens[-row.scored :])
        own = mine[len(row.given) - row.scored : len(row.given)]
        likely = own.gather(-1, target[:, None]).sum()
        answers.append((float(likely), bool((own.argmax(-1) == target).all())))
    return answers


@pytest.mark.parametrize("family", sorted(FAMILY_OPTIONS))
def test_every_model_answers_as_it_does_alone(family: str) -> None:
    model = tiny_lm(family)
    variants = [model.without(parse_cut("4:6"))]
    variants += [model.without(parse_cut(cut), random_replacements(cut)) for cut in ("0:2,3:4", "2:4")]
    rows, owners = questions()
    found = score_rows(model, variants, rows, owners)
    for which, answers in zip([model, *variants], found, strict=True):
        expected = plain(which, rows)
        assert [a[0] for a in answers] == pytest.approx([e[0] for e in expected], rel=1e-4, abs=1e-4)
        assert [a[1] for a in answers] == [e[1] for e in expected]


@pytest.mark.parametrize("cut", ["2:4", f"{DEPTH - 2}:{DEPTH}"])
def test_a_recovered_model_may_be_the_one_that_is_asked(cut: str) -> None:
    offset = torch.randn(WIDTH, generator=torch.Generator().manual_seed(5))
    replacements = {
        block: Replacement(AffineMap(replacement.map.matrix(), bias=replacement.map.bias, first=offset))
        for block, replacement in random_replacements(cut).items()
        if replacement.map is not None
    }
    recovered = tiny_lm().without(parse_cut(cut), replacements)
    rows, owners = questions()
    (found,) = score_rows(recovered, [], rows, owners)
    expected = plain(recovered, rows)
    assert [a[0] for a in found] == pytest.approx([e[0] for e in expected], rel=1e-4, abs=1e-4)


def test_shared_beginnings_run_once_and_variants_only_their_suffix() -> None:
    model = tiny_lm()
    variant = model.without(parse_cut("3:5"))
    seen: dict[str, list[tuple[int, int]]] = {"original": [], "variant": []}
    for name, which in (("original", model), ("variant", variant)):
        for block in which.decoder.blocks:
            block.register_forward_hook(
                lambda _, args, out, name=name: seen[name].append(tuple(args[0].shape[:2]))
            )
    context = tuple(range(10, 30))
    rows = [Row((*context, 40 + i, 50, 60), 3) for i in range(4)]
    score_rows(model, [variant], rows, [0] * 4)
    assert seen["original"] == [(1, 20)] * DEPTH + [(4, 2)] * DEPTH
    assert seen["variant"] == [(1, 20), (4, 2)]
    seen["original"].clear()
    score_rows(model, [], [Row((*context, 40 + i), 1) for i in range(4)], [0] * 4)
    assert seen["original"] == [(1, 20)] * DEPTH, "one token each: the shared part says it all"


def test_batches_hold_no_more_tokens_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_lm()
    rows, owners = questions()
    whole = score_rows(model, [], rows, owners)
    monkeypatch.setattr(branches, "TOKENS", 1)
    small = score_rows(model, [], rows, owners)
    assert [a for a, _ in small[0]] == pytest.approx([a for a, _ in whole[0]], rel=1e-5)


def test_a_stop_is_obeyed() -> None:
    token = CancelToken()
    token.cancel()
    rows, owners = questions()
    with pytest.raises(Cancelled):
        score_rows(tiny_lm(), [], rows, owners, Progress(cancel=token))
