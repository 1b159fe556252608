"""Ghostlab on a GPU: is it right, and how fast is it at a realistic width? Under six minutes on one GPU.

    python benchmarks/gpu.py                       # the first GPU
    python benchmarks/gpu.py --device cpu --small  # the same steps on a laptop, to see that they run

1. Right: a small random model in float32 on the CPU and on the device; states, moments, every operator's
   error, likelihoods, greedy tokens and the atlas must agree.
2. Fast: a random Llama of 32 layers and width 4096 in bfloat16: seconds per step, FLOP/s of the pass, peak
   memory of the device. States that do not fit in the budget stay on the host.

Writes benchmarks/results/gpu.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import ghostlab as gl
from ghostlab.analysis.atlas import survey
from ghostlab.calibration.activations import Activations
from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.store import Budget
from ghostlab.evaluation.generate import generate
from ghostlab.evaluation.scoreboard import score
from ghostlab.model.model import Model
from ghostlab.recovery.registry import OPERATORS
from ghostlab.text.windows import Windows

RESULTS = Path(__file__).parent / "results" / "gpu.json"
VOCABULARY = 49_152
"""That of the embedded tokenizer, which random models borrow."""


def random_model(device: str, dtype: torch.dtype, width: int, layers: int, tokenizer: Any) -> Model:
    """A random Llama; made on the CPU from a fixed seed where it is small, on the device where it is not."""
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=width, intermediate_size=width * 11 // 4, num_hidden_layers=layers,
        num_attention_heads=width // 64, num_key_value_heads=width // 128,
    )  # fmt: skip
    torch.manual_seed(0)
    with torch.device("cpu" if width <= 512 else device):
        hf = LlamaForCausalLM(config).to(dtype)
    return Model(hf.to(device).eval(), tokenizer, name="random")


def random_windows(count: int, length: int, seed: int) -> Windows:
    """Random tokens in five folds."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, VOCABULARY, (count, length), generator=generator)
    return Windows(ids, torch.arange(count) * 5 // count, torch.full((count,), 4 * length), False, "random")


def figures(model: Model) -> dict[str, Any]:
    """What must agree between devices."""
    calib = Calibration(model, random_windows(20, 64, 1))
    held_out = Activations(model, random_windows(4, 64, 2))
    cut = gl.parse_cut("2:4,5:6")
    found: dict[str, Any] = {}
    moments = calib.moments(cut)[cut.blocks[0]].all()
    found["gram"], found["cross"] = float(moments.gram.norm()), float(moments.cross.norm())
    fits = {name: gl.fit(calib, cut, name) for name in OPERATORS}
    for name, fit in fits.items():
        found[f"explained {name}"] = [block.explained_train for block in fit.blocks.values()]
    variants = {name: gl.apply(model, cut, fit) for name, fit in fits.items()}
    for name, scores in zip(["original", *variants], score(held_out, list(variants.values())), strict=True):
        found[f"nll {name}"] = scores.window_nll
        found[f"kl {name}"] = scores.kl.value
    for block in survey(calib, (2, 3)).blocks:
        found[f"atlas {block.start}:{block.stop}"] = [block.gap, block.symmetric, block.ghost_sink]
    return found


def tokens(model: Model) -> str:
    """Greedy continuation by a recovered variant."""
    calib, cut = Calibration(model, random_windows(20, 64, 1)), gl.parse_cut("2:4")
    variant = gl.apply(model, cut, gl.fit(calib, cut, "ghost_sink"))
    config = gl.RunConfig(prompt="The history of the lighthouse", new_tokens=8)
    found = generate({"original": model, "recovered": variant}, config)
    return found[-1].text


def check(device: str, tokenizer: Any) -> dict[str, Any]:
    """Largest relative difference of every kind of figure between the CPU and the device."""
    torch.backends.cuda.matmul.allow_tf32 = False
    reference = random_model("cpu", torch.float32, 128, 8, tokenizer)
    other = random_model(device, torch.float32, 128, 8, tokenizer)
    expected, found = figures(reference), figures(other)
    worst: dict[str, float] = {}
    for name, value in expected.items():
        one, two = torch.tensor(value).double(), torch.tensor(found[name]).double()
        difference = float(((one - two).abs() / one.abs().clamp(min=1e-3)).max())
        kind = name.partition(" ")[0]
        worst[kind] = max(worst.get(kind, 0.0), difference)
    return {
        "largest_relative_difference": worst,
        "same_greedy_tokens": tokens(reference) == tokens(other),
        "operators": len(OPERATORS),
    }


def measure(device: str, tokenizer: Any, small: bool) -> dict[str, Any]:
    """Seconds of every step at full width."""
    width, layers, sequences = (256, 8, 16) if small else (4096, 32, 64)
    model = random_model(device, torch.float32 if small else torch.bfloat16, width, layers, tokenizer)
    clock: dict[str, float] = {}

    def step(name: str, work: Callable[[], Any]) -> Any:
        synchronise(device)
        begun = time.perf_counter()
        value = work()
        synchronise(device)
        clock[name] = round(time.perf_counter() - begun, 3)
        print(f"  {name}: {clock[name]} s", flush=True)
        return value

    windows = random_windows(sequences, 256, 1)
    stop, start = layers * 2 // 3 + 3, layers * 2 // 3
    cut = gl.parse_cut(f"{start}:{stop}")
    calib = Calibration(model, windows, budget=Budget(8 << 30))
    step("warm-up: one batch", lambda: model.decoder.trace(windows.ids[:8], {stop}))
    step("moments", lambda: calib.moments(cut))
    methods = ("ghost", "ghost_sink", "symmetric", "linearpatch", "lra")
    fits = [step(f"fit {name}", lambda name=name: gl.fit(calib, cut, name)) for name in methods]
    variants = [gl.apply(model, cut), *(gl.apply(model, cut, fit) for fit in fits)]
    held_out = Activations(model, random_windows(16, 256, 2), budget=Budget(4 << 30))
    step(f"score {len(variants)} variants", lambda: score(held_out, variants))
    step("score again, states kept", lambda: score(held_out, variants))
    step(
        "generate 2 x 64 tokens",
        lambda: generate({"original": model, "recovered": variants[1]}, gl.RunConfig(new_tokens=64)),
    )
    step("atlas, lengths 2 and 4", lambda: survey(calib, (2, 4)))
    parameters = sum(p.numel() for p in model.decoder.blocks.parameters())
    flops = 2 * parameters * stop / layers * windows.ids.numel()
    peak = torch.cuda.max_memory_allocated() if device.startswith("cuda") else 0
    return {
        "width": width,
        "layers": layers,
        "tokens": windows.ids.numel(),
        "dtype": model.dtype,
        "seconds": clock,
        "moments_tflops": round(flops / clock["moments"] / 1e12, 2),
        "peak_device_gib": round(peak / 2**30, 2),
        "rounding_of_states": calib.store.rounding,
    }


def synchronise(device: str) -> None:
    """Wait until the device has done what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    elif device == "mps":
        torch.mps.synchronize()


def main() -> None:
    """Read the command line, check, measure, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="a small model, to see that the script runs")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    begun = time.perf_counter()
    tokenizer = gl.load_model("embedded").tokenizer
    name = torch.cuda.get_device_name() if options.device.startswith("cuda") else options.device
    found: dict[str, Any] = {"device": name, "torch": torch.__version__}
    for part, work in (
        ("right", lambda: check(options.device, tokenizer)),
        ("fast", lambda: measure(options.device, tokenizer, options.small)),
    ):
        found[part] = work()
        found["seconds"] = round(time.perf_counter() - begun, 1)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(found, indent=1), encoding="utf-8")
        print(json.dumps(found[part], indent=1), flush=True)


if __name__ == "__main__":
    main()
