"""The figures hold the result's numbers, with axes, ranges and annotations that suit them."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from ghostlab.plots import catalog, style
from ghostlab.plots.catalog import FIGURES, comparison
from ghostlab.plots.figures import pairs, probes, selection, spectrum
from ghostlab.plots.rows import rows
from ghostlab.results.compare import sides
from ghostlab.results.operator import RankCurve
from ghostlab.results.records import Metric, SelectionInfo
from ghostlab.results.statistics import difference
from tests.helpers.eyes import SIGHT, contrast, distance
from tests.helpers.figures import drawn, with_map
from tests.helpers.results import TILE, make_result, with_selection
from tests.helpers.zeroshot import make_zero_shot

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def result():
    return make_result()


def bars(figure: go.Figure) -> dict[str, float]:
    """Value by row of all horizontal bars."""
    return {
        y: x for trace in figure.data if trace.type == "bar" for y, x in zip(trace.y, trace.x, strict=True)
    }


def test_every_figure_is_fit_for_both_themes_and_names_its_axes():
    result = with_selection(make_result(("drop", "ghost", "affine"), blocks=2))
    answers = make_zero_shot(["original", "pruned", "ghost"], ["boolq", "arc_easy"])
    for section in catalog.sections(replace(result, zero_shot=answers)):
        for figure in (figure for panel in section.panels for figure in panel.figures):
            layout = figure.layout
            assert layout.height >= 140
            assert layout.title.text is None
            assert layout.uirevision == "keep"
            assert layout.template.layout.paper_bgcolor == "rgba(0,0,0,0)"
            assert 0 < max(map(len, layout.xaxis.title.text.split("<br>"))) <= 37, "it fits a phone"
            assert layout.yaxis.title.text or all(
                trace.orientation == "h" or trace.y for trace in figure.data
            )


PAGES = ("#ffffff", "#f7f8fb", "#0b0f19", "#0e1320", "#161d2c")
"""Of the report and of the app, light and dark, and the app's dark cards."""


@pytest.mark.parametrize("page", PAGES)
def test_text_and_lines_stand_out_from_every_page(page):
    if page in ("#ffffff", "#0b0f19"):
        assert contrast(style.INK, page) > 4
    drawn = [*style.colours(12), style.SYMMETRIC, style.ANTISYMMETRIC]
    assert min(contrast(colour, page) for colour in drawn) >= 3


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_stay_apart_to_every_eye(sight):
    """A distance of 2.3 can just be seen; above 10 two colours differ at a glance."""
    parts = [role.colour for role in probes.PART_ROLES.values()]
    for tones in (style.colours(12), parts, [style.SYMMETRIC, style.ANTISYMMETRIC]):
        assert min(distance(*pair, sight) for pair in itertools.combinations(tones, 2)) > 10
    looks = [style.ORIGINAL, style.PRUNED, *style.roles("abcdef")]
    assert len({(role.dash, role.symbol) for role in looks}) == len(looks)
    assert len({role.dash for role in looks}) == len({role.symbol for role in looks}) == len(looks)


def test_every_operator_of_one_run_looks_like_no_other(result):
    looks = style.roles(map(str, range(17)))
    assert len({(role.colour, role.dash, role.symbol) for role in looks}) == 17
    assert len({role.colour for role in looks}) == 12
    assert style.colours(17)[2:] == [role.colour for role in looks]
    few, many = (drawn("by_position", make_result(tuple("abcdefghijklmnopq"[:n]))) for n in (2, 17))
    assert many.layout.height > few.layout.height + 100, "a legend of 17 takes its own room"


def test_roles_of_equal_labels_get_distinct_names():
    assert [role.name for role in style.roles(["ghost", "ghost"])] == ["ghost", "ghost (2)"]


def test_perplexity_bars_carry_values_intervals_and_a_log_axis_from_one(result):
    figure = drawn("perplexity", result)
    metrics = [row.scores.perplexity for row in rows(result)]
    assert list(bars(figure)) == ["original", "pruned", "ghost", "affine"]
    assert list(bars(figure).values()) == [metric.value for metric in metrics]
    shown = [trace for trace in figure.data if trace.type == "bar"]
    for trace, metric in zip(shown, metrics, strict=True):
        assert trace.x[0] + trace.error_x.array[0] == pytest.approx(metric.high)
        assert trace.x[0] - trace.error_x.arrayminus[0] == pytest.approx(metric.low)
    assert figure.layout.xaxis.type == "log"
    assert figure.layout.xaxis.range[0] == 0
    assert 10 ** figure.layout.xaxis.range[1] > max(metric.high for metric in metrics)


