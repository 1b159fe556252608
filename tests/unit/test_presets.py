"""The papers' texts: read by the real client from a hub of ours in the hub's own layout, cut as GPTQ cuts them."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError, TextError
from ghostlab.evaluation.scoreboard import perplexity
from ghostlab.lab.lab import Lab
from ghostlab.model.model import Model
from ghostlab.progress import SILENT, Progress
from ghostlab.results.run import RunResult
from ghostlab.settings import PUBLIC_LIMITS, Settings
from ghostlab.spec import RecoverySpec
from ghostlab.text.corpora import CORPORA, load_text
from ghostlab.text.windows import make_windows
from tests.helpers.documents import DOCUMENTS
from tests.helpers.fake_hub import fake_data_hub
from tests.helpers.tiny import tiny_model
from tests.helpers.tokenizers import tiny_tokenizer

pytestmark = pytest.mark.unit

SENTENCES = [f" {sentence.strip()} " for text in DOCUMENTS[:40] for sentence in text.split(". ") if sentence]
LENGTH = 64
FITTED = "paste:" + "\n\n".join(DOCUMENTS)
PAGES = [" ".join(DOCUMENTS[i : i + 1 + i % 4]) for i in range(60)]


def lines(number: int) -> list[str]:
    """Three articles as WikiText stores them: a line each, with empty lines and headings of two ranks."""
    rows: list[str] = []
    for article in range(3):
        rows += ["", f" = Article {number}.{article} = \n", ""]
        rows += [f" {text} \n" for text in DOCUMENTS[80 * article : 80 * article + 80]]
        rows += [" = = A part = = \n", f" {DOCUMENTS[10 * article + 5]} é \n"]
    return rows


def parquet(path: Path, **columns: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def wikitext(root: Path) -> Path:
    splits = ("train", "validation", "test")
    for number, split in enumerate(splits):
        parquet(root / "wikitext-2-raw-v1" / f"{split}-00000-of-00001.parquet", text=lines(number))
        parquet(root / "wikitext-2-v1" / f"{split}-00000-of-00001.parquet", text=["of another edition"] * 9)
    configs = [
        {
            "config_name": name,
            "data_files": [{"split": split, "path": f"{name}/{split}-*"} for split in splits],
        }
        for name in ("wikitext-2-raw-v1", "wikitext-2-v1")
    ]
    (root / "README.md").write_text(f"---\n{json.dumps({'configs': configs})}\n---\n# WikiText\n")
    return root


def treebank(root: Path) -> Path:
    for split in ("train", "validation", "test"):
        marked = [f" {split}{sentence}" for sentence in SENTENCES]
        parquet(root / "penn_treebank" / split / "0000.parquet", sentence=marked)
    return root


def c4(root: Path) -> Path:
    (root / "en").mkdir(parents=True)
    for name in ("c4-train.00000-of-01024", "c4-train.00001-of-01024", "c4-validation.00000-of-00008"):
        with gzip.open(root / "en" / f"{name}.json.gz", "wt", encoding="utf-8") as file:
            for text in PAGES:
                row = {"text": f"{name}: {text}", "timestamp": "2019-04-24T07:07:06Z", "url": "http://x"}
                file.write(json.dumps(row) + "\n")
    return root


@pytest.fixture(scope="module")
def requested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """A hub with the three data sets; PTB is a script there, with a conversion on its own branch."""
    root = tmp_path_factory.mktemp("hub")
    script = root / "script"
    script.mkdir()
    (script / "ptb_text_only.py").write_text("raise SystemExit('a script ran')")
    repos: dict[str, Path | str] = {
        "datasets/Salesforce/wikitext": wikitext(root / "wikitext"),
        "datasets/ptb-text-only/ptb_text_only": script,
        "datasets/ptb-text-only/ptb_text_only@CONVERTED": treebank(root / "ptb"),
        "datasets/allenai/c4": c4(root / "c4"),
    }
    with fake_data_hub(repos, root / "cache") as asked:
        yield asked


@pytest.mark.parametrize(
    ("name", "rows", "join"),
    [
        ("wikitext2", lines(2), "\n\n"),
        ("ptb", [f" validation{s}" for s in SENTENCES], "\n\n"),
        ("ptb_new", [f" test{s}" for s in SENTENCES], " "),
    ],
)
@pytest.mark.parametrize("adds_bos", [False, True])
def test_joined_texts_are_cut_as_gptq_does(
    requested: list[str], name: str, rows: list[str], join: str, adds_bos: bool
) -> None:
    text = load_text(name)
    tokenizer = tiny_tokenizer(adds_bos=adds_bos)
    expected = torch.tensor(tokenizer(join.join(rows)).input_ids)
    count = len(expected) // LENGTH
    windows = make_windows(text.held_out, tokenizer, count=None, length=LENGTH, seed=7)
    assert torch.equal(windows.ids, expected[: count * LENGTH].view(count, LENGTH))
    assert windows.rule.bos == ("start of the text" if adds_bos else "nowhere")
    assert (windows.rule.protocol, windows.rule.join, windows.rule.order) == (
        CORPORA[name].protocol.name,
        join,
        "consecutive",
    )
    decoded = [len(tokenizer.decode(row[1:]).encode()) for row in windows.ids]
    assert windows.bytes.tolist() == pytest.approx(decoded, abs=4), "a window may end inside a character"
    some = make_windows(text.held_out, tokenizer, count=2, length=LENGTH)
    assert torch.equal(some.ids, windows.ids[:2])


def test_c4_is_drawn_as_gptq_draws(requested: list[str]) -> None:
    text = load_text("c4")
    tokenizer = tiny_tokenizer(adds_bos=True)
    rows = [f"c4-validation.00000-of-00008: {page}" for page in PAGES]
    state = random.getstate()
    random.seed(0)
    expected = []
    for _ in range(256):
        while True:
            ids = tokenizer(rows[random.randint(0, len(rows) - 1)]).input_ids
            if len(ids) > LENGTH:
                break
        start = random.randint(0, len(ids) - LENGTH - 1)
        expected.append(ids[start : start + LENGTH])
    random.setstate(state)
    windows = make_windows(text.held_out, tokenizer, count=None, length=LENGTH)
    assert windows.ids.tolist() == expected
    assert (windows.rule.join, windows.rule.order) == (None, "random documents")
    with pytest.raises(TextError, match="no window of 100000 tokens"):
        make_windows(text.held_out, tokenizer, count=4, length=100_000)


def test_bos_can_stand_in_every_window_or_nowhere(requested: list[str]) -> None:
    held_out = load_text("wikitext2").held_out
    tokenizer = tiny_tokenizer(adds_bos=True)
    plain = tokenizer(held_out.texts[0], add_special_tokens=False).input_ids
    every = make_windows(held_out, tokenizer, count=3, length=LENGTH, bos="always")
    assert every.ids[:, 0].tolist() == [tokenizer.bos_token_id] * 3
    assert every.ids[:, 1:].flatten().tolist() == plain[: 3 * (LENGTH - 1)]
    assert (every.bos, every.rule.bos) == (True, "every window")
    assert int(every.bytes.sum()) == len(tokenizer.decode(plain[: 3 * (LENGTH - 1)]).encode())
    nowhere = make_windows(held_out, tokenizer, count=3, length=LENGTH, bos="never")
    assert nowhere.ids.flatten().tolist() == plain[: 3 * LENGTH]
    assert nowhere.rule.bos == "nowhere"


def test_operators_are_fitted_on_the_training_part(requested: list[str]) -> None:
    wiki = load_text("wikitext2")
    assert [text.splitlines()[0].strip() for text in wiki.calibration] == [
        f"= Article 0.{i} =" for i in range(3)
    ]
    assert all("= = A part = =" in text for text in wiki.calibration)
    ptb = load_text("ptb")
    assert all(line.startswith("train") for text in ptb.calibration for line in text.splitlines())
    assert len(ptb.calibration.texts[0].splitlines()) == 40
    assert len(load_text("c4").calibration) == 60
    assert not any("00001-of-01024" in path for path in requested), "no more parts than needed"
    short = load_text("wikitext2", limit_bytes=500)
    assert sum(len(text.encode()) for text in short.calibration) <= 500
    assert short.held_out == wiki.held_out, "the part that is shown is never shortened"


def test_perplexity_over_all_windows_of_a_paper(requested: list[str]) -> None:
    tokenizer = tiny_tokenizer(adds_bos=True)
    model = Model(tiny_model("llama", vocab_size=400), tokenizer, name="small")
    ids = torch.tensor(tokenizer("\n\n".join(lines(2))).input_ids)
    windows = ids[: len(ids) // LENGTH * LENGTH].view(-1, LENGTH)
    logits = model.hf(windows).logits[:, :-1].double().log_softmax(-1)
    nll = -logits.gather(-1, windows[:, 1:, None]).mean()
    found = perplexity(model, load_text("wikitext2").held_out, sequences=None, length=LENGTH)
    assert found.value == pytest.approx(float(nll.exp()), rel=1e-5)


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A lab whose only models are tiny ones that are named after their family, with a context of 2048."""
    made = Lab(Settings())

    def tiny(config: RunConfig, _: Progress) -> Model:
        inner = tiny_model(config.model, vocab_size=400, max_position_embeddings=2048)
        return Model(inner, tiny_tokenizer(adds_bos=True), name=config.model)

    monkeypatch.setattr(made._session, "model", tiny)
    return made


