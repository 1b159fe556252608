"""Zero-shot tasks: the harness's definitions and figures, our shared answers, and the statistics."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from scipy.stats import binom

from ghostlab.cut import parse_cut
from ghostlab.errors import Cancelled, ConfigError, ResultError, TaskError
from ghostlab.evaluation.tasks import SHIPPED, load_tasks, quiet_harness
from ghostlab.evaluation.zeroshot import evaluate
from ghostlab.model.model import Model
from ghostlab.progress import CancelToken, Progress, ProgressUpdate
from ghostlab.results.statistics import above_chance, compare_answers, ratio_of_answers
from ghostlab.results.zeroshot import SUITES, Accuracy, TaskInfo, ZeroShot, parse_tasks
from tests.helpers.fake_hub import fake_data_hub
from tests.helpers.tiny import tiny_model
from tests.helpers.tokenizers import tiny_tokenizer
from tests.unit.test_decoder import random_replacements

pytestmark = pytest.mark.unit
harness = pytest.mark.skipif(
    importlib.util.find_spec("lm_eval") is None, reason="lm-evaluation-harness is not installed"
)
TASKS = ("arc_easy", "winogrande", "hellaswag", "boolq", "copa")
LIMIT = 6


def small_model(seed: int = 0) -> Model:
    inner = tiny_model("llama", seed=seed, vocab_size=400, max_position_embeddings=1024)
    return Model(inner, tiny_tokenizer(), name="small")


# -- statistics --------------------------------------------------------------------------------------------


def test_the_test_counts_what_only_one_of_them_knows() -> None:
    ours = [1] * 30 + [1] * 9 + [0] * 2 + [0] * 20
    theirs = [1] * 30 + [0] * 9 + [1] * 2 + [0] * 20
    found = compare_answers(ours, theirs)
    assert (found.gained, found.lost) == (9, 2)
    assert found.difference.value == pytest.approx(7 / 61)
    assert found.p == pytest.approx(2 * binom.cdf(2, 11, 0.5))
    swapped = compare_answers(theirs, ours)
    assert (swapped.gained, swapped.lost, swapped.p) == (2, 9, pytest.approx(found.p))
    rng = np.random.default_rng(3)
    picks = rng.integers(61, size=(4000, 61))
    drawn = (np.array(ours)[picks] - np.array(theirs)[picks]).mean(axis=1)
    assert (found.difference.low, found.difference.high) == pytest.approx(
        tuple(np.percentile(drawn, [2.5, 97.5])), abs=0.02
    )
    same = compare_answers(ours, ours)
    assert (same.p, same.difference.low, same.difference.high) == (1.0, 0.0, 0.0)


def test_retained_performance_is_the_mean_of_ratios() -> None:
    tasks = [([1] * 3 + [0] * 7, [1] * 6 + [0] * 4), ([1] * 36 + [0] * 4, [1] * 40)]
    found = ratio_of_answers(tasks)
    assert found.value == pytest.approx((0.5 + 0.9) / 2), "not the ratio of means, 39/46"
    assert found.low < found.value < found.high
    rare = ratio_of_answers([([1] + [0] * 9, [1] + [0] * 9)])
    assert (rare.low, rare.value, rare.high) == (1.0, 1.0, 1.0), "equal in every sample that tells anything"
    assert np.isnan(ratio_of_answers([]).value)


def made(**scores: list[list[int]]) -> ZeroShot:
    """Two tasks; the second has no normalised accuracy."""
    infos = [TaskInfo("one", "1.0", "validation", "shipped", 4), TaskInfo("two", "1.0", "test", "org/set", 2)]

    def accuracy(correct: list[int]) -> Accuracy:
        return Accuracy(float(np.mean(correct)), 0.1, correct)

    acc = {name: {"one": accuracy(a), "two": accuracy(b)} for name, (a, b, _) in scores.items()}
    normed = {name: {"one": accuracy(c)} for name, (_, _, c) in scores.items()}
    return ZeroShot("small", list(scores), infos, acc, normed)


def test_a_result_averages_and_compares_with_its_first_variant(tmp_path: Path) -> None:
    found = made(original=[[1, 1, 1, 0], [1, 0], [1, 1, 0, 0]], drop=[[1, 0, 0, 0], [1, 0], [1, 1, 1, 0]])
    assert found.average("original") == pytest.approx((0.75 + 0.5) / 2)
    assert found.retained("drop").value == pytest.approx((1 / 3 + 1) / 2)
    assert found.retained("drop", "acc_norm").value == pytest.approx((3 / 2 + 1) / 2)
    assert found.paired("drop", "one").lost == 2
    assert found.paired("original", "one", other="drop").gained == 2
    frame = found.to_frame()
    assert list(frame.loc[frame.task == "one", "acc"]) == [0.75, 0.25]
    assert ZeroShot.load(found.save(tmp_path / "deep" / "tasks.json")) == found
    with pytest.raises(ResultError, match="schema 9"):
        ZeroShot.from_dict({**found.to_dict(), "schema": 9})
    with pytest.raises(ResultError, match="damaged at acc"):
        ZeroShot.from_dict({k: v for k, v in found.to_dict().items() if k != "acc"})
    with pytest.raises(ResultError, match="not a readable"):
        ZeroShot.load(tmp_path / "nowhere.json")
    nothing = made(original=[[0, 0, 0, 0], [1, 1], [0, 0, 0, 0]], drop=[[1, 0, 0, 0], [1, 0], [0, 0, 0, 0]])
    assert nothing.retained("drop").value == 0.5, "a task of which the original knows nothing has no ratio"


def test_a_task_that_the_original_guesses_has_no_say() -> None:
    original = [[1] * 29 + [0] * 31, [1] * 16 + [0] * 44, [1] * 16 + [0] * 44]
    found = made(original=original, ghost=[[1] * 16 + [0] * 44, [0] * 15 + [1] * 45, original[2]])
    assert found.at_chance() == [], "of tasks that nobody knows nothing is claimed"
    one, two = found.tasks
    found = replace(found, tasks=[replace(one, chance=0.25), replace(two, chance=0.5)])
    assert (found.at_chance(), found.at_chance("acc_norm")) == (["two"], ["one", "two"])
    assert [task.name for task in found.informative()] == ["one"]
    assert found.retained("ghost").value == pytest.approx((16 / 29 + 45 / 16) / 2)
    assert found.retained("ghost", without=found.at_chance()).value == pytest.approx(16 / 29)
    assert found.informative("acc_norm") == found.tasks, "all of them where none is above chance"


def test_chance_is_outdone_or_not() -> None:
    assert above_chance([1] * 59 + [0] * 41, 0.5)
    assert not above_chance([1] * 58 + [0] * 42, 0.5), "59 of 100 is the least with p < 0.05"
    assert not above_chance([0] * 20, 0.0)
    assert above_chance([1] + [0] * 19, 0.0)


def test_suites_and_names() -> None:
    assert {name: len(tasks) for name, tasks in SUITES.items()} == {
        "ghosted-layers": 9,
        "linearpatch": 9,
        "shift-llm": 7,
    }
    assert parse_tasks("arc_easy, piqa,arc_easy") == ["arc_easy", "piqa"]
    assert parse_tasks(["shift-llm", "sciq"])[-2:] == ["openbookqa", "sciq"]
    with pytest.raises(ConfigError, match="No task"):
        parse_tasks(" , ")


# -- the harness -------------------------------------------------------------------------------------------


def test_without_the_harness_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TaskError, match=r"pip install 'lm_eval>="):
        evaluate(small_model(), "arc_easy")


@harness
def test_every_shipped_task_has_the_harness_own_definition() -> None:
    tasks, infos, left_out = load_tasks(sorted(SHIPPED), limit=2)
    assert not left_out
    assert set(tasks) == set(SHIPPED)
    assert {info.source for info in infos} == {"shipped"}
    assert {info.documents for info in infos} == {2}
    with quiet_harness():
        for task in tasks.values():
            task.build_all_requests(limit=1)
    asked = {name: [request.args for request in task.instances] for name, task in tasks.items()}
    assert asked["arc_easy"][0] == (
        "Question: Which technology was developed most recently?\nAnswer:",
        " cellular telephone",
    )
    assert asked["boolq"][0][0].endswith("does ethanol take more energy make that produces?\nAnswer:")
    assert [continuation for _, continuation in asked["boolq"]] == [" no", " yes"]
    assert asked["winogrande"][0][0].endswith("Sarah was a much better surgeon than Maria so Sarah")
    assert tasks["boolq"].doc_to_target(tasks["boolq"].eval_docs[0]) == 0


@harness
def test_answers_are_those_of_the_harness_on_each_model_alone() -> None:
    from lm_eval.evaluator import evaluate as judge
    from lm_eval.models.huggingface import HFLM

    model = small_model()
    variants = {
        "original": model,
        "drop": model.without(parse_cut("2:4")),
        "mapped": model.without(parse_cut("3:5"), random_replacements("3:5")),
        "other": small_model(seed=7),
    }
    updates: list[ProgressUpdate] = []
    found = evaluate(variants, TASKS, limit=LIMIT, progress=Progress(updates.append))
    assert [update.fraction for update in updates] == sorted(update.fraction for update in updates)
    assert updates[-1].fraction == 1.0
    tasks, _, _ = load_tasks(TASKS, limit=LIMIT)
    for name, variant in variants.items():
        with quiet_harness():
            alone: Any = judge(
                HFLM(pretrained=variant.hf, tokenizer=variant.tokenizer, batch_size=8),
                {"tasks": tasks, "groups": {}},
                limit=LIMIT,
            )
        for task in TASKS:
            figures = alone["results"][task]
            assert found.acc[name][task].value == figures["acc,none"]
            assert found.acc[name][task].stderr == figures["acc_stderr,none"]
            assert found.acc[name][task].correct == [s["acc"] for s in alone["samples"][task]]
            normed = found.acc_norm[name].get(task)
            assert (normed and normed.value) == figures.get("acc_norm,none")
    assert found.acc["drop"] != found.acc["original"]
    assert {info.name: info.note for info in found.tasks}["boolq"] == "passages without their titles"


RACE = {
    "article": "One two three.",
    "problems": str(
        [
            {"question": "Who is  _  .", "answer": "A", "options": ["a", "b", "c", "d"]},
            {"question": "What is it?", "answer": "B", "options": ["a b", "b", "c", "d e"]},
        ]
    ),
}
WSC = {
    **{"text": "The city refused the men a permit because they feared violence.", "pronoun": "they"},
    **{"pronoun_loc": 42, "quote": "they feared violence", "quote_loc": 42},
    **{"options": ["The city", "The men"], "label": 0, "source": "x"},
}
ARC = {
    "id": "1",
    "question": "What?",
    "choices": {"text": ["a", "b", "c"], "label": ["A", "B", "C"]},
    "answerKey": "C",
}


def stored(root: Path, config: str, row: dict[str, Any], **splits: int) -> Path:
    """A data set as the hub keeps it: so many rows in each split."""
    for split, count in splits.items():
        path = root / config / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist([row] * count), path)
    files = [{"split": split, "path": f"{config}/{split}-*"} for split in splits]
    about = {"configs": [{"config_name": config, "data_files": files}]}
    (root / "README.md").write_text(f"---\n{json.dumps(about)}\n---\n")
    return root


@harness
def test_data_of_the_hub_come_in_the_splits_of_the_papers(tmp_path: Path) -> None:
    repos: dict[str, Path | str] = {
        "datasets/EleutherAI/race": stored(tmp_path / "race", "high", RACE, test=3),
        "datasets/lighteval/winograd_wsc": stored(tmp_path / "wsc", "wsc273", WSC, test=3),
        "datasets/allenai/ai2_arc": stored(tmp_path / "arc", "ARC-Easy", ARC, train=1, validation=2, test=4),
    }
    model = small_model()
    asked = ["race", "wsc273", "arc_easy"]
    with fake_data_hub(repos, tmp_path / "cache"):
        found = evaluate(model, asked, limit=3, hub=True)
        tasks, _, _ = load_tasks(["race", "wsc273"], limit=3)
    assert not found.left_out
    assert [(task.name, task.split, task.source, task.documents, task.chance) for task in found.tasks] == [
        ("race", "test", "EleutherAI/race/high", 3, 0.25),
        ("wsc273", "test", "lighteval/winograd_wsc/wsc273", 3, 0.5),
        ("arc_easy", "test", "allenai/ai2_arc/ARC-Easy", 3, pytest.approx(1 / 3)),
    ]
    with quiet_harness():
        for task in tasks.values():
            task.build_all_requests(limit=1)
    (race, *_), (first, second) = ([request.args for request in task.instances] for task in tasks.values())
    assert race == ("Article: One two three.\n\nWho is a\nWhat is it?", " a b")
    ending = "  feared violence."  # the harness's own space between choice and ending, and the text's
    assert first == ("The city refused the men a permit because the city", ending)
    assert second == ("The city refused the men a permit because the men", ending)
    sums = []
    for context, continuation in (first, second):
        ids = model.tokenizer(context + continuation, return_tensors="pt").input_ids
        start = len(model.tokenizer(context).input_ids)
        with torch.no_grad():
            logp = model.hf(ids).logits[0, :-1].log_softmax(-1)
        sums.append(float(logp.gather(-1, ids[0, 1:, None])[start - 1 :].sum()))
    assert found.acc["original"]["wsc273"].correct == [int(sums[0] > sums[1])] * 3


@harness
def test_what_cannot_be_asked_is_said() -> None:
    model = small_model()
    found = evaluate(model, ["copa", "race"], limit=2)
    assert list(found.left_out) == ["race"]
    assert [task.name for task in found.tasks] == ["copa"]
    with pytest.raises(TaskError, match="race cannot be evaluated; its data are not available"):
        evaluate(model, "race")
    with pytest.raises(ConfigError, match="limit is 0"):
        evaluate(model, "copa", limit=0)
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        evaluate(model, "copa", limit=2, progress=Progress(cancel=token))
