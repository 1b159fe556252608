"""Generation: the shared prompt changes nothing, tokens are judged rightly, prompts are put as asked."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ghostlab.config import RunConfig
from ghostlab.cut import Block, parse_cut
from ghostlab.errors import Cancelled, ConfigError
from ghostlab.evaluation.generate import encode, format_of, generate
from ghostlab.evaluation.writer import Prefix, fork
from ghostlab.model.model import Model
from ghostlab.model.replacement import AffineMap, Replacement
from ghostlab.progress import CancelToken, Progress, ProgressUpdate
from ghostlab.results.generation import Generation
from ghostlab.results.run import RunResult
from tests.helpers.lm import tiny_lm
from tests.helpers.tiny import DEPTH, FAMILY_OPTIONS, WIDTH, tiny_ids
from tests.helpers.tokenizers import tiny_tokenizer

pytestmark = pytest.mark.unit
PROMPT = 24
"""Tokens of the prompt: longer than the tiny models' sliding windows."""


def noise(*shape: int, seed: int = 3) -> torch.Tensor:
    return 0.1 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def variants_of(model: Model) -> dict[str, Model]:
    """One of each way to fill a gap: nothing, maps (one before the norm), a kept layer, an edited layer."""

    def layer(index: int, block: str, fitted: AffineMap | None) -> dict[Block, Replacement]:
        weights = model.decoder.blocks[index].named_parameters()
        path, value = next((path, value) for path, value in weights if value.ndim == 2)
        return {parse_cut(block).blocks[0]: Replacement(fitted, index, {path: value * 1.5})}

    first_apart = AffineMap(noise(WIDTH, WIDTH), bias=noise(WIDTH), first=noise(WIDTH, seed=4))
    cut, tail = parse_cut("2:4"), parse_cut("1:2,4:6")
    return {
        "original": model,
        "pruned": model.without(cut),
        "map": model.without(cut, {cut.blocks[0]: Replacement(first_apart)}),
        "tail": model.without(tail, {block: Replacement(first_apart) for block in tail}),
        "start": model.without(parse_cut("0:2"), {Block(0, 2): Replacement(first_apart)}),
        "kept": model.without(cut, layer(3, "2:4", first_apart)),
        "edited": model.without(cut, layer(1, "2:4", None)),
    }


def greedy(model: Model, ids: torch.Tensor, **given: Any) -> tuple[torch.Tensor, torch.Tensor]:
    made = model.hf.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False, eos_token_id=None,
        pad_token_id=0, output_logits=True, return_dict_in_generate=True, **given,
    )  # fmt: skip
    return made.sequences, torch.cat(made.logits)


@pytest.mark.parametrize("family", sorted(FAMILY_OPTIONS))
def test_a_shared_prompt_gives_the_tokens_and_logits_of_an_unshared_one(family: str) -> None:
    variants = variants_of(tiny_lm(family))
    ids = tiny_ids(1, PROMPT)
    prefix = Prefix(variants["original"], ids, {model.first_change for model in variants.values()})
    for name, model in [*variants.items(), ("original again", variants["original"])]:
        cache = prefix.cache(model)
        assert len(cache.layers) == model.depth
        tokens, logits = greedy(model, ids, cache=fork(cache))
        expected, exact = greedy(model, ids)
        assert torch.equal(tokens, expected), name
        torch.testing.assert_close(logits, exact, rtol=1e-4, atol=1e-4)
        assert cache.get_seq_length() == PROMPT - 1, "a fork must leave its source as it was"


def test_blocks_before_the_first_change_run_once_for_all_variants() -> None:
    model = tiny_lm()
    variants = variants_of(model)
    runs: list[int] = []
    for variant in variants.values():
        for block in variant.decoder.blocks:
            block.register_forward_pre_hook(lambda _, args, **__: runs.append(args[0].shape[1]))
    prefix = Prefix(model, tiny_ids(1, PROMPT), {variant.first_change for variant in variants.values()})
    for variant in variants.values():
        runs.clear()
        cache = prefix.cache(variant)
        assert runs == [PROMPT - 1] * (variant.depth - prefix.shared(variant))
    assert prefix.shared(variants["map"]) == 2
    shared, own = prefix.cache(model).layers, cache.layers
    assert [own[i].keys.data_ptr() == shared[i].keys.data_ptr() for i in range(len(own))] == [
        True, False, False, False,
    ]  # fmt: skip


def written(model: Model, new_tokens: int = 8, **options: Any) -> list[Generation]:
    return generate(variants_of(model), RunConfig(prompt="w5 w17 w40 w9", new_tokens=new_tokens, **options))


