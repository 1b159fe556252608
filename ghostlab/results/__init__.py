"""What Ghostlab finds: plain frozen records, their files and their statistics; no torch."""

from ghostlab.results.atlas import Atlas
from ghostlab.results.compare import compare
from ghostlab.results.run import RunResult
from ghostlab.results.zeroshot import ZeroShot

__all__ = ["Atlas", "RunResult", "ZeroShot", "compare"]
