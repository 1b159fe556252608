"""Jobs that measure altered maps of a shown result, without a browser. No gradio here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ghostlab.errors import ConfigError
from ghostlab.jobs.store import Job
from ghostlab.lab.requests import ProbeRequest, RunRequest
from ghostlab.results.probe import Alteration
from ghostlab.results.run import RunResult
from ghostlab.ui.service.service import Finding, Service, listeners

RERUN = 0.8
"""Share of the progress bar for a run that has to be made again first."""


def queue_probe(
    service: Service, shown: str, label: str | None, asked: Sequence[Alteration], *, owner: str
) -> str:
    """Queue the measurement of altered maps of a shown result; return the job's id.

    A result without operators (the example) is run again first. The job's result is the shown one with the
    probes added to it, so that a page that shows it keeps its figures.

    Args:
        service: Holds the results and the jobs.
        shown: Id of the shown result.
        label: The recovery; ``None`` for the first that has a map.
        asked: What to make of its maps.
        owner: Who asks.

    Raises:
        GhostlabError: If it cannot work or the result is no longer here.
    """
    result = service.result(shown)
    known = [run.label for run in result.runs if run.operators]
    if not known or label not in {*known, None}:
        raise ConfigError(
            f"{label or 'This run'} has no linear map to alter.",
            f"Choose {' or '.join(known)}." if known else "Run a recovery that has one, for example ghost.",
        )
    width = result.model.hidden_size
    for how in asked:
        how.check(width)
    asked = [replace(how, rank=None) if how.rank == width else how for how in asked]
    chosen, about = label or known[0], result.config.to_query()

    if not result.operators:
        service.uploaded.check(result.config, owner)  # it will be run again, and reads its texts

    def work(job: Job[Finding]) -> RunResult:
        ready, done = result, 0.0
        if not result.operators:
            ready, done = run_again(service, job, result), RERUN
        request = ProbeRequest(ready, chosen, tuple(asked))
        found = service.lab.call(request, replace(listeners(job), on_text=None).part(done, 1.0))
        fresh = {(probe.label, probe.alteration) for probe in found}
        earlier = [probe for probe in ready.probes if (probe.label, probe.alteration) not in fresh]
        return replace(ready, probes=[*earlier, *found])

    return service.jobs.submit("probe", f"{shown}:{chosen}:{tuple(asked)}", work, owner, about)


def run_again(service: Service, job: Job[Finding], result: RunResult) -> RunResult:
    """Run a result without operators again, so that there are some; takes :data:`RERUN` of the bar."""
    work = replace(listeners(job), on_text=None).part(0.0, RERUN)
    ready = service.lab.call(RunRequest(result.config), work)
    job.keep(ready)
    return ready
