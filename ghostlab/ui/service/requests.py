"""What a page can ask to be computed: each request is checked here, once, and becomes a job.

The first arguments are always the service and whose visitor asks, so that a tab can wire
``partial(generate, service)`` to a button.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from urllib.parse import urlencode

from ghostlab import checks
from ghostlab.config import FIELDS, PromptFormat, RunConfig
from ghostlab.cut import parse_cut
from ghostlab.errors import ConfigError, CutError
from ghostlab.evaluation.tasks import ON_THE_HUB, SHIPPED, check_limit, require_harness
from ghostlab.jobs.record import Job
from ghostlab.lab import requests
from ghostlab.lab.requests import (
    AtlasRequest,
    EvaluateRequest,
    GenerateRequest,
    ProbeRequest,
    RunRequest,
    ScoreRequest,
    Work,
)
from ghostlab.model import outline
from ghostlab.results.atlas import BlockScores, atlas_config, parse_lengths, scores_config
from ghostlab.results.generation import Generation
from ghostlab.results.probe import Alteration
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import SUITES, parse_tasks
from ghostlab.settings import Settings
from ghostlab.ui.service.service import Finding, Service

TASKS = [*SUITES, *sorted({**SHIPPED, **ON_THE_HUB})]
"""Suites and tasks that the app offers."""
MOST_QUESTIONS = 100_000
MOST_QUESTIONS_PUBLIC = 400
"""Questions of all tasks together that a job may ask."""
RERUN = 0.8
"""Share of the progress bar for a run that has to be computed again first."""


def check(config: RunConfig, settings: Settings) -> None:
    """Raise the error of a run that cannot work, as far as it can be told before anything is loaded.

    Raises:
        ConfigError: If a setting, an operator, a criterion or an option of these is wrong.
        CutError: If the cut does not fit a model whose depth is known before it is loaded.
    """
    requests.check(config, settings)
    known = outline.depth(config.model, config.revision, settings)
    if known is None:
        return
    if config.drop is not None:
        parse_cut(config.drop).check(known)
    elif not 0 < config.count < known:
        raise CutError(
            f"{config.count} of {known} layers cannot be dropped.", f"Choose a count from 1 to {known - 1}."
        )


def run(service: Service, owner: str, config: RunConfig) -> str:
    """Queue a run; return the job's id.

    Raises:
        GhostlabError: If it cannot work here or too many jobs wait.
    """
    return _measure(service, owner, "run", config, lambda work: service.lab.call(RunRequest(config), work))


def atlas(service: Service, owner: str, config: RunConfig, lengths: str) -> str:
    """Queue an atlas of all blocks of ``lengths``, for example ``1-10``; raises as :func:`run`."""
    request = AtlasRequest(atlas_config(config), parse_lengths(lengths))
    key, about = f":{request.lengths}", f"&{urlencode({'lengths': lengths})}"
    return _measure(
        service, owner, "atlas", request.config, lambda work: service.lab.call(request, work), key, about
    )


def scores(service: Service, owner: str, config: RunConfig) -> str:
    """Queue the scores of a configuration's criterion; raises as :func:`run`."""
    config = scores_config(config)
    if config.select is None:
        raise ConfigError("No criterion is chosen.", "Choose one of the list.")

    def score(work: Work) -> Finding:
        return BlockScores(config, service.lab.call(ScoreRequest(config), work))

    return _measure(service, owner, "scores", config, score)


def _measure(  # noqa: PLR0917 - the last two are parts of names
    service: Service,
    owner: str,
    kind: str,
    config: RunConfig,
    do: Callable[[Work], Finding],
    key: str = "",
    about: str = "",
) -> str:
    """Check a configuration and queue work on it; ``key`` and ``about`` follow those of the configuration."""
    _check(service, owner, config)

    def work(job: Job[Finding]) -> Finding:
        return do(_listeners(job))

    return service.jobs.submit(kind, config.key + key, work, owner, config.to_query() + about)


def _check(service: Service, owner: str, config: RunConfig) -> None:
    check(config, service.settings)
    service.uploads.check(config, owner)