def test_perplexity_axis_is_linear_when_values_are_close(result):
    close = replace(result.baseline.pruned, perplexity=Metric(60.0, 55.0, 66.0))
    near = replace(result, baseline=replace(result.baseline, pruned=close))
    figure = drawn("perplexity", near)
    assert figure.layout.xaxis.type == "linear"
    assert figure.layout.xaxis.range[0] == 0


def test_axis_type_switches_at_twentyfold():
    assert style.axis_type([1.0, 20.0]) == "linear"
    assert style.axis_type([1.0, 20.1]) == "log"
    assert style.axis_type([-1.0, 100.0]) == "linear"
    assert style.axis_type([1.0, math.nan, None, 30.0]) == "log"


def test_gap_closed_shows_shares_and_holds_negative_ones(result):
    worse = replace(result, runs=[replace(result.runs[0], gap_closed=-0.2), result.runs[1]])
    figure = drawn("gap_closed", worse)
    assert bars(figure) == {"ghost": -0.2, "affine": result.runs[1].gap_closed}
    low, high = figure.layout.xaxis.range
    assert low < -0.2
    assert high > 1


def test_window_differences_are_paired(result):
    figure = drawn("window_differences", result)
    ghost = next(trace for trace in figure.data if trace.name == "ghost")
    expected = np.subtract(result.runs[0].window_nll, result.baseline.pruned.window_nll)
    assert np.allclose(ghost.x, expected)
    boxes = [trace for trace in figure.data if trace.type == "box"]
    assert {trace.name for trace in boxes} == {"original", "ghost", "affine"}
    mean = next(trace for trace in figure.data if trace.name == "mean of ghost")
    found = difference(result.runs[0].window_nll, result.baseline.pruned.window_nll)
    assert mean.x[0] == pytest.approx(expected.mean())
    assert mean.x[0] + mean.error_x.array[0] == pytest.approx(found.high)
    assert mean.x[0] - mean.error_x.arrayminus[0] == pytest.approx(found.low)


def test_window_distribution_shows_the_perplexity_of_every_window(result):
    figure = drawn("window_distribution", result)
    assert np.allclose(np.log(figure.data[2].x), result.runs[0].window_nll)
    assert [trace.name for trace in figure.data] == ["original", "pruned", "ghost", "affine"]
    assert figure.layout.xaxis.type == "log"


def test_by_position_is_a_running_mean_that_keeps_the_level(result):
    figure = drawn("by_position", result)
    assert [trace.name for trace in figure.data] == ["pruned", "ghost", "affine"]
    lost = np.subtract(result.baseline.pruned.position_nll, result.baseline.original.position_nll)
    line = figure.data[0]
    assert len(line.y) == len(lost)
    assert line.y[100] == pytest.approx(lost[97:104].mean())
    assert line.y[0] == pytest.approx(lost[:4].mean())
    assert "nats" in figure.layout.yaxis.title.text


def test_explained_shows_all_ordinary_and_fitted_tokens(result):
    figure = drawn("explained", result)
    shown = {t.name: list(t.x) for t in figure.data if t.x[0] is not None}
    reports = [run.boundary for run in result.runs]
    assert shown["all tokens"] == [report.explained for report in reports]
    assert shown["ordinary tokens"] == [report.explained_ordinary for report in reports]
    assert shown["calibration (fitted on)"] == [report.explained_train for report in reports]


def test_boundary_figures_follow_the_block_asked_for():
    result = make_result(blocks=2)
    errors = [result.runs[0].blocks[block].channel_error for block in (0, 1)]
    for block in (0, 1):
        figure = drawn("channel_error", result, block)
        assert list(figure.data[0].y) == sorted(errors[block], reverse=True)
    assert drawn("channel_error", result, 7).layout.annotations[0].text


def test_channel_error_sorted_is_descending_and_names_the_channel(result):
    figure = drawn("channel_error", result)
    trace, errors = figure.data[0], result.runs[0].boundary.channel_error
    assert list(trace.y) == sorted(errors, reverse=True)
    assert trace.customdata[0] == int(np.argmax(errors))
    assert figure.layout.yaxis.type == "log"
    guide, note = figure.layout.shapes[0], figure.layout.annotations[0]
    assert (guide.y0, note.y, note.text) == (1, 0, "plain dropping")  # a log axis: 10^0


