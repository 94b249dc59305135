"""One part of the windows → one part of the forecaster data set: labels, features, manifest; the unit of resume.

Collections are taken together until they have CHUNK_ROWS rows, so memory is bounded by the part as it is read and by
the largest collection, not by the number of parts.
"""

import hashlib
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Condition

import numpy as np
import polars as pl

from leadtime.domain.borg import EventType
from leadtime.risk.features import BESIDE, KEY, OUTCOME, Context, Profile, empty_context, feature_frame, features_of
from leadtime.risk.labels import labels
from leadtime.training.context_tables import narrowed, read_context
from leadtime.training.dataset_digest import combined, digest
from leadtime.training.manifest import disk_errors, file_sha256, read_json, staged_beside, write_json
from leadtime.training.partition import ROW_GROUP_ROWS

PART_SCHEMA = "leadtime.borg-forecaster-part/2"
CHUNK_ROWS = 125_000
CHUNKS_AT_ONCE = 2  # array work leaves the interpreter's lock, so two chunks fill two cores
ROWS_AT_ONCE = 3 * CHUNK_ROWS  # of both; a chunk of one large collection is made alone
LABEL_COLUMNS = ("is_running", *OUTCOME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What decides the bytes of a part, beside its windows. ``delay_us``: alerts stand at p + delay."""

    profile: Profile
    horizons_min: tuple[int, ...]
    failure_types: tuple[EventType, ...]
    delay_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureJob:
    """``windows``: the cell's folder of make-dataset; ``context``: its tables, None where the profile needs none."""

    cell: str
    part: str
    windows: Path
    out: Path
    context: Path | None
    inputs: str
    observed_until_us: int
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReport:
    """What one part holds. ``left_out``: rows that no horizon can use, by the shortest horizon's reason.

    By horizon: ``positives``, and ``excluded`` by reason, of all rows in (labelled + excluded = rows_in). ``missing``:
    nulls by feature.
    """

    schema: str
    cell: str
    part: str
    inputs: str
    rows_in: int
    rows: int
    left_out: Mapping[str, int]
    positives: Mapping[str, int]
    excluded: Mapping[str, Mapping[str, int]]
    missing: Mapping[str, int]
    digest: int
    sha256: str


def report_path(job: FeatureJob) -> Path:
    """Where the part says that it is finished."""
    return job.out / f"{job.part}.json"


def finished(job: FeatureJob) -> PartReport | None:
    """The part's report where it is finished and of the same inputs; else None."""
    content = read_json(report_path(job))
    if content is None or content.get("schema") != PART_SCHEMA or content.get("inputs") != job.inputs:
        return None
    return PartReport(**content) if (job.out / f"{job.part}.parquet").is_file() else None


def build_part(job: FeatureJob) -> PartReport:
    """Make one part and write it, manifest last; at once done where it is finished. Raises DependencyFailed."""
    with disk_errors(f"making features of {job.part} of cell {job.cell}", job.out):
        report = finished(job)
        if report is None:
            report_path(job).unlink(missing_ok=True)
            report = _build(job)
            write_json(report_path(job), asdict(report))
        return report


def _build(job: FeatureJob) -> PartReport:
    windows = pl.read_parquet(job.windows / "windows" / f"{job.part}.parquet")
    events = pl.read_parquet(job.windows / "events" / f"{job.part}.parquet")
    context = empty_context() if job.context is None else read_context(job.context, windows)
    work = job.out / f".{job.part}.work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    tally, digests = Counter[str](), []
    rows_in = windows.height
    room = _Room(ROWS_AT_ONCE)

    def made(chunk: _Collections) -> _Chunk:
        with room.for_rows(chunk.windows.height):
            return _write_chunk(chunk, context, job, work)

    with ThreadPoolExecutor(CHUNKS_AT_ONCE) as pool:
        for found in pool.map(made, _chunks(windows, events)):
            tally.update(found.counts)
            digests.append(found.digest)
    path = job.out / f"{job.part}.parquet"
    _join_chunks(work, path)
    shutil.rmtree(work)
    return _report(job, rows_in, tally, combined(digests), file_sha256(path))


class _Room:
    """Lets chunks in while their rows together are at most ``rows``; a larger one alone."""

    def __init__(self, rows: int) -> None:
        self._rows = self._free = rows
        self._changed = Condition()

    @contextmanager
    def for_rows(self, wanted: int) -> Iterator[None]:
        """Wait for room, and hold it."""
        taken = min(wanted, self._rows)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= taken)
            self._free -= taken
        try:
            yield
        finally:
            with self._changed:
                self._free += taken
                self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class _Collections:
    """Some whole collections of a part."""

    number: int
    windows: pl.DataFrame
    events: pl.DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunk:
    counts: Mapping[str, int]
    digest: int


