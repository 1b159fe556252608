"""Windows: what is in them, where BOS stands, and that folds are independent."""

import random

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from ghostlab.config import BosPolicy
from ghostlab.errors import TextError
from ghostlab.text.documents import Documents, Protocol
from ghostlab.text.windows import make_windows, uses_bos
from tests.helpers.tokenizers import SENTENCES, tiny_tokenizer

pytestmark = pytest.mark.unit


def prose(count: int, sentences: int = 8) -> Documents:
    """Documents that each carry a number of their own in every sentence."""
    draw = random.Random(1)
    texts = (
        "\n\n".join(f"[{i}] {draw.choice(SENTENCES)} – été №{i}" for _ in range(sentences))
        for i in range(count)
    )
    return Documents("prose", tuple(texts))


DOCUMENTS = prose(40)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return tiny_tokenizer()


def text_of(tokenizer: PreTrainedTokenizerFast, ids: torch.Tensor) -> str:
    return tokenizer.decode(ids, clean_up_tokenization_spaces=False)


def test_in_order_windows_are_the_joined_text_cut_by_length(tokenizer: PreTrainedTokenizerFast) -> None:
    windows = make_windows(DOCUMENTS, tokenizer, count=20, length=64, bos="never", seed=None)
    whole = tokenizer("\n\n".join(DOCUMENTS), add_special_tokens=False).input_ids
    assert windows.ids.flatten().tolist() == whole[: 20 * 64]
    assert windows.ids.dtype == windows.fold.dtype == windows.bytes.dtype == torch.long
    assert (windows.count, windows.length, windows.predicted, windows.bos) == (20, 64, 63, False)


def test_bos_takes_the_place_of_a_text_token(tokenizer: PreTrainedTokenizerFast) -> None:
    without = make_windows(DOCUMENTS, tokenizer, count=10, length=63, bos="never", seed=None)
    with_bos = make_windows(DOCUMENTS, tokenizer, count=10, length=64, bos="always", seed=None)
    assert with_bos.bos
    assert with_bos.ids[:, 0].tolist() == [tokenizer.bos_token_id] * 10
    assert torch.equal(with_bos.ids[:, 1:], without.ids)


@pytest.mark.parametrize("bos", ["never", "always"])
@pytest.mark.parametrize("seed", [0, None])
def test_bytes_are_those_of_the_predicted_tokens(
    tokenizer: PreTrainedTokenizerFast, bos: BosPolicy, seed: int | None
) -> None:
    windows = make_windows(
        Documents("d", ("plain text only. " * 900,)), tokenizer, count=30, length=32, bos=bos, seed=seed
    )
    expected = [len(text_of(tokenizer, ids[1:]).encode()) for ids in windows.ids]
    assert windows.bytes.tolist() == expected


def test_bytes_of_signs_beyond_ascii_add_up(tokenizer: PreTrainedTokenizerFast) -> None:
    text = "été – № 𝔊 漢字 " * 400
    windows = make_windows(Documents("d", (text,)), tokenizer, count=40, length=25, bos="always", seed=None)
    shown = text_of(tokenizer, windows.ids[:, 1:].flatten())
    assert abs(int(windows.bytes.sum()) - len(shown.encode("utf-8", "ignore"))) <= 4


def test_a_tokenizer_without_offsets_counts_the_same(
    tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"count": 12, "length": 40, "bos": "never", "seed": 3}
    documents = Documents("d", ("only plain ascii here. " * 900,))
    fast = make_windows(documents, tokenizer, **options)
    monkeypatch.setattr(type(tokenizer), "is_fast", property(lambda self: False))
    slow = make_windows(documents, tokenizer, **options)
    assert torch.equal(fast.ids, slow.ids)
    assert torch.equal(fast.bytes, slow.bytes)


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_no_two_folds_see_the_same_document(tokenizer: PreTrainedTokenizerFast, folds: int) -> None:
    windows = make_windows(DOCUMENTS, tokenizer, count=32, length=48, bos="never", seed=0, folds=folds)
    assert windows.fold.bincount().max() - windows.fold.bincount().min() <= 1
    assert windows.fold.tolist() == sorted(windows.fold.tolist())
    seen = []
    for fold in range(folds):
        text = " ".join(text_of(tokenizer, ids) for ids in windows.ids[windows.fold == fold])
        seen.append({part.split("]")[0] for part in text.split("[")[1:] if "]" in part})
    assert all(seen)
    assert sum(len(documents) for documents in seen) == len(set.union(*seen))


def test_the_seed_decides_and_windows_see_many_documents(tokenizer: PreTrainedTokenizerFast) -> None:
    long = prose(6, sentences=300)

    def draw(seed: int) -> torch.Tensor:
        return make_windows(long, tokenizer, count=48, length=128, bos="never", seed=seed).ids

    assert torch.equal(draw(0), draw(0))
    assert not torch.equal(draw(0), draw(1))
    text = " ".join(text_of(tokenizer, ids) for ids in draw(0))
    assert sum(f"[{i}]" in text for i in range(6)) >= 4


