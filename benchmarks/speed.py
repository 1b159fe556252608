"""How fast Ghostlab is, as ratios within one run.

    python benchmarks/speed.py              # everything, about 45 minutes on two cores
    python benchmarks/speed.py fit score    # some of it

Both sides of a comparison run in turn, in alternating order, and medians are compared. Prints Markdown, and
writes a JSON of every measurement to benchmarks/results/speed.json, part by part. Run it on an idle machine.

Parts:
    fit        one block: moments in one pass that stops at its end, against benchmarks/published.py
    score      perplexity of ten recoveries of one cut, against a full forward pass each
    wide       the same for a random model with the proportions of a Llama of 7 billion
    atlas      figures of every block of up to ten layers, against one published fit per block
    floor      the calibration pass against its matmuls alone, counted on paper and timed at the same shapes
    inference  what an operator costs in use: prefill and decoding, dense and factored, against plain pruning
    growth     time and memory as tokens, width and layers grow (random models)
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import torch
from published import fit_ghost, perplexities
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

import ghostlab as gl
from ghostlab.analysis.atlas import survey
from ghostlab.calibration.activations import Activations
from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.store import Budget
from ghostlab.evaluation.scoreboard import score
from ghostlab.model.model import Model
from ghostlab.text.windows import HELD_OUT_SEED, Windows, make_windows

RESULTS = Path(__file__).parent / "results" / "speed.json"
OPERATORS = (
    "drop", "mean_shift", "scalar", "linearpatch", "symmetric", "procrustes", "lra", "ghost", "affine",
    "ghost_sink",
)  # fmt: skip
DECODED = 24
"""Tokens that each model writes in ``inference``."""
Part = dict[str, Any]
Sides = dict[str, Callable[[], object]]


def timed(work: Callable[[], object]) -> float:
    """Seconds that ``work`` takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def rounds_of(sides: Sides, repeats: int) -> dict[str, list[float]]:
    """Seconds of each side; every round runs all of them, each second round in reverse."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for number in range(repeats):
        for name in names if number % 2 == 0 else reversed(names):
            found[name].append(timed(sides[name]))
            print(f"  {name}: {found[name][-1]:.2f} s", flush=True)
    return found


def medians(sides: Sides, repeats: int) -> dict[str, float]:
    """Median seconds of each side over :func:`rounds_of` them."""
    rounds = rounds_of(sides, repeats)
    return {name: round(statistics.median(seconds), 4) for name, seconds in rounds.items()}


def embedded() -> tuple[Model, Windows, Windows]:
    """The embedded model, 64 calibration and 16 held-out windows of 256 tokens."""
    model, text = gl.load_model("embedded"), gl.load_text("wikipedia")
    calib = gl.calibrate(model, text)
    held_out = make_windows(
        text.held_out, model.tokenizer, count=16, length=256, bos="auto", seed=HELD_OUT_SEED
    )
    return model, calib.windows, held_out


# -- parts ---------------------------------------------------------------------------------------------------


def fit_part(options: argparse.Namespace) -> Part:
    """One block that ends in the middle of the stack."""
    model, windows, _ = embedded()
    found: Part = {}
    for block in ("10:15",):
        cut = gl.parse_cut(block)
        start, stop = cut.blocks[0].start, cut.blocks[0].stop
        agree(model, windows, cut)
        sides: Sides = {
            "ghostlab": lambda cut=cut: gl.fit(Calibration(model, windows, budget=Budget(0)), cut, "ghost"),
            "published": lambda a=start, b=stop: fit_ghost(model.hf, windows.ids, a, b),
        }
        seconds = medians(sides, options.repeats)
        memory = {name: peak_memory(name, block) for name in sides}
        found[block] = {
            "seconds": seconds,
            "times_faster": ratio(seconds["published"], seconds["ghostlab"]),
            "extra_memory_mb": memory,
            "times_less_memory": ratio(memory["published"], memory["ghostlab"]),
        }
    return found


def score_part(options: argparse.Namespace) -> Part:
    """Ten recoveries of 20:25, first with the original's states to be computed, then with them at hand."""
    model, windows, held_out = embedded()
    return scored(Calibration(model, windows), held_out, "20:25", options.repeats)


def wide_part(options: argparse.Namespace) -> Part:
    """The same where the head weighs what it does in a Llama of 7 billion: two thirds of a layer."""
    model = random_llama(width=1024, layers=32, vocabulary=8192)
    windows, held_out = (random_windows(model, count) for count in (16, 4))
    return scored(Calibration(model, windows), held_out, "21:26", options.repeats)


