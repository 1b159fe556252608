"""The embedded model and text: converted, cached, loaded again, and as good as they should be."""

import math
import time
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from ghostlab.model.catalog import EMBEDDED, embedded_gguf, find
from ghostlab.model.gguf import convert
from ghostlab.model.load import load_model
from ghostlab.model.model import Model
from ghostlab.model.outline import stored
from ghostlab.model.preflight import measure
from ghostlab.settings import Settings
from ghostlab.text.documents import Text
from ghostlab.text.windows import make_windows

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def prompt(embedded_model: Model) -> torch.Tensor:
    return embedded_model.tokenizer("The capital of France is", return_tensors="pt").input_ids


def test_the_catalogue_describes_the_embedded_model(embedded_model: Model) -> None:
    entry, config = find(EMBEDDED), embedded_model.hf.config
    assert (embedded_model.name, embedded_model.note) == (entry.title, "Q4_1 weights, dequantised")
    assert (entry.outline.layers, entry.outline.width) == (config.num_hidden_layers, config.hidden_size)
    assert entry.outline.total == embedded_model.hf.num_parameters()
    assert measure(config, entry.title) == stored(EMBEDDED)


def test_it_knows_the_capital_of_france(embedded_model: Model, prompt: torch.Tensor) -> None:
    with torch.no_grad():
        next_token = embedded_model.hf(prompt).logits[0, -1].argmax()
    assert embedded_model.tokenizer.decode(next_token) == " Paris"


def test_the_second_load_is_quick_and_the_same(
    embedded_model: Model, settings: Settings, prompt: torch.Tensor
) -> None:
    began = time.perf_counter()
    again = load_model("embedded", settings=settings)
    assert time.perf_counter() - began < 10  # about 1 s alone on the machine; converting takes 25 s
    with torch.no_grad():
        assert torch.equal(again.hf(prompt).logits, embedded_model.hf(prompt).logits)


def test_the_cached_folder_is_a_model_for_plain_transformers(
    embedded_model: Model, settings: Settings, prompt: torch.Tensor, tmp_path: Path
) -> None:
    folder = convert(embedded_gguf(), settings.cache).folder
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer("The capital of France is").input_ids == prompt[0].tolist()
    assert tokenizer.model_max_length == 8192
    with torch.no_grad():
        assert torch.equal(plain(prompt).logits, embedded_model.hf(prompt).logits)
    embedded_model.hf.save_pretrained(tmp_path)
    assert AutoModelForCausalLM.from_pretrained(tmp_path).num_parameters() == plain.num_parameters()


def test_perplexity_of_wikipedia_is_that_of_a_sound_model(embedded_model: Model, wikipedia: Text) -> None:
    windows = make_windows(
        wikipedia.held_out, embedded_model.tokenizer, count=8, length=256, bos="auto", seed=0
    )
    assert not windows.bos  # the tokenizer's own convention
    total = 0.0
    with torch.no_grad():
        for ids in windows.ids.split(4):
            total += float(embedded_model.hf(ids, labels=ids).loss) * len(ids)
    nats = total / windows.count
    assert 15 < math.exp(nats) < 40
    bits_per_byte = nats * windows.predicted * windows.count / math.log(2) / int(windows.bytes.sum())
    assert 0.8 < bits_per_byte < 1.3


def test_bytes_of_a_window_are_those_of_its_text(embedded_model: Model, wikipedia: Text) -> None:
    tokenizer = embedded_model.tokenizer
    windows = make_windows(wikipedia.calibration, tokenizer, count=32, length=256, folds=4, seed=1)
    shown = [len(tokenizer.decode(ids[1:]).encode()) for ids in windows.ids]
    assert windows.bytes.tolist() == shown
    assert windows.fold.bincount().tolist() == [8, 8, 8, 8]
