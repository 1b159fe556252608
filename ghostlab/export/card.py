"""The model card (README.md) of an exported model: what it is, its figures, how to load and to repeat it."""

from __future__ import annotations

import re
from pathlib import Path

from huggingface_hub import ModelCard, ModelCardData

from ghostlab.model.catalog import EMBEDDED, EMBEDDED_ORIGIN, find
from ghostlab.model.model import Model
from ghostlab.results.records import Metric, RecoveryRun, Scores
from ghostlab.results.run import RunResult
from ghostlab.results.windows import comparable

_TEMPLATE = Path(__file__).with_name("card.md.jinja")
_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+(?<!\.gguf)", re.ASCII)


def model_card(
    model: Model,
    *,
    stock: bool = False,
    result: RunResult | None = None,
    run: RecoveryRun | None = None,
) -> str:
    """Markdown with the front matter that the hub reads.

    Args:
        model: The exported model.
        stock: Whether it is an ordinary checkpoint.
        result: The run that it comes from, for its figures and the command that repeats it.
        run: The recovery among those of ``result``; ``None`` for the pruned model.
    """
    source = model.name if result is None else result.config.model
    command = "" if result is None else result.config.to_command()  # may hold a pasted text
    card = ModelCard.from_template(
        _metadata(source),
        template_path=str(_TEMPLATE),
        title=_line(model.name + ("" if model.cut is None else f", {model.cut.describe(model.full_depth)}")),
        name=_line(model.name),
        note=_line(model.note),
        cut=model.cut is not None,
        kept=len(model.kept),
        depth=model.full_depth,
        replaced=bool(model.replacements),
        operator="an operator" if run is None else f"`{_line(run.label)}`",
        ordinary=stock or not any(replacement.map for replacement in model.replacements.values()),
        result=result,
        rows=[] if result is None else _rows(result, run),
        about=_about(result) if result is not None else "",
        command=command,
        fence="```" if "```" not in command else "`" * 6,
    )
    return str(card)


def _metadata(source: str) -> ModelCardData:
    """The hub model that this one is made from, if it is one, and its licence."""
    known, base = find(source), EMBEDDED_ORIGIN if source == EMBEDDED else source
    return ModelCardData(
        base_model=base if _HUB_ID.fullmatch(base) else None,
        license=None if known is None else known.licence.lower().replace(" ", ""),
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=["ghostlab", "pruned"],
    )


def _rows(result: RunResult, run: RecoveryRun | None) -> list[list[str]]:
    rows = [_row("original", result.baseline.original), _row("pruned", result.baseline.pruned)]
    return rows if run is None else [*rows, _row(_line(run.label), run)]


def _row(name: str, scores: Scores | RecoveryRun) -> list[str]:
    closed = f"{scores.gap_closed:.1%}" if isinstance(scores, RecoveryRun) else ""
    metrics = (_interval(scores.perplexity), _interval(scores.kl), f"{scores.top1_agreement.value:.1%}")
    return [name, *metrics, closed]


def _interval(metric: Metric) -> str:
    return f"{metric.value:.4g} [{metric.low:.4g}, {metric.high:.4g}]"


def _about(result: RunResult) -> str:
    text = result.text
    return _line(
        f"Held-out text: {text.held_out}, {text.windows}. Fitted on {text.calibration_tokens:,} tokens of "
        f"{text.calibration}. In brackets: 95 % bootstrap intervals over windows. "
        + comparable(text.rule, text.length, complete=result.config.held_out == 0)
    )


def _line(text: str) -> str:
    """A name as one line, so that it cannot end the heading, row or sentence that it is in."""
    return " ".join(text.split())
