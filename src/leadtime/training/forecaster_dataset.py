"""``make_forecaster_dataset``: windows → labels, exclusions and features in one profile, and ``forecaster.json`` last.

Every part of the windows becomes a part of the features, where the executor says. An interrupted run, run again, keeps
what is finished and leaves the bytes of an uninterrupted one.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leadtime.domain.borg import HORIZONS_MIN, EventType
from leadtime.domain.errors import BadTrace
from leadtime.risk.features import Profile, features_of
from leadtime.risk.features.dictionary import dictionary, page
from leadtime.training.check import require_passed
from leadtime.training.context_tables import build_context
from leadtime.training.dataset import read_dataset
from leadtime.training.dataset_cell import read_cell
from leadtime.training.dataset_digest import combined
from leadtime.training.executor import Executor, Local
from leadtime.training.folder_lock import sole_writer
from leadtime.training.forecaster_part import FeatureJob, PartReport, Settings, build_part, finished
from leadtime.training.manifest import disk_errors, fingerprint, read_json, staged_beside, write_json
from leadtime.training.progress import Progress, silent

FORECASTER = "forecaster.json"
FORECASTER_SCHEMA = "leadtime.borg-forecaster/1"
BUILDER = 1  # counts up when features or labels come out otherwise
HASH_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecasterDataset:
    """A finished forecaster data set. ``manifest``: what stands in forecaster.json; ``kept``: parts not made again."""

    folder: Path
    manifest: Mapping[str, Any]
    kept: int

    @property
    def rows(self) -> int:
        """Rows in all."""
        return int(self.manifest["rows"])


def make_forecaster_dataset(
    windows: Path,
    out: Path,
    *,
    profile: Profile = Profile.BASELINE,
    cells: Sequence[str] | None = None,
    horizons_min: Sequence[int] = HORIZONS_MIN,
    failure_types: Collection[EventType] = (EventType.FAIL,),
    delay_us: int = 0,
    allow: Collection[str] = (),
    executor: Executor | None = None,
    progress: Progress = silent,
) -> ForecasterDataset:
    """The folder make-dataset wrote → ``out`` as docs/designs/0015 lays it out.

    ``horizons_min``: minutes, at least 1; ``failure_types``: what counts as y = 1; ``delay_us``: labels count from
    p + delay. ``allow`` names failed gates that are accepted. Raises BadTrace where the windows are unfinished, lack a
    cell or failed a gate, or another run writes into ``out``; DependencyFailed for a full disk. Finished parts are kept
    in either case.
    """
    source = read_dataset(windows)
    _refuse_same(windows, out)
    require_passed(source, doing=f"making features of {windows}", allow=allow)
    settings = Settings(
        profile=profile, horizons_min=tuple(sorted(set(horizons_min))),
        failure_types=tuple(sorted(set(failure_types))), delay_us=delay_us,
    )  # fmt: skip
    run = executor or Local()
    with disk_errors(f"writing {out}", out), sole_writer(out, doing=f"making features of {windows}"):
        jobs = [job for cell in _cells(source, cells) for job in jobs_of(source, cell, windows, out, settings)]
        kept = sum(finished(job) is not None for job in jobs)
        if kept < len(jobs):
            (out / FORECASTER).unlink(missing_ok=True)
        _contexts(jobs, run, progress)
        reports = _run(jobs, run, progress)
        _remove_others(out, jobs)
        manifest = _manifest(source, settings, reports, allow)
        _write_dictionary(out, profile)
        write_json(out / FORECASTER, manifest)
    return ForecasterDataset(folder=out, manifest=manifest, kept=kept)


def _refuse_same(windows: Path, out: Path) -> None:
    """Features beside windows would mix two data sets in one folder. Raises BadTrace."""
    if out.resolve() == windows.resolve():
        wrong = f"{out} is the folder of the windows"
        raise BadTrace("borg-out-inside", f"making features of {windows}", wrong, "name another folder with --out")


def settings_of(manifest: Mapping[str, Any]) -> Settings:
    """The settings a finished data set was made with."""
    return Settings(
        profile=Profile(manifest["profile"]), horizons_min=tuple(manifest["horizons_min"]),
        failure_types=tuple(EventType[name] for name in manifest["failure_types"]),
        delay_us=round(manifest["delay_s"] * 1e6),
    )  # fmt: skip


def read_forecaster(folder: Path) -> dict[str, Any]:
    """``forecaster.json`` of a finished data set. Raises BadTrace where there is none."""
    content = read_json(folder / FORECASTER)
    if content is None or content.get("schema") != FORECASTER_SCHEMA:
        raise BadTrace(
            "features-absent", f"reading the features in {folder}",
            f"there is no {FORECASTER} of {FORECASTER_SCHEMA}",
            "name the folder 'leadtime borg make-forecaster-dataset' wrote, and run that to its end",
        )  # fmt: skip
    return content


def _cells(source: Mapping[str, Any], wanted: Sequence[str] | None) -> list[str]:
    there = [str(cell) for cell in source["cells"]]
    if absent := [cell for cell in wanted or () if cell not in there]:
        raise BadTrace(
            "borg-no-such-cell", "making features", f"the windows hold no cell {', '.join(absent)}",
            f"they hold: {', '.join(there)}",
        )  # fmt: skip
    return [cell for cell in there if not wanted or cell in wanted]


def jobs_of(source: Mapping[str, Any], cell: str, windows: Path, out: Path, settings: Settings) -> list[FeatureJob]:
    """One a part. Its inputs: the part, for the advanced profile the whole cell, the settings, the declarations."""
    parts = source["partitions"][cell]
    names = [f"part-{part['partition']:04d}" for part in parts]
    digests = [[part["windows_digest"], part["events_digest"]] for part in parts]
    until = int(source["observed_until_us"][cell])
    declared = [[each.name, each.formula] for each in features_of(settings.profile)]
    shared = {
        "builder": BUILDER, "cell": cell, "until": until, "features": declared, "settings": asdict(settings),
        "whole_cell": [digests, _table_digests(windows, cell)] if settings.profile is Profile.ADVANCED else None,
    }  # fmt: skip
    context = out / "context" / f"cell={cell}" if settings.profile is Profile.ADVANCED else None
    return [
        FeatureJob(
            cell=cell, part=name, windows=windows / f"cell={cell}", out=out / f"cell={cell}", context=context,
            inputs=fingerprint({**shared, "part": own}), observed_until_us=until, settings=settings,
        )
        for name, own in zip(names, digests, strict=True)
    ]  # fmt: skip


def _table_digests(windows: Path, cell: str) -> list[list[Any]]:
    record = read_cell(windows, cell)
    return [] if record is None else [list(one) for one in record.table_digests]


def _contexts(jobs: Sequence[FeatureJob], run: Executor, progress: Progress) -> None:
    """The tables of every cell that has an unfinished part."""
    open_jobs = [job for job in jobs if job.context is not None and finished(job) is None]
    for folder in sorted({job.windows for job in open_jobs}):
        own = [job for job in jobs if job.windows == folder]
        inputs = fingerprint(sorted(job.inputs for job in own))
        context = own[0].context
        assert context is not None  # open jobs have one, and all parts of a cell share it
        build_context(folder, [job.part for job in own], context, inputs=inputs, run=run, note=progress)


def _run(jobs: Sequence[FeatureJob], run: Executor, progress: Progress) -> list[PartReport]:
    reports, rows = [], 0
    for report in run.results(build_part, jobs):
        reports.append(report)
        rows += report.rows_in
        progress("make features", rows, None if len(reports) < len(jobs) else rows)
    return sorted(reports, key=lambda report: (report.cell, report.part))


def _remove_others(out: Path, jobs: Sequence[FeatureJob]) -> None:
    """Parts of an earlier build that this one does not have: readers take whatever lies in the folder."""
    ours = {job.out / f"{job.part}{ending}" for job in jobs for ending in (".parquet", ".json")}
    for path in out.glob("cell=*/part-*"):
        if path not in ours:
            path.unlink()


def _write_dictionary(out: Path, profile: Profile) -> None:
    features = features_of(profile)
    write_json(out / "features.json", dictionary(features, profile))
    staged = staged_beside(out / "features.md")
    staged.write_text(page(features, profile), encoding="utf-8")
    staged.replace(out / "features.md")


def _manifest(
    source: Mapping[str, Any], settings: Settings, reports: Sequence[PartReport], allow: Collection[str]
) -> dict[str, Any]:
    """``forecaster.json``: neither times nor absolute paths."""
    cells = sorted({report.cell for report in reports})
    rows = {cell: combined([one.digest for one in reports if one.cell == cell]) for cell in cells}
    return {
        "schema": FORECASTER_SCHEMA,
        "profile": settings.profile.value,
        "horizons_min": list(settings.horizons_min),
        "failure_types": [kind.name for kind in settings.failure_types],
        "delay_s": settings.delay_us / 1e6,
        "features": [feature.name for feature in features_of(settings.profile)],
        "data_hash": fingerprint([FORECASTER_SCHEMA, asdict(settings), rows])[:HASH_DIGITS],
        "windows_data_hash": source["data_hash"],
        "cells": cells,
        "observed_until_us": {cell: source["observed_until_us"][cell] for cell in cells},
        **_sums(reports, settings),
        "by_cell": {cell: _sums([one for one in reports if one.cell == cell], settings) for cell in cells},
        "partitions": [
            {"path": f"cell={one.cell}/{one.part}.parquet", "rows": one.rows, "sha256": one.sha256} for one in reports
        ],
        "gates": source.get("gates", []),
        "allowed_gates": sorted({*source.get("allowed", ()), *allow}),
    }  # fmt: skip


def _sums(reports: Sequence[PartReport], settings: Settings) -> dict[str, Any]:
    """Rows, positives, exclusions and missing shares over some parts."""
    left: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    positives: Counter[str] = Counter()
    excluded: dict[str, Counter[str]] = {str(m): Counter() for m in settings.horizons_min}
    for report in reports:
        left.update(report.left_out)
        missing.update(report.missing)
        positives.update(report.positives)
        for m, reasons in report.excluded.items():
            excluded[m].update(reasons)
    rows = sum(report.rows for report in reports)
    return {
        "rows_in": sum(report.rows_in for report in reports),
        "rows": rows,
        "left_out": dict(sorted(left.items())),
        "positives": dict(positives),
        "excluded": {m: dict(sorted(reasons.items())) for m, reasons in excluded.items()},
        "missing_ratio": {name: round(count / rows, 6) if rows else 0.0 for name, count in missing.items()},
    }
