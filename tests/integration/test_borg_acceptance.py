"""From the generator to the report, as one chain on traces with a known optimum: traps, placebo, gates, bytes, errors.

The model is the baseline's logistic regression, the cheapest there is: what moves labels or features moves it too. Two
million rows and the boosted model are measured by ``benchmarks/accept_borg.py``.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from leadtime.cli.entry import run
from leadtime.domain.borg import HORIZONS_MIN, Dialect
from leadtime.simulate.borg.generate import generate
from leadtime.simulate.borg.knobs import Knobs, Trap
from leadtime.training.baseline import BaselineOptions, train_baseline
from leadtime.training.dataset import make_dataset
from leadtime.training.forecaster_dataset import make_forecaster_dataset

pytestmark = pytest.mark.slow
ROWS = 40_000
CLEAN = Knobs(rows=ROWS, seed=5, cell="c", mu=2.0, base_rate=0.02)
PRIMARY = "15"


@dataclass(frozen=True, slots=True)
class Chain:
    """What came of two cells' shards: windows, features, and what the baseline's metrics.json says."""

    root: Path
    metrics: Mapping[str, Any]

    @property
    def primary(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.metrics["horizons"][PRIMARY]
        return found

    @property
    def standard_error(self) -> float:
        return float(self.primary["intervals"]["average_precision"]["se"])

    @property
    def below_best(self) -> float:
        """How far the model's AP lies from the best possible one on the same rows: what a trap must not move."""
        return float(self.primary["average_precision"] - self.primary["bayes_average_precision"])

    def gate(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = next(gate for gate in self.metrics["gates"] if gate["name"] == name)
        return found


def shards(root: Path, *traps: Trap, knobs: Knobs = CLEAN, cells: str = "cd") -> Path:
    for seed, cell in enumerate(cells, knobs.seed):
        generate(root / "raw" / cell, replace(knobs, cell=cell, seed=seed, traps=traps))
    return root / "raw"


def features(root: Path) -> dict[str, str]:
    """Windows and features of the shards below ``root``; cell part → hash."""
    assert make_dataset(root / "raw", root / "windows").is_usable
    made = make_forecaster_dataset(root / "windows", root / "features")
    return {part["path"]: part["sha256"] for part in made.manifest["partitions"]}


def chain(root: Path, *traps: Trap, knobs: Knobs = CLEAN) -> Chain:
    source = shards(root, *traps, knobs=knobs)
    features(root)
    truth = tuple(sorted(source.rglob("truth_rows.parquet")))
    return Chain(root, train_baseline(BaselineOptions(features=root / "features", out=root / "run", truth=truth)))


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    return chain(tmp_path_factory.mktemp("clean"))


def counted(root: Path) -> dict[str, dict[str, int]]:
    """Exclusions by horizon and reason, as the truth files have them."""
    truth = pl.concat(pl.read_parquet(path) for path in root.rglob("truth_rows.parquet"))
    return {
        str(m): dict(truth[f"excluded_{m}"].drop_nulls().value_counts().sort(f"excluded_{m}").rows())
        for m in HORIZONS_MIN
    }


# --- traps --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trap", [Trap.T3, Trap.T4, Trap.T5, Trap.T6, Trap.T10], ids=str)
def test_a_trap_in_how_runs_end_moves_the_result_by_less_than_its_error(
    trap: Trap, clean: Chain, tmp_path: Path
) -> None:
    found = chain(tmp_path, trap)
    assert found.metrics["usable"]
    assert found.gate("labels-equal-truth")["measured"] == 0
    assert found.metrics["exclusions"] == counted(tmp_path)
    assert abs(found.below_best - clean.below_best) < clean.standard_error


def test_leaked_columns_and_the_order_of_rows_move_no_byte(tmp_path: Path) -> None:
    """T1 and T7."""
    small = replace(CLEAN, rows=12_000)
    shards(tmp_path / "clean", knobs=small, cells="c")
    shards(tmp_path / "leaked", Trap.T1, knobs=small, cells="c")
    shutil.copytree(tmp_path / "clean" / "raw", tmp_path / "by_time" / "raw")
    for path in (tmp_path / "by_time" / "raw").rglob("instance_usage-*.parquet"):
        pl.read_parquet(path).sort("start_time", "machine_id").write_parquet(path)
    wanted = features(tmp_path / "clean")
    assert features(tmp_path / "leaked") == wanted
    gates = json.loads((tmp_path / "leaked" / "windows" / "dataset.json").read_text())["gates"]
    assert next(gate for gate in gates if gate["name"] == "leaked-columns")["figures"]["whole_trace"]
    assert features(tmp_path / "by_time") == wanted


def test_ids_that_are_equal_in_two_cells_move_no_byte_of_either(tmp_path: Path) -> None:
    """T12."""
    small = replace(CLEAN, rows=12_000)
    shards(tmp_path / "both", Trap.T12, knobs=small, cells="cd")
    shutil.copytree(tmp_path / "both" / "raw" / "d", tmp_path / "alone" / "raw" / "d")
    both, alone = features(tmp_path / "both"), features(tmp_path / "alone")
    ids = [set(pl.read_parquet(tmp_path / "both" / "features" / path)["collection_id"]) for path in both]
    assert ids[0] & ids[1]
    assert alone.items() < both.items()


def test_the_placebo_has_the_base_rate(tmp_path: Path) -> None:
    """T13: without a signal nothing is found."""
    found = chain(tmp_path, knobs=replace(CLEAN, mu=0.0))
    assert found.primary["average_precision"] <= found.primary["base_rate"] + 3 * found.standard_error
    assert found.primary["bayes_average_precision"] <= 2 * found.primary["base_rate"]


@pytest.mark.parametrize("trap", [Trap.T14, Trap.T15], ids=str)
def test_drift_and_actions_are_reported(trap: Trap, clean: Chain, tmp_path: Path) -> None:
    found = chain(tmp_path, trap, knobs=replace(CLEAN, rows=20_000))
    drift, acted = found.gate("drift"), found.gate("acted-on-rows")
    if trap is Trap.T14:
        assert abs(drift["measured"]) > abs(clean.gate("drift")["measured"])
    assert acted["measured"] == (0.3 if trap is Trap.T15 else 0)
    assert "not exact" in acted["sentence"]
    assert "not exact" not in clean.gate("acted-on-rows")["sentence"]


# --- the report's contract ----------------------------------------------------------------------------------------


def test_the_report_prints_every_field_of_the_contract(clean: Chain, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["borg", "report", str(clean.root / "run"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["horizons"]) == {str(m) for m in HORIZONS_MIN}
    for found in told["horizons"].values():
        one = ("average_precision", "base_rate", "bayes_average_precision", "lift", "ece", "mean_probability")
        for name in one:
            assert found["intervals"][name]["low"] <= found["intervals"][name]["high"], name
        assert (
            found["average_precision"]
            <= found["bayes_average_precision"] + 3 * (found["intervals"]["bayes_average_precision"]["se"])
        )
        assert set(found["precision_at_k"]) == set(found["intervals"]["precision_at_k"])
        assert set(found["lead_time_s"]["quantiles"]) == {"p10", "p25", "p50", "p75", "p90"}
    assert told["exclusions"] == counted(clean.root)
    assert told["data_hash"] == json.loads((clean.root / "features" / "forecaster.json").read_text())["data_hash"]
    assert {gate["standing"] for gate in told["gates"]} <= {"passed", "not_examined"}


def test_equal_seeds_give_equal_bytes_from_shards_to_features(tmp_path: Path) -> None:
    for name in ("one", "other"):
        shards(
            tmp_path / name, knobs=replace(CLEAN, rows=12_000, dialects=(Dialect.NDJSON, Dialect.PARQUET)), cells="c"
        )
        features(tmp_path / name)
    one, other = (
        {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "one", tmp_path / "other")
    )
    assert one == other


# --- a failed gate, and what breaks -------------------------------------------------------------------------------


def test_a_failed_gate_stops_by_name_and_once_allowed_stands_in_every_later_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """T11, a third of the usage rows without a machine, from command to command."""
    shards(tmp_path, Trap.T11, cells="c")
    raw, windows, rows, out = (str(tmp_path / name) for name in ("raw", "windows", "features", "run"))
    assert run(["borg", "make-dataset", "--in", raw, "--out", windows]) == 1
    assert "failed null-rate" in capsys.readouterr().err
    make = ["borg", "make-forecaster-dataset", "--in", windows, "--out", rows]
    train = ["borg", "train-baseline", "--features", rows, "--out", out, "--truth", raw]
    assert run(make) == 2
    told = capsys.readouterr().err
    assert "null-rate" in told
    assert told.endswith("[borg-gate-failed]\n")
    assert not Path(rows, "forecaster.json").exists()
    assert run([*make, "--allow", "null-rate"]) == 0
    assert run(train) == 2  # allowed where windows are made, it would be allowed from there on
    assert run([*train, "--allow", "null-rate"]) == 0
    capsys.readouterr()
    assert run(["borg", "report", out, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert "null-rate" in report["allowed_gates"]
    assert {gate["standing"] for gate in report["gates"] if gate["name"] == "null-rate"} == {"allowed", "passed"}
    assert "null-rate" in (tmp_path / "run" / "report.html").read_text()


def cut(folder: Path) -> None:
    shard = max(folder.glob("instance_usage-*.json.gz"))
    shard.write_bytes(shard.read_bytes()[: shard.stat().st_size // 2])


def of_another_cell(folder: Path) -> None:
    shard = max(folder.glob("instance_usage-*.json.gz"))
    shard.rename(folder / "clusterdata_2019_f.instance_usage-000000000007.json.gz")


def without_machines(folder: Path) -> None:
    for path in folder.glob("machine_events-*"):
        path.unlink()


@pytest.mark.parametrize(
    ("spoil", "slug"),
    [(cut, "borg-shard-cut"), (of_another_cell, "borg-shard-other-cell"), (without_machines, "borg-table-missing")],
)
def test_a_broken_cell_is_one_error_and_the_finished_one_is_kept(
    spoil: Callable[[Path], None], slug: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = replace(CLEAN, rows=4_000, dialects=(Dialect.NDJSON,))
    raw = shards(tmp_path, knobs=small, cells="bc")
    make = ["borg", "make-dataset", "--in", str(raw), "--out", str(tmp_path / "windows"), "--allow", "positive-rate"]
    assert run([*make, "--cells", "b"]) in {0, 1}
    kept = {path: path.read_bytes() for path in (tmp_path / "windows" / "cell=b").rglob("*.parquet")}
    spoil(raw / "c")
    capsys.readouterr()
    assert run(make) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert slug in told.err
    assert {path: path.read_bytes() for path in (tmp_path / "windows" / "cell=b").rglob("*.parquet")} == kept