def test_position_error_draws_ordinary_tokens_with_their_gaps(result):
    figure = drawn("position_error", result)
    thin = next(trace for trace in figure.data if trace.name == "ghost, ordinary tokens")
    assert thin.y[0] is None
    assert len(thin.y) == len(result.runs[0].boundary.position_error)


def test_heat_maps_share_a_symmetric_range_and_name_channels(result):
    report = result.runs[0].operators[0]
    plots = FIGURES["heat_map"].figures(with_map(report))
    maps = {part: plot.data[0] for part, plot in zip(("symmetric", "antisymmetric"), plots, strict=True)}
    for part, heat in maps.items():
        assert heat.zmin == -heat.zmax
        assert heat.zmax == maps["symmetric"].zmax
        assert np.allclose(heat.z, getattr(report, f"{part}_map"), atol=1e-6)
        assert list(heat.x)[:2] == [0, TILE]
    largest = max(np.abs(report.symmetric_map).max(), np.abs(report.antisymmetric_map).max())
    assert maps["symmetric"].zmax < largest  # one massive channel must not bleach the rest
    assert plots[0].layout.yaxis.scaleanchor == "x"
    ticks = maps["symmetric"].colorbar.tickvals
    assert len(ticks) == 3
    assert ticks[0] == -ticks[2] < ticks[1] == 0
    assert 0.4 * maps["symmetric"].zmax < ticks[2] <= maps["symmetric"].zmax


def test_symmetric_range_of_zero_and_of_one_outlier():
    assert style.symmetric_range([[0.0, 0.0]]) == 1.0
    sparse = np.zeros((100, 100))
    sparse[0, 0] = 3.0
    assert style.symmetric_range(sparse.tolist()) == 3.0


def test_energy_split_shows_both_metrics_and_logs_when_they_cancel(result):
    report = result.runs[0].operators[0]
    figure = FIGURES["energy_split"].draw(with_map(report))
    assert list(figure.data[1].x) == [report.split.frobenius["antisymmetric"], 0.41]
    massive = replace(
        report, split=replace(report.split, activation={"symmetric": 22.0, "antisymmetric": 21.0})
    )
    cancelling = FIGURES["energy_split"].draw(with_map(massive))
    assert cancelling.layout.xaxis.type == "log"
    assert cancelling.data[0].text[1] == "22.0 ×"
    assert cancelling.layout.xaxis.range[1] > math.log10(22)


def test_symmetry_cost_pairs_each_operator_with_the_best_symmetric_one(result):
    fitted, symmetric = drawn("symmetry_cost", result).data
    assert list(fitted.x) == [0.62, 0.62]
    assert list(symmetric.x) == [0.54, 0.54]
    assert list(fitted.y) == ["ghost", "affine"]


def test_eigenvalues_are_drawn_at_equal_aspect_around_the_unit_circle(result):
    report = result.runs[0].operators[0]
    figure = FIGURES["eigenvalues"].draw(with_map(report))
    circle, dots = figure.data
    assert np.allclose(np.hypot(circle.x, circle.y), 1)
    assert list(dots.x) == report.eigenvalues_real
    assert figure.layout.yaxis.scaleanchor == "x"
    assert figure.layout.yaxis.scaleratio == 1
    for axis, values in ((figure.layout.xaxis, dots.x), (figure.layout.yaxis, dots.y)):
        assert axis.range[0] <= min(-1, *values)
        assert axis.range[1] >= max(1, *values)


def test_singular_values_are_log_and_leave_rounding_out(result):
    report = result.runs[0].operators[0]
    deficient = replace(report, singular_values=[*report.singular_values[:-1], 1e-15])
    figure = FIGURES["singular_values"].draw(with_map(deficient))
    assert figure.layout.yaxis.type == "log"
    assert figure.data[0].y[0] == report.singular_values[0]
    assert figure.data[0].y[-1] is None


def test_rank_curve_has_both_texts_and_a_parameter_axis(result):
    figure = drawn("rank_curve", result)
    held_out, fitted = figure.data[:2]
    curve = result.runs[0].operators[0].truncated_svd
    assert list(held_out.y) == curve.explained
    assert list(fitted.y) == curve.explained_train
    assert 0 < held_out.x[0] < 1  # rank 0 has a place on the log axis
    assert list(held_out.x[1:]) == curve.ranks[1:]
    assert "9,216 parameters" in held_out.customdata[-1]  # C² is less than 2Cr
    assert figure.layout.xaxis2.ticktext[0] == "0"
    assert figure.layout.xaxis2.matches == "x"


