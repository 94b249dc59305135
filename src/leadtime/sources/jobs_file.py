"""A file and whose accounts it holds → canonical jobs."""

from pathlib import Path

from leadtime.domain.jobs import JobFormat
from leadtime.sources.jobs_frame import Jobs, bad_jobs
from leadtime.sources.jobs_mit import read_mit
from leadtime.sources.jobs_openb import read_openb
from leadtime.sources.jobs_sacct import read_sacct


def read_jobs(path: Path, form: JobFormat, *, time_zone: str | None = None) -> Jobs:
    """Read ``path``. ``time_zone`` is for sacct text alone: the other formats count seconds.

    Raises BadTrace: jobs-unreadable for an absent file, jobs-time-zone for a zone that has no use, and what the
    format's reader raises.
    """
    if not path.is_file():
        raise bad_jobs("jobs-unreadable", path, "there is no such file", "name the exported file")
    if form is JobFormat.SACCT:
        return read_sacct(path, time_zone)
    if time_zone is not None:
        wrong = f"a time zone was named ({time_zone}), but times of this format are counted seconds"
        raise bad_jobs("jobs-time-zone", path, wrong, "leave --time-zone out")
    return read_mit(path) if form is JobFormat.MIT else read_openb(path)
