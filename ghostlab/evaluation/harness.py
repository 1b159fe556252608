"""Our models as a model of lm-evaluation-harness: one answers for an original and all its variants."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from lm_eval.models.huggingface import HFLM

from ghostlab.evaluation.branches import Answer, Row, score_rows
from ghostlab.model.model import Model
from ghostlab.progress import SILENT, Progress

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance

Encoded = tuple[tuple[str, str], list[int], list[int]]
"""A context and a continuation as text, and the tokens of both as the harness cuts them."""


class Answerer(HFLM):  # type: ignore[misc]
    """Answers the harness's requests for several models that share their beginnings.

    Tokens, BOS and truncation are the harness's own. The first time that a request comes it is answered for
    all models at once, see :func:`~ghostlab.evaluation.branches.score_rows`; later it is looked up.

    Args:
        original: What the variants are made from.
        variants: Models of the same tokenizer.

    Attributes:
        current: Whose answers are given: 0 for the original, then the variants in order.
    """

    def __init__(self, original: Model, variants: Sequence[Model], progress: Progress = SILENT) -> None:
        # the harness gives tokenizers without a padding token one: ours stays as it is
        super().__init__(pretrained=original.hf, tokenizer=deepcopy(original.tokenizer))
        self.original = original
        self.variants = list(variants)
        self.progress = progress
        self.current = 0
        self._answers: dict[tuple[str, ...], list[Answer]] = {}
        self._owners: list[tuple[Any, Any]] = []

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = True) -> list[Answer]:
        """Answers of the current model, each (log-likelihood, whether greedy decoding would say it)."""
        fresh = {request.args: request for request in requests if request.args not in self._answers}
        if fresh:
            self._owners = [(request.task_name, request.doc_id) for request in fresh.values()]
            super().loglikelihood(list(fresh.values()), disable_tqdm=True)
        return [self._answers[request.args][self.current] for request in requests]

    def _loglikelihood_tokens(self, requests: list[Encoded], **_: Any) -> list[Answer]:
        """Answer encoded requests for all models; gives those of the original back."""
        longest = self.max_length + 1  # too long ones lose their beginning
        rows = [
            Row(tuple((context + continuation)[-longest:]), len(continuation))
            for _, context, continuation in requests
        ]
        columns = score_rows(self.original, self.variants, rows, self._owners, self.progress)
        for (text, _, _), *answers in zip(requests, *columns, strict=True):
            self._answers[text] = answers
        return columns[0]