def scored(calib: Calibration, held_out: Windows, block: str, repeats: int) -> Part:
    """Scores of all :data:`OPERATORS` on one cut against full forward passes."""
    model, cut = calib.model, gl.parse_cut(block)
    variants = [gl.apply(model, cut, gl.fit(calib, cut, name)) for name in OPERATORS]
    kept = Activations(model, held_out, budget=Budget(1 << 30))
    score(kept, variants)
    models = [model.hf, *(variant.hf for variant in variants)]
    seconds = medians(
        {
            "ghostlab": lambda: score(Activations(model, held_out, budget=Budget(0)), variants),
            "ghostlab, states kept": lambda: score(kept, variants),
            "full forwards": lambda: perplexities(models, held_out.ids),
        },
        repeats,
    )
    check = [s.perplexity.value for s in score(kept, variants)]
    assert all(abs(a / b - 1) < 1e-3 for a, b in zip(check, perplexities(models, held_out.ids), strict=True))
    body, head = layer_flops(model, 256), head_flops(model)
    dropped, after = cut.blocks[0].stop - cut.blocks[0].start, model.depth - cut.blocks[0].stop
    full = len(models) * head + (model.depth + len(variants) * (model.depth - dropped)) * body
    ours = len(models) * head + (model.depth + len(variants) * after) * body
    return {
        "cut": f"{block} of {model.depth}",
        "recoveries": list(OPERATORS),
        "head_over_layer": ratio(head, body),
        "seconds": seconds,
        "times_faster": ratio(seconds["full forwards"], seconds["ghostlab"]),
        "times_faster_states_kept": ratio(seconds["full forwards"], seconds["ghostlab, states kept"]),
        "times_fewer_flops": ratio(full, ours),
        "times_fewer_flops_states_kept": ratio(full, ours - model.depth * body),
    }


def atlas_part(options: argparse.Namespace) -> Part:
    """All blocks of up to ten layers; published fits are timed on a sample and extrapolated."""
    model, windows, _ = embedded()
    lengths = range(1, 11)
    count = sum(model.depth - n + 1 for n in lengths)
    ours = [
        timed(lambda: survey(Calibration(model, windows), lengths)) for _ in range(min(options.repeats, 3))
    ]
    sample = [(3, 5), (12, 18), (20, 29)]
    theirs = [timed(lambda a=a, b=b: fit_ghost(model.hf, windows.ids, a, b)) for a, b in sample]
    seconds, one = statistics.median(ours), statistics.median(theirs)
    return {
        "blocks": count,
        "seconds": {"ghostlab, all blocks": round(seconds, 2), "published, one block": round(one, 2)},
        "published_sample": [f"{a}:{b}" for a, b in sample],
        "extrapolated_seconds": round(one * count, 1),
        "times_faster": ratio(one * count, seconds),
    }


def floor_part(options: argparse.Namespace) -> Part:
    """The pass of a calibration for 20:25 against matmuls of the same shapes."""
    model, windows, _ = embedded()
    stop = 25
    flops = windows.ids.numel() * stop * layer_flops(model, 256)
    actual = medians({"pass": lambda: run_to(model, windows, stop)}, options.repeats)["pass"]
    square = torch.randn(2048, 2048)
    plain = medians({"2048^3": lambda: square @ square}, 9)["2048^3"]
    speeds = {name: matmul_speed(shape) for name, shape in layer_shapes(model).items()}
    parts = {name: 2 * shape[0] * shape[1] * shape[2] for name, shape in layer_shapes(model).items()}
    best = sum(flop / speeds[name] for name, flop in parts.items()) * stop * windows.ids.numel() / 2048
    return {
        "flops": flops,
        "seconds": actual,
        "gflops": round(flops / actual / 1e9, 1),
        "plain_matmul_gflops": round(2 * 2048**3 / plain / 1e9, 1),
        "same_shapes_gflops": {name: round(speed / 1e9, 1) for name, speed in speeds.items()},
        "same_shapes_seconds": round(best, 2),
        "share_of_plain_matmul": ratio(flops / actual, 2 * 2048**3 / plain),
        "share_of_same_shapes": ratio(best, actual),
    }


