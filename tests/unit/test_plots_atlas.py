"""Map and curves of an atlas, and what is said of them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ghostlab.plots import style
from ghostlab.plots.figures import atlas as figures
from ghostlab.plots.figures.atlas import FIRST, MEASURES, say_block_map, say_by_length, words
from ghostlab.results.atlas import Atlas
from tests.helpers.atlases import LAYERS, MASSIVE, make_atlas
from tests.helpers.eyes import contrast, luminance

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    return make_atlas()


def test_a_cell_holds_its_block_with_all_figures_in_words(atlas: Atlas) -> None:
    (paint,) = figures.block_map(atlas, "Cosine").data
    row = atlas.lengths.index(5)
    assert paint.customdata[row][4] == "4:9"
    assert paint.z[row][4] == pytest.approx(atlas.block(4, 9).cosine)  # type: ignore[union-attr]
    told = paint.text[row][4].split("<br>")
    assert told[0] == "Layers 4–8 (5 of 12), block 4:9"
    assert {"plain dropping: 33 %", "ghost: 11 %", "ghost_sink: 10 %", "KL: 1.50 nats per token"} <= set(told)
    assert (paint.customdata[row][9], paint.z[row][9]) == ("", None)
    assert paint.text[row][9] == "No such block: the model has 12 layers."
    lone = words(atlas, atlas.block(3, 4))  # type: ignore[arg-type]
    assert lone[0] == "Layer 3 (1 of 12), block 3:4"
    assert lone[-1] == "KL: not measured"


@pytest.mark.parametrize("name", MEASURES)
def test_every_figure_is_titled_and_fit_for_both_themes(atlas: Atlas, name: str) -> None:
    made = figures.block_map(atlas, name)
    paint = made.data[-1]
    assert paint.colorbar.title.text == MEASURES[name].bar
    if paint.colorbar.tickvals:
        assert len(paint.colorbar.tickvals) == len(paint.colorbar.ticktext) >= 2
    else:
        assert paint.colorbar.tickformat
    assert made.layout.template.layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert made.layout.xaxis.title.text
    assert made.layout.yaxis.title.text
    assert say_block_map(atlas, name).endswith("massive activations begin or end there.")


def test_bright_is_good_whether_low_or_high_is(atlas: Atlas) -> None:
    assert figures.block_map(atlas, FIRST).data[0].reversescale is True
    assert not figures.block_map(atlas, "Cosine").data[0].reversescale
    shades = [luminance(colour) for _, colour in figures.SCALE]
    assert shades == sorted(shades)
    for page in ("#ffffff", "#0b0f19"):
        assert min(contrast(colour, page) for _, colour in figures.SCALE) > 1.5


def test_values_over_decades_get_log_colours_and_marks_within_them(atlas: Atlas) -> None:
    paint = figures.block_map(atlas, FIRST).data[0]
    errors = [block.ghost_sink for block in atlas.blocks]
    assert max(errors) > 20 * min(errors)
    assert paint.z[0][6] == pytest.approx(math.log10(0.02))
    assert all(min(errors) <= 10**mark <= max(errors) * 1.001 for mark in paint.colorbar.tickvals)
    cosines = figures.block_map(atlas, "Cosine").data[0]
    assert cosines.colorbar.tickvals is None, "plotly's own marks"
    assert cosines.z[atlas.lengths.index(5)][4] == pytest.approx(atlas.block(4, 9).cosine)  # type: ignore[union-attr]


def test_the_best_block_of_each_length_is_outlined(atlas: Atlas) -> None:
    shapes = figures.block_map(atlas, FIRST).layout.shapes
    cells = {(shape.x0 + 0.5, shape.y0 + 0.5) for shape in shapes}
    assert cells == {(atlas.best(n).start, row) for row, n in enumerate(atlas.lengths)}  # type: ignore[union-attr]
    most = figures.block_map(atlas, "What ghost_sink gains over ghost").layout.shapes
    assert all(s.x0 + 0.5 <= MASSIVE < s.x0 + 0.5 + atlas.lengths[int(s.y0 + 0.5)] for s in most)


def test_what_was_measured_on_some_blocks_leaves_the_others_grey(atlas: Atlas) -> None:
    ground, paint = figures.block_map(atlas, "KL after ghost_sink").data
    assert sum(value is not None for row in ground.z for value in row) == len(atlas.blocks)
    assert sum(value is not None for row in paint.z for value in row) == len(atlas.lengths)
    bare = replace(atlas, blocks=[replace(block, kl=None) for block in atlas.blocks])
    assert not figures.block_map(bare, "KL after ghost_sink").data
    assert "was not measured" in say_block_map(bare, "KL after ghost_sink")


def test_curves_follow_each_operators_own_best_block(atlas: Atlas) -> None:
    made = figures.by_length(atlas)
    curves = {trace.name: trace for trace in made.data}
    assert set(curves) == {"plain dropping", "ghost", "ghost_sink", "symmetric", "scalar"}
    assert list(curves["scalar"].x) == atlas.lengths
    assert curves["scalar"].y[-1] == pytest.approx(min(b.scalar for b in atlas.blocks if b.length == 5))
    assert curves["plain dropping"].line.color == style.PRUNED.colour
    assert len({trace.line.dash for trace in made.data}) == len(curves)
    assert not figures.by_length(replace(atlas, blocks=[])).data


def test_the_sentences_name_blocks_and_the_layer_where_two_maps_part(atlas: Atlas) -> None:
    said = say_block_map(atlas)
    assert "6:7 of 1 layer (2.0 %)" in said
    assert "4:9 of 5 layers (10 %)" in said
    assert "contains layer 2, ghost leaves 6.0 times the error of ghost_sink, elsewhere 1.1 times" in said
    even = replace(atlas, blocks=[replace(b, ghost=1.1 * b.ghost_sink) for b in atlas.blocks])
    assert say_block_map(even).endswith(
        "Nowhere does ghost leave more than 1.1 times the error of ghost_sink."
    )
    curves = say_by_length(atlas)
    assert curves.startswith("Of 1 layer ghost_sink leaves 2.0 % (6:7) and plain dropping 6.6 % (6:7)")
    assert "of 5 layers ghost_sink leaves 10 % (4:9)" in curves
    assert say_by_length(make_atlas((2,))).count("ghost_sink") == 1
    many = say_block_map(make_atlas(range(1, LAYERS)))
    assert many.count(" %)") == 4
