"""The model card (README.md) of an exported model: what it is, its figures, how to load and to repeat it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostlab.model.catalog import EMBEDDED, EMBEDDED_ORIGIN, find
from ghostlab.results.records import Metric, RecoveryRun, Scores
from ghostlab.results.windows import comparable

if TYPE_CHECKING:
    from ghostlab.model.model import Model
    from ghostlab.results.run import RunResult

_HEAD = "| model | perplexity | KL to original (nats) | top-1 agreement | gap closed |\n|---|---|---|---|---|"


def model_card(
    variant: Model,
    *,
    stock: bool = False,
    result: RunResult | None = None,
    run: RecoveryRun | None = None,
) -> str:
    """Markdown with the front matter that the hub reads.

    Args:
        variant: The exported model.
        stock: Whether it is an ordinary checkpoint.
        result: The run that it comes from, for its figures and the command that repeats it.
        run: The recovery among those of ``result``; ``None`` for the pruned model.
    """
    source = variant.name if result is None else result.config.model
    parts = [_front(source), f"# {_title(variant)}", _what(variant, run), _load(variant, stock=stock)]
    if result is not None:
        parts += [_figures(result, run), _repeat(result)]
    return "\n\n".join(parts) + "\n"


def _front(source: str) -> str:
    """What the hub reads: the model that this one is made of, if it is one of the hub, and its licence."""
    lines = ["library_name: transformers", "pipeline_tag: text-generation", "tags:", "- ghostlab", "- pruned"]
    known, base = find(source), EMBEDDED_ORIGIN if source == EMBEDDED else source
    if known is not None:
        lines.insert(0, f"license: {known.licence.lower().replace(' ', '')}")
    if "/" in base and not base.startswith((".", "/", "~")) and not base.endswith(".gguf"):
        lines.insert(0, f"base_model: {base}")
    return "\n".join(["---", *lines, "---"])


def _title(variant: Model) -> str:
    cut = "" if variant.cut is None else f", {variant.cut.describe(variant.full_depth)}"
    return f"{variant.name}{cut}"


def _what(variant: Model, run: RecoveryRun | None) -> str:
    if variant.cut is None:
        return "The model as it was loaded."
    blocks = f"{len(variant.kept)} of {variant.full_depth} layers of {variant.name} are left"
    note = f" ({variant.note})" if variant.note else ""
    if not variant.replacements:
        return f"{blocks}{note}; nothing stands in for the others."
    by = "an operator" if run is None else f"`{run.label or run.method}`"
    return f"{blocks}{note}; {by}, fitted in closed form by Ghostlab, stands in for the others."


def _load(variant: Model, *, stock: bool) -> str:
    lines = ["## Use", "", "```python", "from transformers import AutoModelForCausalLM, AutoTokenizer", ""]
    ordinary = stock or not any(replacement.map for replacement in variant.replacements.values())
    more = "" if ordinary else ", trust_remote_code=True"
    lines += [f"model = AutoModelForCausalLM.from_pretrained(folder{more})"]
    lines += ["tokenizer = AutoTokenizer.from_pretrained(folder)", "```", ""]
    if ordinary:
        lines += ["This is an ordinary checkpoint: no code of its own, no Ghostlab."]
    else:
        lines += [
            "`trust_remote_code` runs `modeling_ghostlab.py` of this folder, which puts the operators in. "
            "Without it Transformers loads the pruned model **without** them. Ghostlab needs no such trust: "
            "`ghostlab.load_recovered(folder)`."
        ]
    return "\n".join(lines)


def _figures(result: RunResult, run: RecoveryRun | None) -> str:
    base, text = result.baseline, result.text
    rows = [_row("original", base.original), _row("pruned", base.pruned)]
    if run is not None:
        rows.append(_row(run.label or run.method, run))
    about = (
        f"Held-out text: {text.held_out}, {text.windows}. Fitted on {text.calibration_tokens:,} tokens of "
        f"{text.calibration}. In brackets: 95 % bootstrap intervals over windows. "
        + comparable(text.cut_by, text.length, complete=result.config.held_out == 0)
    )
    return "\n".join(["## Figures", "", _HEAD, *rows, "", about])


def _row(name: str, scores: Scores | RecoveryRun) -> str:
    closed = f"{scores.gap_closed:.1%}" if isinstance(scores, RecoveryRun) else ""
    perplexity, kl = _interval(scores.perplexity), _interval(scores.kl)
    return f"| {name} | {perplexity} | {kl} | {scores.top1_agreement.value:.1%} | {closed} |"


def _interval(metric: Metric) -> str:
    return f"{metric.value:.4g} [{metric.low:.4g}, {metric.high:.4g}]"


def _repeat(result: RunResult) -> str:
    made = ", ".join(f"{name} {number}" for name, number in result.versions.items())
    command = result.config.to_command()  # may hold a pasted text
    fence = "```" if "```" not in command else "`" * 6
    lines = ["## Repeat it", "", f"{fence}sh", command, fence]
    return "\n".join([*lines, "", f"Made with {made}."] if made else lines)
