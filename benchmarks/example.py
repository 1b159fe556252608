"""The finished run that the app opens on: default settings, probes of its best map, three zero-shot tasks.

    python benchmarks/example.py            # about four minutes on two cores
    python benchmarks/example.py --atlas    # the atlas too, two minutes more

Writes assets/examples/default. Operators stay out: they would be 2.7 MB, and the page says how to make them.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import get_args

import ghostlab as gl
from ghostlab.progress import ProgressUpdate
from ghostlab.results.probe import Factor

FOLDER = Path(__file__).resolve().parents[1] / "assets" / "examples" / "default"
STRENGTHS = (0.25, 0.5, 0.75, 1.25)
RANKS = (8, 32, 128, 256, 360, 432, 504)
TASKS, QUESTIONS = "arc_easy,piqa,hellaswag", 100


def altered() -> list[gl.Alteration]:
    """One part alone, the whole map at other strengths, and ranks by either factorisation."""
    factors: tuple[Factor, ...] = get_args(Factor)
    return [
        gl.Alteration(part="antisymmetric"),
        *(gl.Alteration(alpha=alpha) for alpha in STRENGTHS),
        *(gl.Alteration(rank=rank, factor=factor) for factor in factors for rank in RANKS),
    ]


def told(update: ProgressUpdate) -> None:
    """One line that is written over."""
    print(f"\r{update.fraction:6.1%} {update.message:60.60}", end="", flush=True)


def main() -> None:
    """Run, probe, ask, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--atlas", action="store_true", help="make the atlas again, too")
    options = parser.parse_args()
    lab = gl.Lab()
    result = lab.run(gl.RunConfig(), progress=told)
    best = min(result.runs, key=lambda run: run.perplexity.value)
    probes = lab.probe(result, best.label, *altered(), progress=told)
    probes += lab.probe(result, best.label, gl.Alteration(part="symmetric"), progress=told)
    asked = lab.evaluate(result, TASKS, limit=QUESTIONS, progress=told)
    replace(result, probes=probes, zero_shot=asked, operators={}).save(FOLDER)
    if options.atlas:
        lab.atlas(gl.RunConfig(), progress=told).rounded(5).save(FOLDER / "atlas.json")
    print(f"\n{result.to_frame()[['variant', 'perplexity', 'kl', 'gap_closed']].to_string(index=False)}")


if __name__ == "__main__":
    main()
