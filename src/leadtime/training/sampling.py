"""A folder of features → the rows a model learns from: every failure, and a stable sample of everything else.

Negatives are chosen by a hash of their key, so the choice depends on neither the order of rows nor the partitions; a
chosen negative counts 1/fraction times, a failure once. With these weights the sample has the data's own base rate, so
what is learned from it needs no other correction. Sampled rows lie in one float32 matrix of bounded size.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leadtime.domain.borg import MINUTE_US
from leadtime.domain.errors import BadTrace
from leadtime.risk.splits import unit_hash
from leadtime.training.dataset_digest import mixed
from leadtime.training.progress import Progress, silent

KEY = ("cell", "collection_id", "instance_index", "start_time_us", "end_time_us")
MANIFEST = "forecaster.json"
DICTIONARY = "features.json"
COLUMNS = 16  # read at a time: enough to keep the reader busy
EXCLUDED = -1  # a row without a label for this horizon
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSet:
    """A finished make-forecaster-dataset folder: its manifest, and what a model needs of it."""

    folder: Path
    manifest: Mapping[str, Any]
    features: tuple[str, ...]
    horizons_min: tuple[int, ...]
    partitions: tuple[Path, ...]  # sorted: cell, then number
    data_hash: str
    dictionary_hash: str  # SHA-256 of features.json

    @property
    def profile(self) -> str:
        """``baseline`` or ``advanced``."""
        return str(self.manifest.get("profile", "baseline"))

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells that have partitions here, sorted."""
        return tuple(sorted({path.parent.name.removeprefix("cell=") for path in self.partitions}))

    @property
    def reach_us(self) -> int:
        """How far behind a window's end a label looks: the longest horizon and the delay labels were made with."""
        return max(self.horizons_min) * MINUTE_US + round(1e6 * float(self.manifest.get("delay_s", 0.0)))

    def scan(self, path: Path) -> pl.LazyFrame:
        """One partition, not read yet."""
        return pl.scan_parquet(path)