def test_fewer_documents_than_folds_are_dealt_by_section(tokenizer: PreTrainedTokenizerFast) -> None:
    one = Documents("one", ("\n\n".join(prose(60)),))
    windows = make_windows(one, tokenizer, count=12, length=64, bos="never", seed=0, folds=4)
    assert windows.fold.bincount().tolist() == [3, 3, 3, 3]
    assert len({tuple(ids.tolist()) for ids in windows.ids}) == 12


def test_no_more_is_tokenised_than_needed_and_nothing_twice(tokenizer: PreTrainedTokenizerFast) -> None:
    read: list[int] = []

    class Counting(PreTrainedTokenizerFast):
        def __call__(self, text: str, **options: object):
            read.append(len(text))
            return super().__call__(text, **options)

    counting = Counting(tokenizer_object=tokenizer.backend_tokenizer, bos_token="<s>")
    windows = make_windows(DOCUMENTS, counting, count=4, length=32, bos="never", seed=None)
    assert sum(read) < 0.1 * DOCUMENTS.characters
    read.clear()
    enough = make_windows(DOCUMENTS, counting, count=100, length=64, bos="never", seed=0)
    assert sum(read) <= DOCUMENTS.characters + 2 * 39
    assert (windows.count, enough.count) == (4, 100)


# -- BOS policy ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "policy", "expected"),
    [
        ({}, "auto", False),
        ({"adds_bos": True}, "auto", True),
        ({"bos": None}, "auto", False),
        ({"adds_bos": True}, "never", False),
        ({}, "always", True),
    ],
)
def test_bos_policy(made: dict[str, object], policy: BosPolicy, expected: bool) -> None:
    tokenizer = tiny_tokenizer(**made)
    assert uses_bos(tokenizer, policy) is expected
    windows = make_windows(DOCUMENTS, tokenizer, count=3, length=16, bos=policy)
    assert windows.bos is expected
    # a tokenizer that adds BOS of itself must not add it twice
    assert int((windows.ids == 0).sum()) == (3 if expected else 0)


@pytest.mark.parametrize("protocol", [None, Protocol("GPTQ", "\n\n")])
@pytest.mark.parametrize(
    ("adds_bos", "policy"), [(True, "auto"), (False, "auto"), (True, "always"), (True, "never")]
)
def test_windows_to_fit_on_begin_as_those_that_are_shown(
    protocol: Protocol | None, adds_bos: bool, policy: BosPolicy
) -> None:
    """Else a first-token offset would be fitted on BOS and applied to ordinary words."""
    tokenizer = tiny_tokenizer(adds_bos=adds_bos)
    held_out = Documents("shown", ("\n\n".join(DOCUMENTS),), protocol)
    shown = make_windows(held_out, tokenizer, count=20, length=48, bos=policy)
    fitted = make_windows(DOCUMENTS, tokenizer, count=20, length=48, bos=policy, folds=4, like=held_out)
    begun = [(windows.ids == tokenizer.bos_token_id).nonzero().tolist() for windows in (shown, fitted)]
    assert begun[0] == begun[1]
    assert len(begun[0]) == {"every window": 20, "start of the text": 1, "nowhere": 0}[shown.rule.bos]
    assert (shown.rule.bos, shown.bos) == (fitted.rule.bos, fitted.bos)
    decoded = [len(text_of(tokenizer, row[row != tokenizer.bos_token_id]).encode()) for row in fitted.ids]
    assert (fitted.bytes <= torch.tensor(decoded)).all()
    assert fitted.fold.unique().tolist() == [0, 1, 2, 3]


def test_bos_of_a_tokenizer_without_one_is_refused() -> None:
    with pytest.raises(TextError, match="no BOS token"):
        make_windows(DOCUMENTS, tiny_tokenizer(bos=None), count=1, length=16, bos="always")


# -- too little text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("folds", [1, 4])
def test_too_short_a_text_says_how_many_fit_and_so_many_do(
    tokenizer: PreTrainedTokenizerFast, folds: int
) -> None:
    options = {"length": 128, "bos": "never", "seed": 0, "folds": folds}
    with pytest.raises(TextError, match=r"too short: \d+ of 5000 windows of 128") as caught:
        make_windows(DOCUMENTS, tokenizer, count=5000, **options)
    fit = int(caught.value.message.split(": ")[1].split()[0])
    assert fit > 50
    assert make_windows(DOCUMENTS, tokenizer, count=fit, **options).count == fit
    fewer = make_windows(DOCUMENTS, tokenizer, count=None, **options)
    assert fit <= fewer.count < 5000
    assert len(fewer.fold) == len(fewer.bytes) == fewer.count


def test_not_even_one_window_is_an_error_in_any_case(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(TextError, match="no window of 64 tokens"):
        make_windows(Documents("d", ("tiny",)), tokenizer, count=None, length=64)