def uncached(model: Model, ids: torch.Tensor) -> torch.Tensor:
    return model.hf(ids, use_cache=False).logits[0].log_softmax(-1)


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_every_token_is_judged_by_its_writer_and_by_the_original(temperature: float) -> None:
    model = tiny_lm()
    variants = variants_of(model)
    made = written(model, temperature=temperature)
    assert [one.variant for one in made] == list(variants)
    prompt = model.tokenizer("w5 w17 w40 w9", return_tensors="pt").input_ids
    for one, variant in zip(made, variants.values(), strict=True):
        words = [token.text.strip() for token in one.written]
        ids = torch.tensor([model.tokenizer.convert_tokens_to_ids(words)])
        whole, places = torch.cat([prompt, ids], 1), range(3, 3 + one.tokens)
        own, original = uncached(variant, whole), uncached(model, whole)
        for place, token, target in zip(places, one.written, ids[0], strict=True):
            assert token.log_probability == pytest.approx(own[place, target].item(), abs=1e-3)
            assert token.original == pytest.approx(original[place, target].item(), abs=1e-3)
            best = int(original[place].argmax())
            assert token.instead == ("" if best == target else model.tokenizer.decode([best]))
        astray = [place for place, token in enumerate(one.written) if token.instead]
        assert one.leaves == (astray[0] if astray else None)
        assert one.first_seconds > 0
        assert one.seconds > one.first_seconds
        assert one.speed == pytest.approx((one.tokens - 1) / (one.seconds - one.first_seconds))
    assert (made[0].leaves is None) == (temperature == 0)
    assert any(one.leaves is not None for one in made[1:])
    assert all(token.surprise == 0 for token in made[0].written)
    assert [one.shared_blocks for one in made] == [0, 2, 2, 1, 0, 2, 1]


def test_a_prompt_of_one_token_has_nothing_to_share() -> None:
    made = generate(variants_of(tiny_lm()), RunConfig(prompt="w5", new_tokens=3))
    assert {one.shared_blocks for one in made} == {0}
    alone = generate({"original": tiny_lm()}, RunConfig(prompt="w5", new_tokens=3))
    assert alone[0].text == made[0].text
    assert alone[0].written == made[0].written


def test_text_streams_and_finished_continuations_are_handed_on() -> None:
    heard: dict[str, list[str]] = {}
    finished: list[int] = []
    made = generate(
        variants_of(tiny_lm()),
        RunConfig(prompt="w5 w17", new_tokens=4),
        on_text=lambda name, text: heard.setdefault(name, []).append(text),
        on_generations=lambda done: finished.append(len(done)),
    )
    assert finished == list(range(1, 8))
    for one in made:
        assert heard[one.variant][-1] == one.text
        assert len(heard[one.variant]) == one.tokens
        assert one.text.startswith(" w"), "the space before the first word belongs to it"


def test_greedy_generation_equals_uncached_argmax() -> None:
    model = tiny_lm()
    variant = variants_of(model)["map"]
    config = RunConfig(prompt="w5 w17 w40 w9", new_tokens=6)
    found = generate({"original": model, "map": variant}, config)[1]
    ids = model.tokenizer("w5 w17 w40 w9", return_tensors="pt").input_ids
    for _ in range(6):
        ids = torch.cat([ids, variant.hf(ids, use_cache=False).logits[:, -1:].argmax(-1)], dim=1)
    assert model.tokenizer.decode(ids[0, 4:], skip_special_tokens=True).startswith(found.text.strip())


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_side_by_side_every_variant_writes_what_it_writes_alone(temperature: float) -> None:
    """And that is what ``generate`` of transformers writes under the same seed."""
    every = variants_of(tiny_lm())
    variants = {name: every[name] for name in ("original", "tail", "kept")}
    turns: list[str] = []
    config = RunConfig(prompt="w5 w17 w40 w9", new_tokens=9, temperature=temperature, top_p=0.9, seed=5)
    made = generate(variants, config, on_text=lambda name, _: turns.append(name))
    assert turns[: 2 * len(variants)] == 2 * list(variants)
    model = variants["original"]
    ids = model.tokenizer("w5 w17 w40 w9", return_tensors="pt").input_ids
    how = {"temperature": temperature, "top_p": 0.9, "top_k": 0} if temperature else {}
    for one, (name, variant) in zip(made, variants.items(), strict=True):
        (alone,) = generate(variants, config, only=[name])
        assert (alone.text, alone.written, alone.leaves) == (one.text, one.written, one.leaves)
        torch.manual_seed(5)
        theirs = variant.hf.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=9, pad_token_id=0,
            do_sample=temperature > 0, **how,
        )  # fmt: skip
        assert model.tokenizer.decode(theirs[0, 4:], skip_special_tokens=True) == one.text.strip()


