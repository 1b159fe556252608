"""Random but seeded run configurations: every field takes values that need quoting, None, or an edge."""

from __future__ import annotations

import random

from ghostlab.config import RunConfig
from ghostlab.spec import RecoverySpec

_AWKWARD = [
    "",
    " ",
    "a b",
    "it's",
    'say "x"',
    "--drop",
    "-1",
    "a&b=c",
    "100%",
    "naïve 雪",
    "line\nbreak",
    "$HOME",
    "a+b",
]


def _specs(rng: random.Random) -> tuple[RecoverySpec, ...]:
    methods = rng.sample(["ghost", "affine", "drop"], rng.randint(0, 3))
    ridges = ["auto", "0", "1e-4", "abs:1e-6"]
    fitted = {m: RecoverySpec(m, rng.choice([None, 1, 64]), rng.choice(ridges)) for m in methods}
    return tuple(RecoverySpec("drop") if method == "drop" else spec for method, spec in fitted.items())


def random_config(seed: int) -> RunConfig:
    """A configuration drawn from ``seed``; blocks or a criterion decide, never both."""
    rng = random.Random(seed)
    by_criterion = rng.random() < 0.5
    return RunConfig(
        model=rng.choice(["embedded", "org/name", "./my model", "C:\\models\\x.gguf"]),
        revision=rng.choice([None, "main", "refs/pr/1"]),
        text=rng.choice(["wikipedia", "hf:a/b:train:text", "/tmp/my file.txt"]),
        held_out_text=rng.choice([None, "stories"]),
        sequences=rng.randint(1, 999),
        length=rng.randint(8, 999),
        held_out=rng.randint(1, 99),
        bos=rng.choice(["auto", "always", "never"]),
        drop=None if by_criterion else rng.choice(["20:25", "0:1", "10:12,20:25", "3, 7:9"]),
        select=rng.choice(["shortgpt", "streamline"]) if by_criterion else None,
        count=rng.randint(1, 9),
        recover=_specs(rng),
        rank=rng.choice([None, 1, 16]),
        order=rng.choice(["parallel", "sequential"]),
        ridge=rng.choice(["auto", "0", "1e-4", "abs:1e-6"]),
        prompt=rng.choice([words for words in _AWKWARD if words.strip()]),
        prompt_format=rng.choice(["auto", "chat", "raw"]),
        new_tokens=rng.randint(0, 99),
        temperature=rng.choice([0.0, 0.7, 1.0, 1e-3]),
        top_p=rng.choice([1.0, 0.95, 0.1]),
        seed=rng.choice([0, 1, 2**32 - 1]),
        batch=rng.randint(1, 64),
        dtype=rng.choice(["auto", "float32", "bfloat16", "float16"]),
    )
