"""Numbers as people read them: ``25.2``, ``1,234``, ``3.2 M``, ``0.0002``, ``66 %``, ``26-fold``.

Every function takes a plain number and returns ``—`` for one that is not finite.
"""

from __future__ import annotations

import math

from ghostlab.results.records import Metric

NONE = "\N{EM DASH}"
MINUS = "\N{MINUS SIGN}"


def is_finite(value: float | None) -> bool:
    """Whether there is a number at all."""
    return value is not None and math.isfinite(value)


def number(value: float | None, digits: int = 3) -> str:
    """Significant ``digits``, thousands separated; an exponent below 0.00001 and from ten million on.

    Below 0.001 one digit fewer and no zeros at the end.
    """
    if value is None or not math.isfinite(value):
        return NONE
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1e-5 or size >= 1e7:
        mantissa, exponent = f"{value:.{max(digits - 2, 0)}e}".split("e")
        return signed(f"{mantissa}e{int(exponent)}")
    decimals = max(digits - 1 - math.floor(math.log10(size)), 0)
    if size < 1e-3:
        return signed(f"{value:.{decimals - 1}f}".rstrip("0"))
    return signed(f"{value:,.{decimals}f}")


def signed(text: str) -> str:
    """A number in ASCII with true minus signs, and with none before a zero."""
    zero = not any(digit in text for digit in "123456789")
    return text.removeprefix("-") if zero else text.replace("-", MINUS)


def count(value: float) -> str:
    """A whole number: exact below a million, ``3.2 M`` and ``1.4 B`` above."""
    if not math.isfinite(value):
        return NONE
    if abs(value) < 1_000_000:
        return signed(f"{value:,.0f}")
    unit, size = ("B", 1e9) if abs(value) >= 1_000_000_000 else ("M", 1e6)
    return signed(f"{value / size:,.1f} {unit}")


def short(value: int) -> str:
    """A whole number where there is little room: ``576``, ``19 k``, ``1.4 M``."""
    if abs(value) < 1000:
        return signed(str(value))
    unit, size = next(step for step in (("B", 1e9), ("M", 1e6), ("k", 1e3)) if abs(value) >= 0.9995 * step[1])
    scaled = value / size
    return signed(f"{scaled:.{1 if abs(scaled) < 9.95 else 0}f} {unit}")


def percent(share: float | None) -> str:
    """A share as per cent; one decimal below 10 % and close to, but not at, 100 %."""
    if share is None or not math.isfinite(share):
        return NONE
    value = 100 * share
    near_whole = 99.0 <= value < 100
    decimals = 1 if abs(value) < 9.95 or near_whole else 0
    text = f"{value:,.{decimals}f}"
    if near_whole and text == "100.0":
        text = "99.9"  # never claim all of it when it is not
    return ("0" if float(text.replace(",", "")) == 0 else signed(text)) + " %"


def points(share: float) -> str:
    """A difference of shares in percentage points: ``8 points``, ``0.4 points``, ``1 point``."""
    if not math.isfinite(share):
        return NONE
    size = signed(f"{100 * share:.{1 if abs(share) < 0.0995 else 0}f}".removesuffix(".0"))
    return f"{size} point" if size.removeprefix(MINUS) == "1" else f"{size} points"


def fold(ratio: float) -> str:
    """``26-fold``; one decimal below ten."""
    if not math.isfinite(ratio):
        return NONE
    return f"{ratio:.1f}-fold" if ratio < 9.95 else f"{ratio:,.0f}-fold"


def change(ratio: float) -> str:
    """How much more: ``by 34 %`` below a doubling, ``26-fold`` above. For ``ratio`` >= 1."""
    return f"by {percent(ratio - 1)}" if ratio < 2 else fold(ratio)


def interval(metric: Metric, digits: int = 3) -> str:
    """``25.2 (24.1 to 26.3)``."""
    low, high = number(metric.low, digits), number(metric.high, digits)
    return f"{number(metric.value, digits)} ({low} to {high})"


def plural(amount: int, noun: str) -> str:
    """``1 layer``, ``5 layers``."""
    return f"{count(amount)} {noun}" + ("" if amount == 1 else "s")


def unbroken(sentence: str) -> str:
    """The same sentence with no per-cent sign parted from its number at the end of a line."""
    return sentence.replace(" %", "\N{NO-BREAK SPACE}%")
