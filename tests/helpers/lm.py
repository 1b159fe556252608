"""A tiny random model with a word-level tokenizer, wrapped as Ghostlab's Model; and windows for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from ghostlab.model.model import Model
from ghostlab.text.windows import Windows
from tests.helpers.tiny import VOCAB, tiny_ids, tiny_model


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Words w3 .. w95 and three special tokens."""
    words = {"<pad>": 0, "<s>": 1, "</s>": 2} | {f"w{i}": i for i in range(3, VOCAB)}
    inner = Tokenizer(models.WordLevel(words, unk_token="w3"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="w3"
    )


def tiny_lm(family: str = "llama", **options: Any) -> Model:
    """A tiny random model of the family."""
    return Model(tiny_model(family, **options), tiny_tokenizer(), name=f"tiny {family}")


def trusted(folder: Path, **options: object) -> PreTrainedModel:
    """What plain Transformers loads from a folder whose code it may run; needs the fixture ``modules``."""
    return AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True, **options).eval()


def tiny_windows(count: int = 6, length: int = 16, *, folds: int = 3, seed: int = 1) -> Windows:
    """Random windows dealt to folds in order."""
    ids = tiny_ids(count, length, seed=seed)
    fold = torch.arange(count) * folds // count
    return Windows(ids, fold, torch.full((count,), 3 * (length - 1)), False, "random")


def generated(hf: PreTrainedModel, ids: torch.Tensor, *, padding: int) -> torch.Tensor:
    """Three greedy tokens after ``ids``, which stand behind ``padding`` tokens of padding."""
    batch, length = ids.shape
    padded = torch.cat([torch.zeros(batch, padding, dtype=torch.long), ids], 1)
    mask = (torch.arange(padding + length) >= padding).long().expand(batch, -1)
    made: torch.Tensor = hf.generate(
        padded, attention_mask=mask, max_new_tokens=3, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    return made[:, padding + length :]


@torch.no_grad()
def check_generation(
    hf: PreTrainedModel, ids: torch.Tensor, tolerance: float, *, padding: int = 4, **options: Any
) -> None:
    """Three greedy tokens by ``generate``, one row padded and one row longer, against a pass over all tokens.

    Args:
        hf: The model.
        ids: Token ids [2, T].
        tolerance: Of the relative error of the logits.
        padding: Tokens of padding before the first row, and more tokens before the second.
        options: More arguments of ``generate``.
    """
    padded = torch.cat([torch.zeros(2, padding, dtype=torch.long), ids], dim=1)
    padded[1, :padding] = tiny_ids(1, padding, seed=9)[0]
    mask = torch.ones_like(padded)
    mask[0, :padding] = 0
    made = hf.generate(
        padded,
        attention_mask=mask,
        max_new_tokens=3,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
        output_logits=True,
        return_dict_in_generate=True,
        **options,
    )
    logits = torch.stack(made.logits, dim=1).float()
    for row, tokens in enumerate((made.sequences[:1, padding:], made.sequences[1:])):
        whole = hf(tokens, use_cache=False).logits[0, -4:-1].float()
        assert float((logits[row] - whole).norm() / whole.norm()) < tolerance
