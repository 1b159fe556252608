"""Generated text as HTML: each token shaded by how much it surprises the original, its departure marked.

The app and the report share ``templates/tokens.html`` and ``tokens.css``; ``tokens.js`` shows the likelihoods
of the token that is pointed at, tapped or reached by keyboard.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from markupsafe import Markup, escape

from ghostlab.plots import html
from ghostlab.plots.figure import Figure
from ghostlab.plots.formats import MINUS, number, percent, plural
from ghostlab.results.generation import Generation, Token

_LOOP = 8
_DISTINCT = 0.4
"""A text repeats itself whose last tokens occurred before, or with fewer distinct tokens than this share."""
CSS = Path(__file__).with_name("tokens.css")
SCRIPT = CSS.with_suffix(".js")
FACTORS = (2, 10, 100)
"""A token is shaded one step darker when it is this many times less likely to the original."""
_TEMPLATE = "plots/templates/tokens.html"


def level(token: Token) -> int:
    """0 for a token about as likely to the original as to its writer, to 3 for one over 100 times less."""
    return sum(token.surprise >= math.log(factor) for factor in FACTORS)


def marked(made: Generation) -> Markup:
    """The continuation, token by token; plain text in results that do not know the tokens."""
    if not made.written:
        return escape(made.text)
    return html.macro(_TEMPLATE, "text", list(_spans(made)))


def _spans(made: Generation) -> Iterator[dict[str, object]]:
    """What the template is given of each token.

    Space in front stands outside: shaded, it would dangle at the end of a line.
    """
    place = 0
    for index, token in enumerate(made.written):
        in_text = made.text.startswith(token.text, place)  # the name of a special token is not
        place += len(token.text) if in_text else 0
        text = token.text.lstrip()
        classes = {
            f"gl-s{level(token)}": level(token) > 0,
            "gl-here": index == made.leaves,
            "gl-special": not in_text,
            "gl-blank": not text,
        }
        yield {
            "text": text,
            "space": token.text.removesuffix(text),
            "classes": " ".join(["gl-token", *(name for name, holds in classes.items() if holds)]),
            "tip": _tip(token, made.variant),
            "leaves": index == made.leaves,
        }


def _tip(token: Token, variant: str) -> str:
    """What the tooltip of a token says, one fact a line."""
    lines = [_quoted(token.text) if token.text else "part of a character"]
    if variant != "original":
        lines.append(f"{variant}: {_likelihood(token.log_probability)}")
    lines.append(f"original: {_likelihood(token.original)}")
    if token.instead:
        lines.append(f"likeliest to the original: {_quoted(token.instead)}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    visible = text.replace("\n", "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}")
    return f"\N{LEFT DOUBLE QUOTATION MARK}{visible}\N{RIGHT DOUBLE QUOTATION MARK}"


def _likelihood(log_probability: float) -> str:
    share = math.exp(log_probability)
    likely = percent(share) if share >= 0.001 else "below 0.1 %"
    return f"log-probability {log_probability:.2f} ({likely})".replace(" -", f" {MINUS}")


def legend() -> Markup:
    """What shade, underline and mark mean."""
    steps = [f"{low} to {high} times" for low, high in pairwise(FACTORS)]
    return html.macro(_TEMPLATE, "legend", [*steps, f"over {FACTORS[-1]} times"])


def timing(made: Generation) -> str:
    """``first token after 0.12 s, then 23 tokens/s``."""
    if made.speed <= 0:
        return plural(made.tokens, "token")
    return f"first token after {number(made.first_seconds, 2)} s, then {number(made.speed, 2)} tokens/s"


def reuse(made: Generation) -> str:
    """How much of the prompt did not have to be read again; nothing where all of it was."""
    blocks = made.shared_blocks
    verb = "shares" if blocks == 1 else "share"
    return f"{plural(blocks, 'layer')} {verb} the original's prompt" if blocks else ""


def departure(made: Generation) -> str:
    """Where the continuation leaves the original's greedy path; nothing in results that do not know."""
    if not made.written:
        return ""
    count = plural(made.tokens, "token")
    if made.leaves is None:
        own = made.variant == "original"
        return f"{count}: the original's own path" if own else f"on the original's path for all {count}"
    return f"leaves the original's path at token {made.leaves + 1} of {made.tokens}"


def sentence(generations: Sequence[Generation]) -> str:
    """Who stays longest on the original's path, and how strange the original finds each text."""
    known = [made for made in generations[1:] if made.written]
    if not known:
        return ""
    kept = {made.variant: made.tokens if made.leaves is None else made.leaves for made in known}
    longest = max(kept.values())
    best = [name for name, steps in kept.items() if steps == longest]
    path = "Every variant leaves the original's path with its first token"
    if longest:
        verb = "keeps" if len(best) == 1 else "keep"
        path = f"{_listed(best)} {verb} to the original's path for {plural(longest, 'token')}"
    strange = "; ".join(f"{made.variant} {_mean_factor(made)}" for made in known)
    factors = f"How many times less likely the original finds a token, on average: {strange}."
    return f"{path}. {factors}{_loops(known)}"


def _listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _loops(known: Sequence[Generation]) -> str:
    """A caution about texts that repeat themselves; nothing where none does."""
    names = [made.variant for made in known if repeats(made)]
    if not names:
        return ""
    verb = "repeats itself" if len(names) == 1 else "repeat themselves"
    return f" But {_listed(names)} {verb}, and a loop is easy to predict."


def repeats(made: Generation) -> bool:
    """Whether a continuation goes in a loop."""
    texts = [token.text for token in made.written]
    last, length = texts[-_LOOP:], len(texts)
    if length < 2 * _LOOP:
        return False
    before = any(texts[start : start + _LOOP] == last for start in range(length - _LOOP))
    return before or len(set(texts)) < _DISTINCT * length


def _mean_factor(made: Generation) -> str:
    """The geometric mean of how many times less likely the original finds a token."""
    mean = sum(token.surprise for token in made.written) / len(made.written)
    return number(math.exp(min(mean, 50.0)), 2) if mean >= 0.05 else "no less"


GENERATED = Figure(
    "generated",
    "Generated text",
    "Every model continues the same prompt, by itself. Then the original reads what each one wrote and "
    "says how likely it finds each token: the shade grows with how many times less likely than to the "
    "writer. ► marks where a text first leaves what the original itself would have written; what "
    "follows may differ and still be good.",
    r"s_t = \log p_{\text{writer}}(w_t \mid w_{<t}) - \log p_{\text{original}}(w_t \mid w_{<t})",
    "Reading one model's text with another: GLTR (arXiv 1906.04043)",
    say=sentence,
)