def inference_part(options: argparse.Namespace) -> Part:
    """Prefill of 2 x 256 tokens and greedy decoding of 24 tokens: short works, many rounds."""
    model, windows, held_out = embedded()
    calib, cut = Calibration(model, windows), gl.parse_cut("20:25")
    variants = {"original": model, "pruned": gl.apply(model, cut)}
    for name in ("ghost", "ghost,rank=64", "ghost_sink"):
        variants[name] = gl.apply(model, cut, gl.fit(calib, cut, name))
    ids = held_out.ids[:2]
    prefill: Sides = {name: (lambda hf=variant.hf: forward(hf, ids)) for name, variant in variants.items()}
    decode: Sides = {
        name: (lambda hf=variant.hf: decoded(hf, ids[:1, :8])) for name, variant in variants.items()
    }
    for work in (*prefill.values(), *decode.values()):
        work()
    found: Part = {}
    for kind, sides, tokens in (("prefill", prefill, ids.numel()), ("decode", decode, DECODED)):
        rounds = rounds_of(sides, 6 * options.repeats)
        middle = {name: statistics.median(seconds) for name, seconds in rounds.items()}
        found[kind] = {
            name: {
                "tokens_per_second": round(tokens / middle[name], 1),
                "slower_than_pruned": round(middle[name] / middle["pruned"] - 1, 4),
                "slower_than_pruned_fastest": round(min(seconds) / min(rounds["pruned"]) - 1, 4),
            }
            for name, seconds in rounds.items()
        }
    return found


def growth_part(options: argparse.Namespace) -> Part:
    """Calibrate and fit a block in the middle of random models; each in a process of its own."""
    base = {"width": 256, "layers": 8, "sequences": 32}
    series = {"width": (256, 512, 1024), "layers": (8, 16, 32), "sequences": (8, 32, 128)}
    found: Part = {}
    for name, values in series.items():
        found[name] = {}
        for value in values:
            asked = base | {name: value}
            words = [f"{key}={number}" for key, number in asked.items()]
            found[name][str(value)] = in_process("random", *words)
            print(f"  {' '.join(words)}: {found[name][str(value)]}", flush=True)
    return found


def agree(model: Model, windows: Windows, cut: gl.Cut) -> None:
    """Both sides of :func:`fit_part` find the same map where they use the same ridge."""
    (fitted,) = gl.fit(Calibration(model, windows), cut, "ghost,ridge=abs:1e-6").replacements.values()
    assert fitted.map is not None
    expected = fit_ghost(model.hf, windows.ids, cut.blocks[0].start, cut.blocks[0].stop)
    difference = (fitted.map.matrix() - expected).norm() / expected.norm()
    assert difference < 1e-3, f"the maps differ by {difference:.1e}"


# -- means ---------------------------------------------------------------------------------------------------


def ratio(whole: float, part: float) -> float:
    """``whole / part``, three digits."""
    return round(whole / part, 3)


@torch.no_grad()
def forward(hf: Any, ids: Tensor) -> None:
    """A plain forward pass, head included."""
    hf(ids, use_cache=False)


def decoded(hf: Any, ids: Tensor) -> None:
    """Greedy tokens after a prompt of eight."""
    length = {"max_new_tokens": DECODED, "min_new_tokens": DECODED}
    hf.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, **length)


def run_to(model: Model, windows: Windows, stop: int) -> None:
    """The model's body up to a boundary, as a calibration runs it."""
    for part in windows.ids.split(8):
        model.decoder.trace(part, {stop})


def layer_shapes(model: Model) -> dict[str, tuple[int, int, int]]:
    """Matmuls [rows, inner, columns] of one Llama layer on a batch of 8 x 256 tokens."""
    c = model.hf.config
    width, inner, rows = c.hidden_size, c.intermediate_size, 2048
    kv = c.num_key_value_heads * c.head_dim
    return {
        "q and o": (rows, width, 2 * width),
        "k and v": (rows, width, 2 * kv),
        "gate and up": (rows, width, 2 * inner),
        "down": (rows, inner, width),
    }


def layer_flops(model: Model, length: int) -> float:
    """Multiplications and additions per token of one layer: its weights, and attention over ``length``."""
    shapes = layer_shapes(model).values()
    return sum(2 * inner * columns for _, inner, columns in shapes) + 4 * model.width * length


def head_flops(model: Model) -> float:
    """The same of the head."""
    return 2.0 * model.width * int(model.hf.config.vocab_size)