def test_rank_curve_sets_reduced_rank_beside_truncated_svd(result):
    report = result.runs[0].operators[0]
    best = replace(report.truncated_svd, explained=[0.6] * len(report.truncated_svd.ranks))
    runs = [replace(result.runs[0], operators=[replace(report, reduced_rank=best)])] * 4
    shown = [trace for trace in drawn("rank_curve", replace(result, runs=runs)).data if trace.name == "ghost"]
    assert list(shown[2].y) == best.explained
    assert shown[2].marker.symbol == f"{shown[0].marker.symbol}-open"
    assert shown[1].visible == "legendonly", "with many recoveries the calibration curves wait"
    one = drawn("rank_curve", replace(result, runs=runs[:1]))
    keys = [trace.name for trace in one.data if trace.x[0] is None]
    assert keys == ["reduced rank (best on the data)", "calibration (fitted on)"]


def test_the_ranks_that_are_named_leave_room_for_one_another():
    assert spectrum._ticks([0, 1, 2, 4, 576]) == [0, 1, 4, 16, 64, 256]
    assert spectrum._ticks([0, 1, 4096]) == [0, 1, 16, 256, 4096]


def test_rank_curve_does_not_follow_a_rank_that_overshoots(result):
    report = result.runs[0].operators[0]
    wild = replace(report, truncated_svd=RankCurve([0, 1, 2], [0.0, -40.0, 0.5], [0.0, 0.3, 0.6]))
    figure = FIGURES["rank_curve"].draw(with_map(wild))
    low, high = figure.layout.yaxis.range
    assert -1.2 < low < -1
    assert 0.6 < high < 0.8


def test_selection_marks_what_was_chosen(result):
    figure = drawn("scores", with_selection(result))
    marked = next(trace for trace in figure.data if trace.name == "chosen")
    assert list(marked.x) == list(marked.customdata) == ["20:25"]
    assert len(next(trace for trace in figure.data if trace.name == "kept").x) == 25
    blocks = SelectionInfo("shortgpt", "influence", [str(i) for i in range(6)], [1.0] * 6, "2:4,5")
    assert selection.in_cut(blocks) == [False, False, True, True, False, True]
    layers = replace(blocks, labels=[f"{i}:{i + 1}" for i in range(6)])
    dots = drawn("scores", replace(result, selection=layers)).data[1]
    assert list(dots.x) == ["2", "3", "5"]
    assert list(dots.customdata) == ["2:3", "3:4", "5:6"]
    uneven = replace(layers, scores=[3.0, math.nan, 1.0, 2.0, 5.0, 4.0])
    assert [label for label, _ in selection.by_score(uneven)] == ["2:3", "3:4", "0:1", "5:6", "4:5"]


def test_nothing_to_show_is_a_reason_and_not_an_exception(result):
    bare = replace(result.runs[0], operators=[], window_nll=[], position_nll=[], gap_closed=math.nan)
    empty = replace(result, runs=[])
    reports = replace(
        result.runs[0].operators[0],
        symmetric_map=[],
        antisymmetric_map=[],
        eigenvalues_real=[],
        eigenvalues_imag=[],
    )
    alone = replace(result, runs=[bare])
    of_state = (
        "gap_closed",
        "explained",
        "relative_error",
        "channel_error",
        "position_error",
        "scores",
        "retained",
    )
    of_maps = ("gap_closed", "symmetry_cost", "singular_values", "cumulative_energy", "rank_curve", "ranks")
    figures = [drawn(name, empty) for name in of_state] + [drawn(name, alone) for name in of_maps]
    for name in ("heat_map", "eigenvalues"):
        figures += FIGURES[name].figures(with_map(reports))
        figures += FIGURES[name].figures([])
        figures += FIGURES[name].figures(rows(alone)[2:])
    for figure in figures:
        assert not figure.data
        assert len(figure.layout.annotations) == 1
        assert figure.layout.annotations[0].text.endswith(".")


def test_the_report_says_why_something_was_left_out_of_a_wide_map(result):
    wide = replace(result.runs[0].operators[0], eigenvalues_real=[], eigenvalues_imag=[], notes=["Too wide."])
    run = replace(result.runs[0], operators=[wide])
    panels = [panel for section in catalog.sections(replace(result, runs=[run])) for panel in section.panels]
    (panel,) = [panel for panel in panels if panel.name == "eigenvalues"]
    assert panel.sentence == "Eigenvalues were not computed for this operator. Too wide."
    assert [figure.layout.annotations[0].text for figure in panel.figures] == [
        "Eigenvalues were not computed for this operator."
    ]


