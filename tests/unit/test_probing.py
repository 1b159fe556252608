"""Altered maps put back into a model: the ends of every scale are variants that are known already."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from ghostlab.analysis.altered import alter
from ghostlab.calibration.moments import Moments
from ghostlab.config import RunConfig
from ghostlab.errors import Cancelled, ConfigError, ResultError
from ghostlab.lab.lab import Lab
from ghostlab.lab.requests import RunRequest, Work
from ghostlab.model.replacement import AffineMap
from ghostlab.progress import CancelToken, ProgressUpdate
from ghostlab.results.probe import Alteration
from ghostlab.results.run import RunResult
from ghostlab.settings import Settings
from ghostlab.spec import RecoverySpec
from tests.helpers.lm import tiny_lm
from tests.helpers.tiny import WIDTH

pytestmark = pytest.mark.unit
GHOST = "ghost, ridge 0"
RECOVERIES = ("ghost", "ghost_sink", "ghost,rank=4", "drop")


@pytest.fixture(scope="module")
def lab() -> Lab:
    """A lab whose only model is a tiny one with a text of its words."""
    made = Lab(Settings())
    words = np.random.default_rng(0).integers(3, 96, 9000)
    made.words = "paste:" + "\n\n".join(  # type: ignore[attr-defined]
        " ".join(f"w{word}" for word in part) for part in words.reshape(30, -1)
    )
    model = tiny_lm()
    made._session.model = lambda *_: model  # type: ignore[method-assign]
    return made


@pytest.fixture(scope="module")
def result(lab: Lab) -> RunResult:
    config = RunConfig(
        text=lab.words,  # type: ignore[attr-defined]
        drop="1:3,4:5",
        recover=tuple(RecoverySpec.parse(name) for name in RECOVERIES),
        sequences=20,
        length=32,
        held_out=6,
        batch=4,
        ridge="0",
        new_tokens=3,
        prompt="w5 w6",
    )
    return lab.run(config)


def test_the_ends_of_the_scale_are_the_pruned_and_the_recovered_model(lab: Lab, result: RunResult) -> None:
    for run in result.runs[:3]:
        nothing, whole = lab.probe(result, run.label, Alteration(alpha=0.0), Alteration())
        assert nothing.window_nll == pytest.approx(result.baseline.pruned.window_nll, abs=1e-6)
        assert whole.perplexity == run.perplexity
        assert whole.kl == run.kl
        assert whole.parameters_added == run.parameters_added
        assert nothing.generation is whole.generation is None


def test_the_full_rank_is_the_recovered_model_and_a_low_one_is_as_fitted(lab: Lab, result: RunResult) -> None:
    ghost = result.runs[0]
    for factor in ("truncated_svd", "reduced_rank"):
        full, low = lab.probe(
            result, GHOST, Alteration(rank=WIDTH, factor=factor), Alteration(rank=4, factor=factor)
        )
        assert full.perplexity.value == pytest.approx(ghost.perplexity.value, rel=1e-5)
        assert low.parameters_added == 2 * 2 * 4 * WIDTH, "two blocks, two factors"
        assert low.perplexity.value != pytest.approx(ghost.perplexity.value, rel=1e-3)
    assert low.window_nll == pytest.approx(result.runs[2].window_nll, abs=1e-5), "as fitted with that rank"


def test_one_alteration_is_also_heard(lab: Lab, result: RunResult) -> None:
    heard: list[str] = []
    (whole,) = lab.probe(result, GHOST, Alteration(), on_text=lambda _, text: heard.append(text))
    assert whole.generation is not None
    assert heard[-1] == whole.generation.text
    ran = next(g for g in result.generations if g.variant == GHOST)
    assert [t.text for t in whole.generation.written] == [t.text for t in ran.written]
    assert whole.generation.leaves == ran.leaves is not None, "judged by the original's path, not by its own"
    again = RunResult.from_dict(replace(result, probes=[whole]).to_dict())
    assert again.probes == [whole]


def test_states_are_kept_from_probe_to_probe(
    lab: Lab, result: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.probe(result, GHOST, Alteration(part="symmetric"))
    monkeypatch.setattr(
        "ghostlab.calibration.activations.Activations._compute",
        lambda *_, **__: pytest.fail("ran the original again"),
    )
    (again,) = lab.probe(result, GHOST, Alteration())
    assert again.perplexity == result.runs[0].perplexity


def test_what_cannot_be_probed_is_refused_and_a_stop_is_obeyed(lab: Lab, result: RunResult) -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        lab.probe(result, GHOST, Alteration(), cancel=token)
    for label, how, says in (
        ("drop", Alteration(), "does not replace the blocks by linear maps"),
        ("other", Alteration(), "no recovery 'other'"),
        (GHOST, Alteration(rank=WIDTH + 1), f"rank from 1 to {WIDTH}"),
        (GHOST, Alteration(alpha=float("nan")), "Strength nan"),
    ):
        with pytest.raises(ConfigError, match=says):
            lab.probe(result, label, how)
    with pytest.raises(ResultError, match="holds no operators for"):
        lab.probe(replace(result, operators={}), GHOST, Alteration())


def test_parts_add_up_and_the_bias_follows_the_part() -> None:
    rng = torch.Generator().manual_seed(3)
    x, d = (torch.randn(50, 6, generator=rng, dtype=torch.float64) + 1 for _ in range(2))
    seen = Moments.of(x, d)
    matrix = torch.randn(6, 6, generator=rng, dtype=torch.float64)
    bias = d.mean(0) - x.mean(0) @ matrix
    fitted = AffineMap(matrix, bias=bias, first=torch.ones(6))
    parts = [alter(fitted, Alteration(part=part), seen) for part in ("symmetric", "antisymmetric")]
    torch.testing.assert_close(parts[0].matrix() + parts[1].matrix(), fitted.matrix())
    for part in parts:
        assert part.bias is not None
        torch.testing.assert_close(
            part.bias.double(), d.mean(0) - x.mean(0) @ part.matrix(), atol=1e-5, rtol=0
        )
    half = alter(fitted, Alteration(alpha=0.5))
    torch.testing.assert_close(half.matrix(), fitted.matrix() / 2)
    assert half.bias is not None
    assert half.first is not None
    torch.testing.assert_close(half.bias, fitted.bias / 2)
    assert half.first.tolist() == [0.5] * 6


def test_blocks_are_scored_as_a_run_would_score_them_and_nothing_else_is_done(
    lab: Lab, result: RunResult
) -> None:
    asked = replace(result.config, drop=None, select="shortgpt", count=2, recover=(), new_tokens=0)
    assert lab.score(asked) == lab.run(asked).selection
    with pytest.raises(ConfigError, match="No criterion is selected"):
        lab.score(result.config)
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        lab.score(asked, cancel=token)


def test_a_result_that_was_handed_on_never_changes(lab: Lab, result: RunResult) -> None:
    kept: list[tuple[RunResult, dict[str, float]]] = []
    found = lab.run(result.config, on_result=lambda made: kept.append((made, dict(made.timings))))
    assert len(kept) > 2, "measured, then with the text of each variant"
    assert all(made.timings == then for made, then in kept)
    assert all(set(then) == set(found.timings) for _, then in kept), "generation is timed from the start"


def test_a_lab_serves_one_thread_at_a_time_and_who_waits_can_give_up(lab: Lab, result: RunResult) -> None:
    busy, token = threading.Event(), CancelToken()

    def wait(_: ProgressUpdate) -> None:
        busy.set()
        assert given_up.wait(10)

    given_up = threading.Event()
    work = Work(progress=wait)
    first = threading.Thread(target=lambda: lab.call(RunRequest(replace(result.config, recover=())), work))
    first.start()
    assert busy.wait(10)
    token.cancel()
    with pytest.raises(Cancelled):
        lab.run(result.config, cancel=token)
    given_up.set()
    first.join()
