"""All recoveries on many cuts, on equal terms: same model, same tokens, same held-out text.

    python benchmarks/compare.py operators            # the whole table, about half an hour on two cores
    python benchmarks/compare.py operators --cuts 20:25 10:16 --recover ghost ghost_sink
    python benchmarks/compare.py shorter              # each cut with one layer fewer dropped
    python benchmarks/compare.py criteria             # every criterion x {drop, ghost, ghost_sink}

One calibration per setting serves every cut and operator; a variant runs only the blocks after its cut.
Prints Markdown, and writes it with a JSON of every figure to benchmarks/results/. Rows measured before under
the same setting stay there unless they are measured anew, so that a table can grow a cut or an operator at
a time.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ghostlab as gl
from ghostlab.calibration.activations import Activations
from ghostlab.calibration.calibrate import Calibration
from ghostlab.calibration.store import Budget
from ghostlab.config import FitOrder
from ghostlab.errors import GhostlabError
from ghostlab.evaluation.scoreboard import score
from ghostlab.model.model import Model
from ghostlab.pruning.base import CriterionScores, lowest
from ghostlab.pruning.registry import CRITERIA
from ghostlab.pruning.registry import score as select_scores
from ghostlab.recovery.registry import OPERATORS
from ghostlab.results.records import Scores
from ghostlab.results.statistics import resamples
from ghostlab.text.windows import HELD_OUT_SEED, make_windows

RESULTS = Path(__file__).parent / "results"
Figures = dict[str, Any]
CUTS = ("20:25", "10:16", "10:20", "0:3", "13:19", "24:30", "12:15,17,25:27")
VARIANTS = (
    "ghost,ridge=abs:1e-6",
    "ghost_sink,weight=relative",
    "scalar,estimator=norm",
    "lra,bias=penalised",
)
LOW_RANK = ("ghost,rank=64,factor=truncated_svd", "ghost,rank=64,factor=reduced_rank")


@dataclass(frozen=True)
class Setting:
    """What a table is measured under."""

    name: str
    fitted_on: str
    shown_on: str
    bos: str


SETTINGS = (
    Setting("wikipedia", "wikipedia", "wikipedia", "auto"),
    Setting("novels-to-wikipedia", "novels", "wikipedia", "auto"),
    Setting("wikipedia-bos", "wikipedia", "wikipedia", "always"),
)


@dataclass(frozen=True)
class Row:
    """One operator on one cut."""

    cut: str
    recovery: str
    perplexity: float
    low: float
    high: float
    kl: float
    top1: float
    added: int
    against_ghost: tuple[float, float, float]
    """Mean difference in nats per token to ghost on the same windows, with its paired 95 % interval."""
    seconds: float
    note: str = ""


def operators(options: argparse.Namespace) -> None:
    """The table of recoveries."""
    tabulate("operators", options.cuts, options.recover or [*OPERATORS, *VARIANTS, *LOW_RANK], options)


def shorter(options: argparse.Namespace) -> None:
    """Each cut of one block with a layer fewer dropped, at either edge: the same cost as keeping a layer."""
    blocks = [gl.parse_cut(text).blocks for text in options.cuts]
    edges = [(b.start, b.stop) for (b, *more) in blocks if not more and b.stop - b.start > 1]
    cuts = [f"{start + left}:{stop - 1 + left}" for start, stop in edges for left in (0, 1)]
    tabulate("shorter", cuts, options.recover or ["drop", "ghost", "ghost_sink"], options)


def tabulate(table: str, cuts: Iterable[str], recoveries: Sequence[str], options: argparse.Namespace) -> None:
    """Measure recoveries on cuts, under every setting asked for."""
    model = gl.load_model(options.model)
    for setting in [s for s in SETTINGS if s.name in options.settings]:
        calib, held_out = prepare(model, setting, options)
        rows: list[Row] = []
        for text in cuts:
            rows += compare(model, calib, held_out, text, recoveries)
            write(f"{table}-{setting.name}", describe(setting, options), [asdict(r) for r in rows])


def prepare(model: Model, setting: Setting, options: argparse.Namespace) -> tuple[Calibration, Activations]:
    """Calibration with all states kept, and the held-out windows."""
    fitted, shown = gl.load_text(setting.fitted_on), gl.load_text(setting.shown_on)
    common: dict[str, Any] = {"length": options.length, "bos": setting.bos}
    calib = gl.calibrate(model, fitted, sequences=options.sequences, **common)
    calib.similarity()  # one pass over the whole stack keeps the states of every boundary
    windows = make_windows(
        shown.held_out, model.tokenizer, count=options.held_out, seed=HELD_OUT_SEED, **common
    )
    return calib, Activations(model, windows, budget=Budget(1 << 30), rounded=False)


def compare(
    model: Model, calib: Calibration, held_out: Activations, text: str, recoveries: Iterable[str]
) -> list[Row]:
    """Fit and score every recovery on one cut; refusals become rows with a note."""
    cut = gl.parse_cut(text)
    fits, refused, seconds = {}, {}, {}
    for asked, order in orders(recoveries, len(cut)):
        label = asked if order == "parallel" else f"{asked} (sequential)"
        begun = time.perf_counter()
        try:
            fits[label] = gl.fit(calib, cut, asked, order=order)
        except GhostlabError as error:
            refused[label] = str(error)
        seconds[label] = time.perf_counter() - begun
        print(f"{text:>16} {label:<44} fitted in {seconds[label]:.1f} s", flush=True)
    pruned = gl.apply(model, cut)
    variants = {label: gl.apply(model, cut, fit) for label, fit in fits.items()}
    original, *scores = score(held_out, list(variants.values()))
    found = {"original": original, **dict(zip(variants, scores, strict=True))}
    rows = [row(text, "original", found)]
    for label, variant in variants.items():
        added = variant.parameters - pruned.parameters
        rows.append(row(text, label, found, added, seconds[label]))
        print(f"{text:>16} {label:<44} {rows[-1].perplexity:12.2f}", flush=True)
    nothing = (math.nan,) * 3
    rows += [Row(text, label, *nothing, *nothing[:2], 0, nothing, 0.0, why) for label, why in refused.items()]
    return rows


def orders(recoveries: Iterable[str], blocks: int) -> list[tuple[str, FitOrder]]:
    """Each recovery fitted in parallel, and the main ones sequentially too where there are several blocks."""
    asked: list[tuple[str, FitOrder]] = [(text, "parallel") for text in recoveries]
    if blocks > 1:
        asked += [(text, "sequential") for text, _ in asked if text in {"ghost", "ghost_sink"}]
    return asked


def row(cut: str, label: str, found: dict[str, Scores], added: int = 0, seconds: float = 0.0) -> Row:
    """Figures of one variant."""
    scores = found[label]
    ppl = scores.perplexity
    against = paired(scores, found["ghost"]) if "ghost" in found else (math.nan,) * 3
    return Row(
        cut,
        label,
        ppl.value,
        ppl.low,
        ppl.high,
        scores.kl.value,
        scores.top1_agreement.value,
        added,
        against,
        round(seconds, 2),
    )


def paired(scores: Scores, reference: Scores) -> tuple[float, float, float]:
    """Difference of mean NLL with its paired bootstrap interval over windows."""
    difference = np.array(scores.window_nll) - np.array(reference.window_nll)
    draws = resamples(len(difference), seed=0) @ difference / len(difference)
    low, high = np.percentile(draws, [2.5, 97.5])
    return float(difference.mean()), float(low), float(high)


def operator_table(rows: Sequence[Figures]) -> str:
    """Markdown: recoveries down, cuts across; perplexity, an arrow where it surely differs from ghost."""
    cuts = [
        cut for cut in (*CUTS, *dict.fromkeys(r["cut"] for r in rows)) if any(r["cut"] == cut for r in rows)
    ]
    cuts = list(dict.fromkeys(cuts))
    labels = list(dict.fromkeys(r["recovery"] for r in rows))
    cells = {(r["recovery"], r["cut"]): cell(r) for r in rows}
    lines = ["| recovery | " + " | ".join(cuts) + " |", "|---|" + "---|" * len(cuts)]
    lines += [
        f"| {label} | " + " | ".join(cells.get((label, cut), "") for cut in cuts) + " |" for label in labels
    ]
    return "\n".join(lines)


def cell(r: Figures) -> str:
    """One perplexity for people."""
    if r["perplexity"] is None:
        return "refused"
    _, low, high = r["against_ghost"]
    mark = "" if low is None else " ↓" if high < 0 else " ↑" if low > 0 else ""
    return digits(r["perplexity"]) + (mark if r["recovery"] not in {"original", "drop"} else "")


def digits(value: float) -> str:
    """A perplexity, short whatever its size."""
    return f"{value:.1f}" if value < 1e4 else f"{value:.1e}"


def criteria(options: argparse.Namespace) -> None:
    """The table of criteria."""
    model = gl.load_model(options.model)
    (setting,) = [s for s in SETTINGS if s.name == options.settings[0]]
    calib, held_out = prepare(model, setting, options)
    rows: list[dict[str, Any]] = []
    measured: dict[gl.Cut, dict[str, float]] = {}
    for name in options.criteria or list(CRITERIA):
        known: CriterionScores | None = None
        for count in options.counts:
            begun = time.perf_counter()
            reused = known is not None
            known = known or select_scores(calib, name, count)
            cut = known.cut if not reused else gl.Cut.of_layers(lowest(known.values, count))
            seconds = None if reused else time.perf_counter() - begun
            if cut not in measured:
                measured[cut] = recovered_perplexities(model, calib, held_out, cut)
            rows.append(
                {"count": count, "criterion": name, "cut": str(cut), "seconds": seconds, **measured[cut]}
            )
            print(rows[-1], flush=True)
            write(f"criteria-{setting.name}", describe(setting, options), rows)
            if CRITERIA[name].unit != "layer" or name == "sleb" or name.endswith("_plus"):
                known = None  # its scores depend on how many layers go, or it spares some layers


def recovered_perplexities(
    model: Model, calib: Calibration, held_out: Activations, cut: gl.Cut
) -> dict[str, float]:
    """Perplexity of a cut as it is and as two operators recover it."""
    fits = {method: gl.fit(calib, cut, method) for method in ("drop", "ghost", "ghost_sink")}
    variants = [gl.apply(model, cut, fit) for fit in fits.values()]
    _, *scores = score(held_out, variants)
    return {method: s.perplexity.value for method, s in zip(fits, scores, strict=True)}


def criteria_table(rows: Sequence[Figures]) -> str:
    """Markdown: one line per criterion and count."""
    lines = [
        "| n | criterion | drops | drop | ghost | ghost_sink | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in sorted(rows, key=lambda r: int(r["count"])):
        figures = " | ".join(digits(r[m]) for m in ("drop", "ghost", "ghost_sink"))
        seconds = "as above" if r["seconds"] is None else f"{r['seconds']:.0f}"
        lines.append(f"| {r['count']} | {r['criterion']} | {r['cut']} | {figures} | {seconds} |")
    return "\n".join(lines)


def describe(setting: Setting, options: argparse.Namespace) -> str:
    """What the table was measured under, in one sentence."""
    return (
        f"{options.model}: fitted on {options.sequences} x {options.length} tokens of {setting.fitted_on}, "
        f"shown on {options.held_out} x {options.length} held-out tokens of {setting.shown_on}; "
        f"BOS: {setting.bos}."
    )


def write(name: str, about: str, rows: Sequence[Figures]) -> None:
    """Write figures and table after each cut, so that a stopped run keeps what it has."""
    RESULTS.mkdir(exist_ok=True)
    rows = merged(name, about, json.loads(json.dumps(rows).replace("NaN", "null")))
    (RESULTS / f"{name}.json").write_text(
        json.dumps({"about": about, "rows": rows}, indent=1), encoding="utf-8"
    )
    operators = not name.startswith("criteria")
    note = (
        "Perplexity; an arrow says that the paired 95 % interval against ghost excludes 0."
        if operators
        else ""
    )
    table = operator_table(rows) if operators else criteria_table(rows)
    (RESULTS / f"{name}.md").write_text(f"{about}\n{note}\n\n{table}\n", encoding="utf-8")


def merged(name: str, about: str, rows: Sequence[Figures]) -> list[Figures]:
    """``rows`` after those that an earlier run under the same setting measured and this one did not."""
    file = RESULTS / f"{name}.json"
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"about": "", "rows": []}
    if before["about"] != about:
        return list(rows)
    kept = {identity(row): row for row in before["rows"]}
    return list((kept | {identity(row): row for row in rows}).values())


def identity(row: Figures) -> tuple[Any, ...]:
    """What a row is the measurement of."""
    return tuple(
        row.get(name)
        for name in ("cut", "recovery", "count", "criterion")
        if name != "cut" or "recovery" in row
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=("operators", "shorter", "criteria"))
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--cuts", nargs="+", default=CUTS)
    parser.add_argument("--recover", nargs="+")
    parser.add_argument("--criteria", nargs="+")
    parser.add_argument("--counts", nargs="+", type=int, default=(3, 6, 9))
    parser.add_argument("--settings", nargs="+", default=[s.name for s in SETTINGS])
    parser.add_argument("--sequences", type=int, default=64)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--held-out", type=int, default=16)
    options = parser.parse_args()
    {"operators": operators, "shorter": shorter, "criteria": criteria}[options.table](options)
    print("Written to", RESULTS)


if __name__ == "__main__":
    main()
