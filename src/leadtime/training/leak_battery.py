"""A forecaster data set and the windows it was made from → does anything in it know the future? Findings, by name.

Six probes: the declared columns are the columns; stored rows equal rows made again; the future made up anew moves no
row before it; no feature alone beats all others; shuffled labels are not predictable; a random column finds nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leadtime.domain.borg import primary_horizon_min
from leadtime.domain.errors import BadTrace
from leadtime.risk.features import BESIDE, KEY, OUTCOME, empty_context, features_of
from leadtime.risk.leaks import Finding, Probe, Tables, hashes_upto, moved_by_the_future
from leadtime.training.context_tables import read_context
from leadtime.training.dataset import read_dataset
from leadtime.training.forecaster_dataset import jobs_of, read_forecaster, settings_of
from leadtime.training.forecaster_part import FeatureJob, finished, labelled_features
from leadtime.training.leak_learning import learn
from leadtime.training.progress import Progress, silent

LEAK_SCHEMA = "leadtime.borg-leak/1"
ROWS_AGAIN = 100_000  # of the first part, made again and compared
ROWS_OF_WORLD = 40_000  # whose future is made up anew
INSTANTS = (0.2, 0.5, 0.8)  # quantiles of the windows' ends
STEPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakReport:
    """What the battery found. ``probes``: numbers by probe, as JSON holds them."""

    profile: str
    horizon_min: int
    data_hash: str
    findings: tuple[Finding, ...]
    probes: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {
            "schema": LEAK_SCHEMA, "profile": self.profile, "horizon_min": self.horizon_min,
            "data_hash": self.data_hash, "passed": not self.findings,
            "findings": [
                {"probe": one.probe.value, "feature": one.feature, "sentence": one.sentence} for one in self.findings
            ],
            "probes": dict(self.probes),
        }  # fmt: skip


def run_battery(
    features: Path, windows: Path, *, horizon_min: int | None = None, seed: int = 0, progress: Progress = silent
) -> LeakReport:
    """All probes on the data set in ``features``, made from ``windows``. Raises BadTrace where either is unfinished.

    ``horizon_min``: of the learning probes; 15 min, or the shortest there is, if left out. Looks at samples of
    bounded size, so it takes about a minute whatever the size of the data.
    """
    manifest, source = read_forecaster(features), read_dataset(windows)
    settings = settings_of(manifest)
    jobs = [job for cell in manifest["cells"] for job in jobs_of(source, cell, windows, features, settings)]
    if not jobs:
        raise BadTrace(
            "features-absent", f"examining {features}", "it holds no partition", "make the features again"
        )  # fmt: skip
    minutes = _horizon(settings.horizons_min, horizon_min)
    names = [str(name) for name in manifest["features"]]
    parts = [features / part["path"] for part in manifest["partitions"]]
    findings = _declared(manifest, parts, names)
    progress("leak probes", 1, STEPS, "probes")
    declared = [feature.name for feature in features_of(settings.profile)]
    again, wrong = _reproduced(jobs, declared)
    progress("leak probes", 2, STEPS, "probes")
    future, moved = _future(jobs[0], seed)
    progress("leak probes", 3, STEPS, "probes")
    there = [name for name in _numbers(parts[0]) if name not in _beside(settings.horizons_min)]
    learned = learn(parts, there, horizon_min=minutes, seed=seed)
    progress("leak probes", STEPS, STEPS, "probes")
    return LeakReport(
        profile=settings.profile.value, horizon_min=minutes, data_hash=str(manifest["data_hash"]),
        findings=(*findings, *wrong, *moved, *learned.findings),
        probes={"reproduced": again, "future": future, "learning": learned.to_json()},
    )  # fmt: skip


def _horizon(there: Sequence[int], wanted: int | None) -> int:
    if wanted is None:
        return primary_horizon_min(there)
    if wanted not in there:
        raise BadTrace(
            "features-no-horizon", "examining features", f"there are no labels for {wanted} min",
            f"choose from {', '.join(map(str, there))}",
        )  # fmt: skip
    return wanted


def _beside(horizons: Sequence[int]) -> set[str]:
    labelled = {f"{kind}_{m}" for m in horizons for kind in ("y", "excluded")}
    return {*KEY, *BESIDE, *OUTCOME, *labelled}


def _numbers(part: Path) -> list[str]:
    return [name for name, dtype in pl.read_parquet_schema(part).items() if dtype.is_numeric()]


def _declared(manifest: Mapping[str, Any], parts: Sequence[Path], names: Sequence[str]) -> list[Finding]:
    """Columns without a declaration, declarations without a column, in the manifest and in every part."""
    settings = settings_of(manifest)
    declared = {feature.name for feature in features_of(settings.profile)}
    seen = set(names)
    for part in parts:
        seen |= set(pl.read_parquet_schema(part)) - _beside(settings.horizons_min)
    findings = [
        Finding(probe=Probe.DECLARED, feature=name, sentence="a column that no declaration makes; leave it out")
        for name in sorted(seen - declared)
    ]
    return findings + [
        Finding(probe=Probe.DECLARED, feature=name, sentence="declared, and not among the columns; make them again")
        for name in sorted(declared - set(names))
    ]


def _reproduced(jobs: Sequence[FeatureJob], names: Sequence[str]) -> tuple[dict[str, Any], list[Finding]]:
    """The first part's first collections, made again from the windows, against what is stored."""
    job = jobs[0]
    stale = [each for each in jobs if finished(each) is None]
    findings = [
        Finding(
            probe=Probe.REPRODUCED, feature=None,
            sentence=f"{each.part} of cell {each.cell} was made from other windows or settings; make it again",
        )
        for each in stale
    ]  # fmt: skip
    world = _first_collections(job, ROWS_AGAIN)
    context = empty_context() if job.context is None else read_context(job.context, world.windows)
    made = labelled_features(world.windows, world.events, context, job)
    stored = pl.read_parquet(job.out / f"{job.part}.parquet")
    keys = [name for name in KEY if name != "cell"]
    there = [name for name in names if name in stored.columns]
    both = made.select(*keys, *there).join(stored.select(keys), on=keys, how="semi").sort(keys)
    kept = stored.join(world.windows.select("collection_id").unique(), on="collection_id", how="semi").sort(keys)
    latest = int(np.iinfo(np.int64).max)
    ours, theirs = hashes_upto(both, latest, there), hashes_upto(kept, latest, there)
    different = [name for name in there if ours[name] != theirs[name]]
    findings += [
        Finding(
            probe=Probe.REPRODUCED, feature=name,
            sentence=f"stored values of {job.part} of cell {job.cell} are not those its windows give; make them again",
        )
        for name in different
    ]  # fmt: skip
    return {"rows": both.height, "stored_rows": kept.height, "different": different}, findings