def _write_chunk(chunk: _Collections, context: Context, job: FeatureJob, work: Path) -> _Chunk:
    """One chunk's rows with a label, written uncompressed beside the others."""
    made = labelled_features(chunk.windows, chunk.events, narrowed(context, chunk.windows), job)
    labelled = pl.any_horizontal(pl.col(f"y_{m}").is_not_null() for m in job.settings.horizons_min)
    kept = made.filter(labelled)
    left = made.lazy().filter(~labelled).select(f"excluded_{m}" for m in job.settings.horizons_min).collect()
    counts = _counts(kept, left, job.settings)
    kept.write_ipc(work / f"chunk-{chunk.number:05d}.arrow")
    return _Chunk(counts=counts, digest=_digest(kept, [feature.name for feature in features_of(job.settings.profile)]))


def _digest(rows: pl.DataFrame, features: list[str]) -> int:
    """``digest`` of the rows, their features first summed up to one number a row, weighted by name."""
    total, product = np.zeros(rows.height, dtype=np.uint64), np.empty(rows.height, dtype=np.uint64)
    for name in features:
        weight = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") | 1
        values = rows[name].fill_null(np.nan).to_numpy()  # to_numpy alone gives the same bits, but slowly
        np.multiply(values.view(np.uint32), np.uint64(weight), out=product)
        total += product
    return digest(rows.drop(features).with_columns(pl.Series("features", total)))


def labelled_features(
    rows: pl.DataFrame, happened: pl.DataFrame, context: Context, job: FeatureJob
) -> pl.DataFrame:  # fmt: skip
    """Windows and events of whole collections → the columns of docs/designs/0015 "Features", every row."""
    settings = job.settings
    with_cell = rows.lazy().with_columns(cell=pl.lit(job.cell))
    made = feature_frame(with_cell, happened.lazy(), context, profile=settings.profile).collect()
    known = labels(
        rows.lazy().select("end_time_us", *LABEL_COLUMNS), horizons_min=settings.horizons_min,
        failure_types=frozenset(settings.failure_types), observed_until_us=job.observed_until_us,
        delay_us=settings.delay_us,
    ).drop("end_time_us", "is_running").collect()  # fmt: skip
    before = [*KEY, *BESIDE]
    names = [f"{kind}_{m}" for m in settings.horizons_min for kind in ("y", "excluded")]
    features = [feature.name for feature in features_of(settings.profile)]
    return made.select(before).hstack(known.select(*names, *OUTCOME)).hstack(made.select(features))


def _chunks(windows: pl.DataFrame, events: pl.DataFrame) -> Iterator[_Collections]:
    """Whole collections, about CHUNK_ROWS rows at a time, in order; one without rows where there are no windows."""
    ids = windows["collection_id"].rle().struct.unnest()
    ends, values = ids["len"].cum_sum().to_list(), ids["value"].to_list()
    if not values:
        yield _Collections(0, windows, events.clear())
    start, first, number = 0, 0, 0
    for place, end in enumerate(ends):
        if end - start >= CHUNK_ROWS or place == len(ends) - 1:
            between = pl.col("collection_id").is_between(values[first], values[place])
            yield _Collections(number, windows.slice(start, end - start), events.filter(between))
            start, first, number = end, place + 1, number + 1


def _join_chunks(work: Path, path: Path) -> None:
    staged = staged_beside(path)
    pl.scan_ipc(sorted(work.glob("chunk-*.arrow"))).sink_parquet(
        staged, compression="zstd", compression_level=1, row_group_size=ROW_GROUP_ROWS, statistics=True,
        maintain_order=True,
    )  # fmt: skip
    staged.replace(path)


def _counts(kept: pl.DataFrame, left: pl.DataFrame, settings: Settings) -> dict[str, int]:
    """Sums of one chunk under flat names: rows, left:<reason>, y:<m>, out:<m>:<reason>, null:<feature>."""
    counts = {"rows": kept.height}
    for reason, rows in left.group_by(f"excluded_{min(settings.horizons_min)}").len().rows():
        counts[f"left:{reason}"] = rows
    for m in settings.horizons_min:
        counts[f"y:{m}"] = int(kept[f"y_{m}"].sum() or 0)
        reasons = pl.concat([kept[f"excluded_{m}"], left[f"excluded_{m}"]]).drop_nulls()
        for reason, rows in reasons.value_counts().rows():
            counts[f"out:{m}:{reason}"] = rows
    for feature in features_of(settings.profile):
        counts[f"null:{feature.name}"] = kept[feature.name].null_count()
    return counts


def _report(job: FeatureJob, rows_in: int, tally: Counter[str], row_digest: int, sha256: str) -> PartReport:
    horizons = [str(m) for m in job.settings.horizons_min]

    def below(prefix: str) -> dict[str, int]:
        return {name.removeprefix(prefix): tally[name] for name in sorted(tally) if name.startswith(prefix)}

    return PartReport(
        schema=PART_SCHEMA, cell=job.cell, part=job.part, inputs=job.inputs, rows_in=rows_in, rows=tally["rows"],
        left_out=below("left:"), positives={m: tally[f"y:{m}"] for m in horizons},
        excluded={m: below(f"out:{m}:") for m in horizons},
        missing={feature.name: tally[f"null:{feature.name}"] for feature in features_of(job.settings.profile)},
        digest=row_digest, sha256=sha256,
    )  # fmt: skip
