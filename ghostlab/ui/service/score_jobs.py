"""Scores of a criterion for the block picker: those at hand, and jobs for others. No gradio here."""

from __future__ import annotations

from ghostlab.config import RunConfig
from ghostlab.errors import ConfigError
from ghostlab.jobs.store import Job
from ghostlab.lab.requests import ScoreRequest
from ghostlab.results.atlas import BlockScores, same_scores, scores_config, scores_from_atlas
from ghostlab.results.records import SelectionInfo
from ghostlab.ui.service import catalogue
from ghostlab.ui.service.service import Finding, Service, listeners


def queue_scores(service: Service, config: RunConfig, *, owner: str) -> str:
    """Queue the scores of a configuration's criterion; return the job's id.

    Raises:
        GhostlabError: If it cannot work here or too many jobs wait.
    """
    config = scores_config(config)
    if config.select is None:
        raise ConfigError("No criterion is chosen.", "Choose one of the list.")
    catalogue.check(config, service.settings)
    service.uploaded.check(config, owner)

    def work(job: Job[Finding]) -> Finding:
        return BlockScores(config, service.lab.call(ScoreRequest(config), listeners(job)))

    return service.jobs.submit("scores", config.key, work, owner, config.to_query())


def at_hand(
    service: Service, config: RunConfig, *, found: str, shown: str, mapped: str
) -> SelectionInfo | None:
    """The scores that a configuration's criterion gives, if this server has computed them for this page.

    Args:
        service: Holds the jobs and the examples.
        config: What the sidebar says now: scores of anything else are not these.
        found: Id of the page's latest scores, if any.
        shown: Id of the shown result; a run whose criterion chose has scores, too.
        mapped: Id of the shown block map; empty for the example's.
    """
    view = service.jobs.view(found) if found else None
    scoring = view.result if view else None
    if isinstance(scoring, BlockScores) and same_scores(scoring.config, config):
        return scoring.selection
    result = service.find(shown)
    if result is not None and result.selection is not None and same_scores(result.config, config):
        return result.selection
    atlas = service.find_atlas(mapped)
    return scores_from_atlas(atlas, config) if atlas is not None else None