def test_a_run_on_all_windows_of_a_paper(requested: list[str], lab: Lab) -> None:
    config = RunConfig(
        model="llama",
        text=FITTED,
        held_out_text="wikitext2",
        length=2048,
        sequences=2,
        held_out=0,
        drop="2:4",
        recover=(RecoverySpec("ghost_sink"),),
        new_tokens=0,
    )
    result = RunResult.from_dict(lab.run(config).to_dict())
    tokenizer = tiny_tokenizer(adds_bos=True)
    ids = torch.tensor(tokenizer("\n\n".join(lines(2))).input_ids)
    windows = ids[: len(ids) // 2048 * 2048].view(-1, 2048)
    assert len(windows) > 1
    assert result.text.held_out_tokens == windows.numel()
    assert (result.text.rule.bos, result.text.calibration_bos) == ("start of the text",) * 2
    model = lab._session.model(config, SILENT)
    with torch.no_grad():
        nll = model.hf(windows, labels=windows).loss.double()
    assert result.baseline.original.perplexity.value == pytest.approx(float(nll.exp()), rel=1e-4)
    assert len(result.runs[0].position_nll) == 2047
    assert not result.warnings
    some = replace(config, held_out=1, length=64, model="gemma", recover=())
    assert "Set bos to always" in lab.run(some).warnings[0]
    assert not lab.run(replace(some, bos="always")).warnings


def test_all_windows_stay_within_what_the_host_allows(requested: list[str], lab: Lab) -> None:
    lab.settings = lab._session.settings = Settings("public", limits=replace(PUBLIC_LIMITS, tokens=2000))
    config = RunConfig(model="llama", text=FITTED, length=64, sequences=4, held_out=0, drop="2:4")
    with pytest.raises(ConfigError, match=r"held-out sequences of 64 tokens.*this server allows 2,000"):
        lab.run(config)


def test_a_script_is_never_run(requested: list[str]) -> None:
    with pytest.raises(TextError, match="script, which is not run"):
        load_text("hf:ptb-text-only/ptb_text_only:test")