def matmul_speed(shape: tuple[int, int, int]) -> float:
    """FLOP/s of a float32 matmul of this shape, the best of some tries."""
    left, right = torch.randn(shape[0], shape[1]), torch.randn(shape[1], shape[2])
    seconds = min(timed(lambda: left @ right) for _ in range(9))
    return 2 * shape[0] * shape[1] * shape[2] / seconds


def peak_memory(side: str, block: str) -> float:
    """Megabytes that fitting a block takes at its peak beyond the loaded model: median of three processes."""
    return statistics.median(float(in_process("memory", side, block)["extra_mb"]) for _ in range(3))


def in_process(task: str, *words: str) -> Part:
    """Run one of :data:`TASKS` in a new Python process."""
    command = [sys.executable, __file__, "--task", task, *words]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: Part = json.loads(answer.splitlines()[-1])
    return found


def memory_task(side: str, block: str) -> Part:
    """Peak of one side of :func:`fit_part`."""
    model, windows, _ = embedded()
    cut = gl.parse_cut(block)
    forward(model.hf, windows.ids[:1, :8])
    work = {
        "ghostlab": lambda: gl.fit(Calibration(model, windows, budget=Budget(0)), cut, "ghost"),
        "published": lambda: fit_ghost(model.hf, windows.ids, cut.blocks[0].start, cut.blocks[0].stop),
    }[side]
    return peak_of(work)


def random_task(*words: str) -> Part:
    """Calibrate and fit a random Llama."""
    sizes = {name: int(value) for name, value in (word.split("=") for word in words)}
    layers = sizes["layers"]
    model = random_llama(sizes["width"], layers, vocabulary=1024)
    cut = gl.parse_cut(f"{layers // 4}:{layers // 2}")
    calib = Calibration(model, random_windows(model, sizes["sequences"]), budget=Budget(0))
    found = peak_of(lambda: calib.moments(cut))
    found["moments_seconds"] = found.pop("seconds")
    found["solve_seconds"] = round(timed(lambda: gl.fit(calib, cut, "ghost")), 3)
    return found


def random_llama(width: int, layers: int, vocabulary: int) -> Model:
    """A Llama with random weights; the tokenizer is there because every model has one."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=3 * width, num_hidden_layers=layers,
        num_attention_heads=width // 64, num_key_value_heads=width // 64,
    )  # fmt: skip
    return Model(LlamaForCausalLM(config).eval(), gl.load_model("embedded").tokenizer, name="random")


def random_windows(model: Model, count: int) -> Windows:
    """Windows of 256 random tokens, in five folds."""
    ids = torch.randint(0, int(model.hf.config.vocab_size), (count, 256))
    fold = torch.arange(count) * 5 // count
    return Windows(ids, fold, torch.ones(count), False, "random")


def peak_of(work: Callable[[], object]) -> Part:
    """Seconds of ``work``, and megabytes by which the process grew at most (resident set)."""
    process = psutil.Process()
    before = process.memory_info().rss
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    seconds = timed(work)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    return {"seconds": round(seconds, 3), "extra_mb": round((peak - before) / 2**20, 1)}


TASKS: dict[str, Callable[..., Part]] = {"memory": memory_task, "random": random_task}
PARTS: dict[str, Callable[[argparse.Namespace], Part]] = {
    "fit": fit_part,
    "score": score_part,
    "wide": wide_part,
    "atlas": atlas_part,
    "floor": floor_part,
    "inference": inference_part,
    "growth": growth_part,
}


def machine() -> str:
    """What it ran on, without its name."""
    return f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}"


def keep(name: str, part: Part) -> None:
    """Write one part over its last measurement."""
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    known[name] = {"machine": machine(), **part}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(known, indent=1), encoding="utf-8")


def show(name: str, part: Part) -> None:
    """Print a part as a Markdown list."""
    print(f"\n## {name}\n")

    def walk(value: Any, indent: str, label: str) -> None:
        if isinstance(value, dict):
            print(f"{indent}- {label}")
            for key, inner in value.items():
                walk(inner, indent + "  ", key)
        else:
            print(f"{indent}- {label}: {value}")

    for key, value in part.items():
        walk(value, "", key)


def main(words: Sequence[str] | None = None) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=[], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.task:
        print(json.dumps(TASKS[options.task](*options.parts)))
        return
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for name in options.parts or PARTS:
        print(f"{name} ...", flush=True)
        part = PARTS[name](options)
        keep(name, part)
        show(name, part)


if __name__ == "__main__":
    main()
