"""Cuts: reading, joining, refusing, and the views that people and mergekit get."""

from __future__ import annotations

import random

import pytest

from ghostlab.cut import Block, Cut, parse_cut
from ghostlab.errors import CutError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("seed", range(100))
def test_any_set_of_layers_survives_writing_and_reading(seed: int) -> None:
    rng = random.Random(seed)
    depth = rng.randint(2, 40)
    layers = rng.sample(range(depth), rng.randint(1, depth - 1))
    cut = Cut.of_layers(layers)
    cut.check(depth)
    assert parse_cut(str(cut)) == cut
    assert cut.dropped == tuple(sorted(layers))
    assert sorted(cut.dropped + cut.kept(depth)) == list(range(depth))
    ranges = [layer for low, high in cut.keep_ranges(depth) for layer in range(low, high)]
    assert tuple(ranges) == cut.kept(depth)
    assert all(left.stop < right.start for left, right in zip(cut.blocks, cut.blocks[1:], strict=False))


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("20:25", [(20, 25)]),
        (" 10:12 , 20 : 25 ", [(10, 12), (20, 25)]),
        ("27", [(27, 28)]),
        ("12,13,27", [(12, 14), (27, 28)]),
        ("20:25,10:12", [(10, 12), (20, 25)]),
        ("0:1", [(0, 1)]),
    ],
)
def test_parse(text: str, blocks: list[tuple[int, int]]) -> None:
    assert [(b.start, b.stop) for b in parse_cut(text)] == blocks


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "No blocks"),
        (" , ", "No blocks"),
        ("a:b", "'a:b' is not a block"),
        ("-1:3", "not a block"),
        ("20:", "not a block"),
        ("20-25", "not a block"),
        ("1:2:3", "not a block"),
        ("1:2\n", ""),
        ("9" * 5000, "not a block"),
        ("5:5", "empty"),
        ("25:20", "empty"),
        ("10:15,12:20", "Write 10:20 instead"),
        ("3,3", "overlap"),
    ],
)
def test_parse_refuses(text: str, says: str) -> None:
    if not says:  # white space round a block is no error
        assert str(parse_cut(text)) == text.strip()
        return
    with pytest.raises(CutError, match=says):
        parse_cut(text)


@pytest.mark.parametrize(
    ("text", "says"), [("28:31", "0 to 29"), ("30", "outside"), ("0:30", "all 30"), ("0:10,10:30", "all 30")]
)
def test_check_against_a_model(text: str, says: str) -> None:
    with pytest.raises(CutError, match=says):
        parse_cut(text).check(30)


def test_nothing_to_drop_is_refused() -> None:
    with pytest.raises(CutError, match="Nothing is dropped"):
        Cut(()).check(30)


@pytest.mark.parametrize("text", ["0:1", "29:30", "0:29", "0:1,29"])
def test_first_and_last_layers_may_go(text: str) -> None:
    parse_cut(text).check(30)


def test_views() -> None:
    cut = parse_cut("0:2,7,20:25")
    assert cut.keep_ranges(30) == ((2, 7), (8, 20), (25, 30))
    assert cut.describe(30) == "drop layers 0–1, 7, 20–24 (8 of 30)"
    assert parse_cut("3").describe(4) == "drop layer 3 (1 of 4)"
    assert Block(20, 25).size == 5
    assert len(cut) == 3