def test_nan_never_breaks_a_figure(result):
    nothing = Metric(math.nan, math.nan, math.nan)
    broken = replace(result.runs[0], perplexity=nothing, gap_closed=math.nan)
    for section in catalog.sections(replace(result, runs=[broken, result.runs[1]])):
        assert section.panels
    figure = drawn("perplexity", replace(result, runs=[broken]))
    assert all(math.isfinite(end) for end in figure.layout.xaxis.range)


def between(name, one, other):
    return FIGURES[name].figures(pairs.sides(one, other))[0]


def perplexities(one, other):
    return FIGURES["perplexity"].draw(pairs.with_ends(one, other))


def test_two_sides_share_what_they_have_in_common_and_keep_the_rest_apart(result):
    pruned, ghost, affine, original = sides(result)
    assert [trace.name for trace in perplexities(ghost, affine).data if trace.type == "bar"] == [
        "original", "pruned", "ghost", "affine",
    ]  # fmt: skip
    assert list(bars(perplexities(pruned, ghost))) == ["original", "pruned", "ghost"]
    assert list(bars(perplexities(original, ghost))) == ["original", "pruned", "ghost"]
    other = sides(make_result(seed=3), "other")[1]
    assert list(bars(perplexities(ghost, other))) == [
        "original", "original for other: ghost", "pruned for ghost", "ghost",
        "pruned for other: ghost", "other: ghost",
    ]  # fmt: skip
    assert (
        between("paired_windows", ghost, other)
        .layout.annotations[0]
        .text.startswith("They were not measured")
    )
    shifts = between("paired_windows", ghost, affine).data[0]
    assert np.allclose(shifts.x, np.subtract(ghost.run.window_nll, affine.run.window_nll))


def test_two_sides_of_one_run_keep_the_colours_of_its_figures(result):
    """In either order; those of two runs are told apart by theirs."""
    pruned, ghost, affine, original = sides(result)
    own = {row.name: row.role.colour for row in rows(result)}
    for one, other in ((affine, ghost), (ghost, affine), (affine, pruned), (original, ghost)):
        for panel in comparison(one, other):
            for trace in panel.figures[0].data:
                line = trace.line.color if trace.type == "scatter" and trace.mode == "lines" else None
                colour = trace.marker.color if trace.type in ("bar", "box") else line
                name = (trace.name or "").partition(",")[0]
                assert colour in (None, style.INK, style.GUIDE, own.get(name)), panel.title
        dots = comparison(one, other)[3].figures[0].data[0]
        assert [own[name] for name in dots.y] == list(dots.marker.color)
    other = sides(make_result(seed=3), "other")[1]
    lines = between("by_position", affine, other).data
    assert [trace.line.color for trace in lines] == style.colours(2)[2:]


def test_panels_of_two_sides_have_words_and_a_figure_each_whatever_they_lack(result):
    every = [*sides(result), *sides(make_result(("drop",), blocks=3, seed=2), "other")]
    for one, other in [*itertools.pairwise(every), (every[-1], every[0]), (every[1], every[1])]:
        panels = comparison(one, other)
        assert tuple(panel.name for panel in panels) == pairs.NAMES
        assert all(panel.sentence.endswith(".") and "nan" not in panel.sentence for panel in panels)
        assert all(len(panel.figures) == 1 for panel in panels)


def test_what_each_side_lost_kept_and_wrote_is_said_of_both(result):
    asked = replace(result, zero_shot=make_zero_shot(["original", "pruned", "ghost", "affine"], ["boolq"]))
    pruned, ghost, affine, _ = sides(asked)
    told = {panel.name: panel for panel in comparison(ghost, affine)}
    for name in ("by_kind", "energy_split", "eigenvalues", "retained"):
        assert "ghost" in told[name].sentence, name
        assert "affine" in told[name].sentence, name
        assert told[name].figures[0].data, name
    split = {trace.name: list(trace.x) for trace in told["energy_split"].figures[0].data}
    report = ghost.run.operators[0].split
    assert split["ghost, symmetric"] == [report.frobenius["symmetric"], report.activation["symmetric"]]
    kept = told["retained"].figures[0].data
    assert [trace.x[0] for trace in kept] == [
        asked.zero_shot.retained(side.name).value for side in (ghost, affine)
    ]
    bare = {panel.name: panel for panel in comparison(pruned, sides(make_result(seed=3), "other")[0])}
    assert "not asked the same" in bare["retained"].sentence
    assert not bare["eigenvalues"].figures[0].data
