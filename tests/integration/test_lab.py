"""The whole pipeline on the embedded model: what the design promises, measured."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

import ghostlab as gl
from ghostlab.errors import Cancelled, CutError, TextError
from ghostlab.lab.lab import Lab
from ghostlab.model.model import Model
from ghostlab.progress import ProgressUpdate
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings
from ghostlab.text.documents import Text

pytestmark = pytest.mark.integration
SMALL = {"sequences": 24, "length": 128, "held_out": 8, "new_tokens": 4}
TINY = {"sequences": 12, "length": 64, "held_out": 4, "new_tokens": 0}
"""For what is true of 768 tokens as it is of 3072."""


@pytest.fixture(scope="module")
def result(lab: Lab) -> RunResult:
    specs = (gl.RecoverySpec("ghost"), gl.RecoverySpec("affine"), gl.RecoverySpec("ghost", rank=64))
    return lab.run(gl.RunConfig(drop="20:25", recover=specs, **SMALL))


def test_dropping_destroys_and_ghost_recovers(result: RunResult) -> None:
    original, pruned = (s.perplexity.value for s in (result.baseline.original, result.baseline.pruned))
    ghost, affine, low_rank = (run.perplexity.value for run in result.runs)
    assert 15 < original < 45
    assert pruned > 5 * original
    assert ghost < 0.35 * pruned
    assert affine == pytest.approx(ghost, rel=0.1)
    assert ghost < low_rank < pruned


def test_every_metric_has_an_interval_around_it(result: RunResult) -> None:
    for scores in (result.baseline.original, result.baseline.pruned, *result.runs):
        for name in ("perplexity", "bits_per_byte", "kl", "top1_agreement"):
            metric = getattr(scores, name)
            assert metric.low <= metric.value <= metric.high
    assert result.baseline.original.kl.value == 0
    assert result.baseline.original.top1_agreement.value == 1


def test_the_boundary_agrees_with_the_likelihood(result: RunResult) -> None:
    ghost, _, low_rank = (run.boundary for run in result.runs)
    assert 0 < low_rank.explained < ghost.explained < (ghost.explained_train or 0) < 1
    assert ghost.relative_error < ghost.relative_error_ordinary, "massive tokens are fitted first"


def test_two_routes_to_the_held_out_error_agree(result: RunResult) -> None:
    """From residuals of the module in float32, and from moments in float64."""
    for run in result.runs:
        assert run.operators[0].split.explained == pytest.approx(run.boundary.explained, abs=1e-3)
        assert run.operators[0].split.relative_error == pytest.approx(run.boundary.relative_error, abs=1e-3)


def test_symmetry_costs_something_and_the_rank_curve_ends_at_the_full_map(result: RunResult) -> None:
    report = result.runs[0].operators[0]
    assert report.split.explained_symmetric < report.split.explained
    assert report.truncated_svd.explained[-1] == pytest.approx(report.split.explained, abs=1e-6)
    assert len(report.eigenvalues_real) == 576
    at = report.truncated_svd
    assert at.explained[at.ranks.index(0)] == pytest.approx(0, abs=1e-9)


def test_parameters_are_counted(result: RunResult) -> None:
    assert [run.parameters_added for run in result.runs] == [576**2, 576**2 + 576, 2 * 576 * 64]
    assert result.model.parameters == 134_515_008
    per_block = 576 * (576 + 2 * 192 + 576) + 3 * 576 * 1536 + 2 * 576
    assert result.model.parameters_dropped == 5 * per_block


def test_a_result_survives_saving(result: RunResult, tmp_path: Path) -> None:
    again = RunResult.load(result.save(tmp_path / "out"))
    assert again.to_dict() == result.to_dict()
    assert {k: v.shape for k, v in again.operators.items()} == {
        k: v.shape for k, v in result.operators.items()
    }
    assert (tmp_path / "out" / "result.json").stat().st_size < 1_000_000


def test_every_variant_continues_the_prompt(lab: Lab, result: RunResult) -> None:
    names = ["original", "pruned", "ghost", "affine", "ghost, rank 64"]
    assert [g.variant for g in result.generations] == names
    assert {g.prompt_format for g in result.generations} == {"chat"}, (
        "the embedded model is an instruct model"
    )
    assert [g.shared_blocks for g in result.generations] == [0, *[20] * 4]
    assert all(len(g.written) == g.tokens and 0 < g.first_seconds < g.seconds for g in result.generations)
    assert result.generations[0].leaves is None
    assert result.generations[1].leaves is not None
    seen: dict[str, str] = {}
    again = lab.generate(
        result,
        prompt="The capital of France is",
        prompt_format="raw",
        new_tokens=3,
        on_text=lambda name, text: seen.update({name: text}),
    )
    assert again[0].text.startswith(" Paris")
    assert seen == {g.variant: g.text for g in again}


@pytest.mark.parametrize("drop", ["0:3", "24:30", "4,12:14,29"])
def test_first_last_and_several_blocks(lab: Lab, drop: str) -> None:
    result = lab.run(gl.RunConfig(drop=drop, recover=(gl.RecoverySpec("affine"),), **TINY))
    (run,) = result.runs
    assert run.perplexity.value < result.baseline.pruned.perplexity.value
    assert len(run.operators) == len(gl.parse_cut(drop).blocks)


@pytest.mark.parametrize(("criterion", "expected"), [("streamline", "13:19"), ("shortgpt", None)])
def test_criteria_choose_the_blocks_that_the_field_would(
    lab: Lab, criterion: str, expected: str | None
) -> None:
    config = gl.RunConfig(drop=None, select=criterion, count=6, recover=(), **TINY)
    result = lab.run(config)
    assert result.selection is not None
    if expected:
        assert result.selection.chosen == expected
    else:  # measured before on other text: 25, 26, 13, 14, 17, 12, 15, 16
        assert set(result.cut.dropped) <= {25, 26, 13, 14, 17, 12, 15, 16}


def test_recovered_model_cached_uncached_saved_and_loaded(
    embedded_model: Model,
    wikipedia: Text,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    calib = gl.calibrate(embedded_model, wikipedia, sequences=8, length=64)
    cut = gl.parse_cut("20:25,28:30")
    recovered = gl.apply(embedded_model, cut, gl.fit(calib, cut, method="ghost"))
    ids = calib.windows.ids[:2, :24]
    full = recovered.hf(ids, use_cache=False).logits
    first = recovered.hf(ids[:, :16], use_cache=True)
    second = recovered.hf(ids[:, 16:], cache=first.past_key_values, use_cache=True)
    torch.testing.assert_close(torch.cat([first.logits, second.logits], 1), full, rtol=1e-3, atol=1e-3)
    recovered.save(tmp_path / "out")
    again = gl.load_recovered(tmp_path / "out", settings=settings)
    assert torch.equal(again.hf(ids, use_cache=False).logits, full)
    trusted = AutoModelForCausalLM.from_pretrained(tmp_path / "out", trust_remote_code=True)
    with torch.no_grad():
        assert torch.equal(trusted(ids, use_cache=False).logits, full)
    direct = gl.perplexity(recovered, wikipedia.held_out, sequences=4, length=64)
    loaded = gl.perplexity(again, wikipedia.held_out, sequences=4, length=64)
    assert direct == loaded


def test_library_and_pipeline_give_the_same_figure(
    embedded_model: Model, wikipedia: Text, result: RunResult
) -> None:
    calib = gl.calibrate(embedded_model, wikipedia, sequences=SMALL["sequences"], length=SMALL["length"])
    cut = gl.parse_cut("20:25")
    recovered = gl.apply(embedded_model, cut, gl.fit(calib, cut, method="ghost"))
    found = gl.perplexity(recovered, wikipedia.held_out, sequences=8, length=128)
    assert found.value == pytest.approx(result.runs[0].perplexity.value, rel=1e-3)


def test_a_stop_while_generating_keeps_what_was_measured(lab: Lab) -> None:
    token, kept = gl.CancelToken(), []
    config = gl.RunConfig(drop="20:25", recover=(), **{**TINY, "new_tokens": 50})

    def stop_soon(variant: str, text: str) -> None:
        token.cancel()

    with pytest.raises(Cancelled):
        lab.run(config, cancel=token, on_result=kept.append, on_text=stop_soon)
    assert kept[0].baseline.pruned.perplexity.value > kept[0].baseline.original.perplexity.value


def test_progress_never_goes_back(lab: Lab) -> None:
    seen: list[ProgressUpdate] = []
    lab.run(gl.RunConfig(drop="28:29", recover=(), **TINY), progress=seen.append)
    fractions = [update.fraction for update in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"drop": "28:31"}, CutError, "outside the model"),
        ({"drop": "0:30"}, CutError, "all 30"),
        ({"length": 10_000}, TextError, "context of 8192"),
        ({"sequences": 5000}, TextError, "too short"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(
    lab: Lab, change: dict[str, object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        lab.run(gl.RunConfig(**{**TINY, "recover": (), **change}))