def generate(  # noqa: PLR0917 - the tab's controls, in order
    service: Service,
    owner: str,
    shown: str,
    prompt: str,
    prompt_format: PromptFormat,
    new_tokens: float | None,
    temperature: float | None,
    top_p: float | None,
) -> str:
    """Queue the continuation of a prompt by every variant of a shown result; raises as :func:`run`.

    A result without operators (the example) is computed again first.
    """
    result = service.result(shown)
    changes = {"new_tokens": new_tokens, "temperature": temperature, "top_p": top_p}
    config = RunConfig.from_dict(
        {**result.config.to_dict(), "prompt": prompt, "prompt_format": prompt_format, **changes}
    )
    if config.new_tokens < 1:
        raise ConfigError(f"'{FIELDS['new_tokens'].label}' is 0.", "Generate at least 1 token.", "new_tokens")
    if not result.operators:
        return run(service, owner, config)
    checks.check(config, service.settings)
    silent = replace(result, config=config, generations=[])

    def work(job: Job[Finding]) -> Finding:
        def keep(generations: Sequence[Generation]) -> None:
            job.keep(replace(silent, generations=list(generations)))

        keep([])
        listeners = replace(_listeners(job), on_generations=keep)
        return replace(silent, generations=service.lab.call(GenerateRequest(silent), listeners))

    return service.jobs.submit("generate", f"{shown}:{config.key}", work, owner, config.to_query())


def probe(
    service: Service, owner: str, shown: str, label: str | None, alterations: Sequence[Alteration]
) -> str:
    """Queue the measurement of altered maps of a shown result, of the first recovery that has one if none is
    named; raises as :func:`run`."""
    result = service.result(shown)
    known = [run.label for run in result.runs if run.operators]
    if not known or label not in {*known, None}:
        raise ConfigError(
            f"{label or 'This run'} has no linear map to alter.",
            f"Choose {' or '.join(known)}." if known else "Run a recovery that has one, for example ghost.",
        )
    width, chosen = result.model.hidden_size, label or known[0]
    for alteration in alterations:
        alteration.check(width)
    altered = tuple(replace(a, rank=None) if a.rank == width else a for a in alterations)

    def measure(ready: RunResult, listeners: Work) -> RunResult:
        probes = service.lab.call(ProbeRequest(ready, chosen, altered), listeners)
        again = {(probe.label, probe.alteration) for probe in probes}
        earlier = [probe for probe in ready.probes if (probe.label, probe.alteration) not in again]
        return replace(ready, probes=[*earlier, *probes])

    return _extend(service, owner, "probe", shown, key=f"{chosen}:{altered}", measure=measure)


def tasks(  # noqa: PLR0917 - the tab's controls, in order
    service: Service, owner: str, shown: str, names: Sequence[str] | None, limit: float | None, hub: bool
) -> str:
    """Queue zero-shot tasks, ``limit`` questions of each, for every variant of a shown result; of the papers'
    splits if they come from the hub. Raises as :func:`run`."""
    require_harness()
    unknown = [name for name in names or () if name not in TASKS]
    if unknown:
        raise ConfigError(f"'{unknown[0]}' is not offered here.", f"Choose from {', '.join(TASKS)}.")
    if hub and not service.settings.limits.hub_models:
        raise ConfigError("This server reads no data from the hub.", "Use the installed tasks.")
    if limit is None:
        raise ConfigError("The number of questions is empty.", "Give one, for example 100.")
    parsed, most = parse_tasks(names or ()), int(limit)
    check_limit(most)
    allowed = MOST_QUESTIONS if service.settings.profile == "local" else MOST_QUESTIONS_PUBLIC
    if len(parsed) * most > allowed:
        raise ConfigError(
            f"{len(parsed)} tasks of {most} questions are more than this server allows ({allowed:,} in all).",
            "Choose fewer tasks or fewer questions.",
        )

    def evaluate(ready: RunResult, listeners: Work) -> RunResult:
        request = EvaluateRequest(ready, tuple(parsed), most, hub)
        return replace(ready, zero_shot=service.lab.call(request, listeners))

    key = f"{','.join(parsed)}:{most}:{'hub' if hub else 'installed'}"
    return _extend(service, owner, "tasks", shown, key=key, measure=evaluate)


def _extend(
    service: Service,
    owner: str,
    kind: str,
    shown: str,
    *,
    key: str,
    measure: Callable[[RunResult, Work], RunResult],
) -> str:
    """Queue a measurement that is added to a shown result, whose figures stay as they are.

    A result without operators (the example) is computed again first.
    """
    result = service.result(shown)
    if not result.operators:
        _check(service, owner, result.config)

    def work(job: Job[Finding]) -> Finding:
        ready, listeners = result, _listeners(job)
        if not result.operators:
            silent = replace(listeners, on_text=None).part(0.0, RERUN)
            ready, listeners = service.lab.call(RunRequest(result.config), silent), listeners.part(RERUN, 1.0)
            job.keep(ready)
        return measure(ready, replace(listeners, on_text=None))

    return service.jobs.submit(kind, f"{shown}:{key}", work, owner, result.config.to_query())


def _listeners(job: Job[Finding]) -> Work:
    return Work(job.progress, job.cancel, on_result=job.keep, on_text=job.text)