def open_features(folder: Path) -> FeatureSet:
    """Read the manifest of ``folder``. Raises BadTrace where there is no finished data set."""
    doing = f"reading the features in {folder}"
    cure = "name the folder 'leadtime borg make-forecaster-dataset' wrote, and run that to its end"
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        features = tuple(str(name) for name in manifest["features"])
        horizons = tuple(sorted(int(m) for m in manifest.get("horizons_min", manifest.get("horizons"))))
    except FileNotFoundError:
        raise BadTrace("features-absent", doing, f"there is no {MANIFEST}", cure) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadTrace("features-broken", doing, f"{MANIFEST} cannot be used ({error})", cure) from None
    partitions = tuple(sorted(folder.glob("cell=*/part-*.parquet")))
    if not partitions or not features or not horizons:
        wrong = f"it names {len(partitions)} partitions, {len(features)} features, {len(horizons)} horizons"
        raise BadTrace("features-broken", doing, wrong, cure)
    dictionary = folder / DICTIONARY
    digest = hashlib.sha256(dictionary.read_bytes()).hexdigest() if dictionary.exists() else ""
    return FeatureSet(
        folder=folder, manifest=manifest, features=features, horizons_min=horizons, partitions=partitions,
        data_hash=str(manifest.get("data_hash", "")), dictionary_hash=digest,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Rows of one block. ``labels`` [rows, horizons] Int8: 1, 0 or EXCLUDED; ``chosen`` by its hash.

    ``collection``: a number for each (cell, collection), the unit of bootstrap; ``end_us``: the window's end p.
    """

    x: Array
    labels: Array
    chosen: Array
    collection: Array
    end_us: Array
    horizons_min: tuple[int, ...]
    fraction: float

    def rows(self, horizon_min: int, where: Array | None = None) -> "Rows":
        """What horizon ``horizon_min`` learns from: its failures, and its chosen negatives 1/fraction times each."""
        y = self.labels[:, self.horizons_min.index(horizon_min)]
        used = (y == 1) | ((y == 0) & self.chosen)
        if where is not None:
            used &= where
        index = np.flatnonzero(used)
        label = y[index].astype(np.float32)
        weight = np.where(label == 1, 1.0, 1.0 / self.fraction).astype(np.float32)
        return Rows(x=self.x, index=index, y=label, weight=weight, collection=self.collection[index])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows ``index`` of the matrix ``x`` (not copied) with labels and weights."""

    x: Array
    index: Array
    y: Array
    weight: Array
    collection: Array

    @property
    def positives(self) -> int:
        """Failures among them."""
        return int(self.y.sum())

    @property
    def base_rate(self) -> float:
        """Weighted share of failures: the data's own, whatever was sampled. 0 where there are no rows."""
        total = float(self.weight.sum(dtype=np.float64))
        return self.positives / total if total else 0.0


def key_hash(frame: pl.DataFrame, seed: int) -> Array:
    """A 64-bit hash of each row's key, the same on every machine and in every version (SplitMix64, Steele et al. 2014).

    On arrays: as one expression over five columns it would hold a thousand copies of itself.
    """
    names = frame["cell"].cast(pl.String)
    cells = {cell: int.from_bytes(hashlib.sha256(cell.encode()).digest()[:8], "little") for cell in names.unique()}
    state = mixed(names.replace_strict(cells, return_dtype=pl.UInt64).to_numpy() ^ np.uint64(seed % 2**64))
    for name in KEY[1:]:
        state = mixed(state ^ frame[name].cast(pl.Int64).to_numpy().view(np.uint64))
    return state


def labels_of(frame: pl.DataFrame, horizons_min: Sequence[int]) -> Array:
    """``y_<m>`` columns as Int8 [rows, horizons], EXCLUDED where null."""
    return np.column_stack([frame[f"y_{m}"].fill_null(EXCLUDED).to_numpy().astype(np.int8) for m in horizons_min])


def matrix_of(frame: pl.DataFrame, features: Sequence[str]) -> Array:
    """Float32 [rows, features], NaN where null, whatever the row count."""
    columns = frame.select(pl.col(name).cast(pl.Float32).fill_null(float("nan")) for name in features)
    return np.ascontiguousarray(columns.to_numpy().reshape(frame.height, len(features)), dtype=np.float32)


def count_negatives(data: FeatureSet, block: pl.Expr) -> int:
    """Rows of ``block`` that are a negative of some horizon."""
    labels = [pl.col(f"y_{m}") for m in data.horizons_min]
    counts = [
        data.scan(path).filter(block).select((pl.min_horizontal(labels) == 0).sum()).collect().item()
        for path in data.partitions
    ]
    return int(sum(counts))


def fraction_for(negatives: int, most: int) -> float:
    """Largest fraction that keeps about ``most`` of ``negatives`` rows; 1 keeps all."""
    return 1.0 if negatives <= most else most / negatives


def draw(
    data: FeatureSet, block: pl.Expr, *, fraction: float, seed: int, progress: Progress = silent, what: str = "reading"
) -> Sample:
    """Rows of ``block`` (a filter on key columns): all that fail within the longest horizon, the chosen rest.

    ``fraction`` in (0, 1]. Memory: 4 bytes x features a kept row, and some columns of one partition while it is read.
    """
    chosen_below = np.uint64(min(int(fraction * 2.0**64), 2**64 - 1)) if fraction < 1 else None
    keys: list[_Keys] = []
    for number, path in enumerate(data.partitions):
        progress(what, number, 2 * len(data.partitions), "partitions")
        keys.append(_keys(data, path, block, chosen_below, seed))
    x = np.empty((sum(len(one.labels) for one in keys), len(data.features)), np.float32)
    at = 0
    for number, (path, one) in enumerate(zip(data.partitions, keys, strict=True)):
        progress(what, len(data.partitions) + number, 2 * len(data.partitions), "partitions")
        at = _fill(x, at, data.scan(path).filter(block).select(data.features), one.kept)
    progress(what, 2 * len(data.partitions), 2 * len(data.partitions), "partitions")
    return Sample(
        x=x, labels=np.concatenate([one.labels for one in keys]), chosen=np.concatenate([one.chosen for one in keys]),
        collection=np.concatenate([one.collection for one in keys]),
        end_us=np.concatenate([one.end_us for one in keys]), horizons_min=data.horizons_min,
        fraction=min(1.0, fraction),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    """What is known of a partition's rows before their features are read; all but ``kept`` of kept rows only."""

    kept: pl.Series
    labels: Array
    chosen: Array
    collection: Array
    end_us: Array


def _keys(data: FeatureSet, path: Path, block: pl.Expr, chosen_below: Any, seed: int) -> _Keys:
    wanted = (*KEY, *(f"y_{m}" for m in data.horizons_min))
    frame = data.scan(path).filter(block).select(*wanted, _collection().alias("_collection")).collect()
    labels = labels_of(frame, data.horizons_min)
    chosen = np.ones(frame.height, bool) if chosen_below is None else key_hash(frame, seed) < chosen_below
    kept = ((labels == 1).any(axis=1) | chosen) & (labels != EXCLUDED).any(axis=1)
    return _Keys(
        kept=pl.Series(kept, dtype=pl.Boolean), labels=labels[kept], chosen=chosen[kept],
        collection=frame["_collection"].to_numpy()[kept], end_us=frame["end_time_us"].to_numpy()[kept],
    )  # fmt: skip


def _fill(x: Array, at: int, rows: pl.LazyFrame, kept: pl.Series) -> int:
    """Put the kept rows' features into ``x`` from row ``at`` on, COLUMNS of them at a time; returns the next row."""
    names = rows.collect_schema().names()
    to = at + int(kept.sum())
    for first in range(0, len(names), COLUMNS):
        part = rows.select(names[first : first + COLUMNS]).collect().filter(kept)
        for offset, name in enumerate(part.columns):
            x[at:to, first + offset] = part[name].cast(pl.Float32).fill_null(float("nan")).to_numpy()
    return to


def _collection() -> pl.Expr:
    """One number a (cell, collection): ids repeat between cells (trap T12)."""
    return (unit_hash() * 2**53).cast(pl.Int64)
