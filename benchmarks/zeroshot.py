"""Zero-shot accuracy of recoveries: the papers' tasks on the embedded model and its cuts.

    python benchmarks/zeroshot.py                              # about fifteen minutes on two cores
    python benchmarks/zeroshot.py --limit 20 --cuts 20:25 --recover ghost

One pass over each context serves the original and all variants of all cuts. Prints Markdown and writes it
with a JSON of every answer to benchmarks/results/.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import ghostlab as gl
from ghostlab.model.model import Model
from ghostlab.plots.figures.tasks import table
from ghostlab.progress import Progress, ProgressUpdate
from ghostlab.results.statistics import ALPHA

RESULTS = Path(__file__).parent / "results"
TASKS = "ghosted-layers,piqa"
CUTS = ("20:25", "10:16")
RECOVERIES = ("linearpatch", "replaceme_ls", "ghost", "ghost_sink")


def variants(cuts: Sequence[str], recoveries: Sequence[str]) -> dict[str, Model]:
    """The original, and for each cut plain dropping and every recovery, fitted as in docs/findings.md."""
    model = gl.load_model("embedded")
    calib = gl.calibrate(model, gl.load_text("wikipedia"), sequences=64, length=256, seed=0)
    made = {"original": model}
    for text in cuts:
        cut = gl.parse_cut(text)
        made[f"{text} drop"] = gl.apply(model, cut)
        for method in recoveries:
            made[f"{text} {method}"] = gl.apply(model, cut, gl.fit(calib, cut, method))
    return made


def markdown(found: gl.ZeroShot) -> str:
    """The table, with how it was made above it and what the marks mean below."""
    head, *rows = table(found)
    lines = [
        f"{found.model}; accuracy (acc) in % and its standard error, no examples in the prompt, first "
        f"{found.limit} questions of each installed validation set, lm_eval {found.versions['lm_eval']}. "
        "After the stroke acc_norm where a task has it; *retained* is the mean over tasks of the ratio to "
        "the original, with acc and, after the stroke, with acc_norm, [95 % bootstrap]. * differs from the "
        f"original with p < {ALPHA} (McNemar).",
        "",
        f"| {' | '.join([*head, 'retained'])} |",
        f"|{'---|' * (len(head) + 1)}",
    ]
    lines += [f"| {' | '.join([*row, _retained(found, row[0])])} |" for row in rows]
    lines += ["", *(f"Left out: {name}, {reason}." for name, reason in found.left_out.items())]
    return "\n".join(lines)


def _retained(found: gl.ZeroShot, name: str) -> str:
    both = [found.retained(name, which) for which in ("acc", "acc_norm")]
    return " / ".join(f"{100 * m.value:.0f} [{100 * m.low:.0f}, {100 * m.high:.0f}]" for m in both)


def _report(update: ProgressUpdate) -> None:
    print(f"\r{update.fraction:6.1%} {update.message:60.60}", end="", flush=True)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", default=TASKS)
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--cuts", nargs="+", default=CUTS)
    parser.add_argument("--recover", nargs="*", default=RECOVERIES)
    parser.add_argument("--name", default="zeroshot-wikipedia")
    args = parser.parse_args()
    found = gl.evaluate(
        variants(args.cuts, args.recover), args.tasks, limit=args.limit, progress=Progress(_report)
    )
    found.save(RESULTS / f"{args.name}.json")
    table = markdown(found)
    (RESULTS / f"{args.name}.md").write_text(table + "\n", encoding="utf-8")
    print(f"\n{table}\n\n{found.seconds:.0f} s")


if __name__ == "__main__":
    main()