def _future(job: FeatureJob, seed: int) -> tuple[dict[str, Any], list[Finding]]:
    world = _first_collections(job, ROWS_OF_WORLD)
    ends = world.windows["end_time_us"].unique().sort()
    instants = sorted({int(ends[int(share * (len(ends) - 1))]) for share in INSTANTS}) if len(ends) else []
    moved = moved_by_the_future(world, instants, profile=job.settings.profile, seed=seed)
    findings = [
        Finding(
            probe=Probe.FUTURE, feature=name,
            sentence=f"rows up to p changed when everything after p was made up anew (p = {at[0] / 1e6:,.0f} s)",
        )
        for name, at in moved.items()
    ]  # fmt: skip
    features = {feature.name: list(moved.get(feature.name, ())) for feature in features_of(job.settings.profile)}
    return {"rows": world.windows.height, "instants_us": instants, "moved_at_us": features}, findings


def _first_collections(job: FeatureJob, rows: int) -> Tables:
    """The first whole collections of a part, up to ``rows`` rows (at least one collection), with the cell's tables."""
    path = job.windows / "windows" / f"{job.part}.parquet"
    sizes = (
        pl.scan_parquet(path).group_by("collection_id").len().sort("collection_id")
        .with_columns(upto=pl.col("len").cum_sum()).collect()
    )  # fmt: skip
    kept = sizes.filter((pl.col("upto") <= rows) | (pl.int_range(pl.len()) == 0)).select("collection_id")
    events = pl.scan_parquet(job.windows / "events" / f"{job.part}.parquet")
    windows = pl.scan_parquet(path).join(kept.lazy(), on="collection_id", how="semi", maintain_order="left")
    return Tables(
        windows=windows.collect(),
        events=events.join(kept.lazy(), on="collection_id", how="semi", maintain_order="left").collect(),
        collections=pl.read_parquet(job.windows / "collections.parquet"),
        machines=pl.read_parquet(job.windows / "machines.parquet"),
    )  # fmt: skip