def test_sampling_depends_on_the_seed_alone() -> None:
    model = {"original": tiny_lm()}
    config = RunConfig(prompt="w5 w9", new_tokens=8, temperature=1.5, top_p=0.9)
    first, again, other = (generate(model, replace(config, seed=seed))[0].text for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_generation_stops_between_two_tokens() -> None:
    token = CancelToken()
    seen: list[ProgressUpdate] = []

    def sink(update: ProgressUpdate) -> None:
        seen.append(update)
        if len(seen) == 3:
            token.cancel()

    kept: list[Generation] = []
    two = dict(list(variants_of(tiny_lm()).items())[:2])
    with pytest.raises(Cancelled):
        generate(
            two,
            RunConfig(prompt="w5", new_tokens=50),
            progress=Progress(sink, token),
            on_generations=kept.extend,
        )
    assert len(seen) == 3
    assert [(one.variant, one.tokens, one.written) for one in kept] == [
        ("original", 2, []),
        ("pruned", 1, []),
    ]
    assert [len(one.text.split()) for one in kept] == [2, 1]


def test_characters_of_several_tokens_are_shown_whole() -> None:
    model = tiny_lm(vocab_size=400, eos_token_id=None)
    model.tokenizer = tiny_tokenizer()
    wanted = model.tokenizer("n\N{SNOWMAN}\N{SNOWMAN}!", add_special_tokens=False).input_ids

    class Dictated(torch.nn.Module):
        def forward(self, state: torch.Tensor) -> torch.Tensor:
            logits = torch.full((1, state.shape[1], 400), -9.0)
            for place in range(state.shape[1]):
                logits[0, place, wanted[min(next(self.turn), len(wanted) - 1)]] = 0.0
            return logits

    head = Dictated()
    head.turn = iter(range(10**6))
    model.hf.lm_head = head
    heard: list[str] = []
    config = RunConfig(prompt="O", new_tokens=len(wanted))
    (made,) = generate({"original": model}, config, on_text=lambda _, text: heard.append(text))
    assert made.text == "n\N{SNOWMAN}\N{SNOWMAN}!"
    assert "".join(token.text for token in made.written) == made.text
    assert made.written[1].text == ""
    assert not any("\N{REPLACEMENT CHARACTER}" in text for text in heard)


# -- how the prompt is put ---------------------------------------------------------------------------------

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}w3 {{ message['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}w4{% endif %}"
)


def chatting(template: str = TEMPLATE, *, adds_bos: bool = False) -> Model:
    model = tiny_lm(vocab_size=400)
    model.tokenizer = tiny_tokenizer(adds_bos=adds_bos)
    model.tokenizer.chat_template = template
    return model


def test_auto_is_chat_only_where_there_is_a_template() -> None:
    assert format_of(tiny_lm(), "auto") == "raw"
    assert format_of(chatting(), "auto") == "chat"
    assert format_of(chatting(), "raw") == "raw"
    with pytest.raises(ConfigError, match="tiny llama has no chat template"):
        format_of(tiny_lm(), "chat")


@pytest.mark.parametrize("adds_bos", [False, True])
def test_a_chat_prompt_begins_with_one_start_token(adds_bos: bool) -> None:
    model = chatting(adds_bos=adds_bos)
    ids = encode(model, "the cliff", "chat", 4)
    assert model.tokenizer.decode(ids[0]) == "<s>w3 the cliff w4"
    assert ids[0].tolist().count(model.tokenizer.bos_token_id) == 1
    raw = encode(model, "the cliff", "raw", 4)
    assert model.tokenizer.decode(raw[0]) == ("<s>" if adds_bos else "") + "the cliff"


def test_the_format_is_recorded() -> None:
    config = RunConfig(prompt="the cliff", new_tokens=2)
    (made,) = generate({"original": chatting()}, config)
    assert made.prompt_format == "chat"
    (made,) = generate({"original": chatting()}, replace(config, prompt_format="raw"))
    assert made.prompt_format == "raw"
    assert math.isfinite(made.written[0].original)


@pytest.mark.parametrize(
    ("model", "form", "prompt", "tokens", "says"),
    [
        (tiny_lm, "raw", "", 4, "empty"),
        (chatting, "chat", " ", 4, "empty"),
        (tiny_lm, "raw", "w5", 200, "context of 128"),
        (lambda: chatting("{{ raise_exception('no users') }}"), "chat", "hi", 4, "fails: no users. Set"),
        (lambda: chatting("{% oops %}"), "chat", "hi", 4, "chat template of tiny llama fails"),
    ],
)
def test_impossible_prompts_are_refused(model: Any, form: Any, prompt: str, tokens: int, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        encode(model(), prompt, form, tokens)


def test_depths_are_what_the_tests_above_assume() -> None:
    depths = {name: model.depth for name, model in variants_of(tiny_lm()).items()}
    assert depths == {
        "original": DEPTH, "pruned": 4, "map": 4, "tail": 3, "start": 4, "kept": 5, "edited": 4,
    }  # fmt: skip


def test_the_stored_example_says_where_each_continuation_leaves_the_original() -> None:
    result = RunResult.load(Path(__file__).parents[2] / "assets" / "examples" / "default")
    made = [*result.generations, *(p.generation for p in result.probes if p.generation is not None)]
    assert len(made) > 3
    for generation in made:
        others = [place for place, token in enumerate(generation.written) if token.instead]
        assert generation.leaves == (others[0] if others else None), generation.variant
