"""Generated traces with one trap each → the gate that names it; a clean trace → none. See test_borg_acceptance too."""

from pathlib import Path

import pytest

from leadtime.domain.borg import Dialect
from leadtime.risk.gates import Standing
from leadtime.simulate.borg.generate import generate
from leadtime.simulate.borg.knobs import Knobs, Trap
from leadtime.training.check import CheckReport, check_raw
from leadtime.training.repair import repair

ROWS = 12_000
V3 = tuple(one for one in Dialect if one not in {Dialect.SLICE, Dialect.V2})


def checked(
    folder: Path, *traps: Trap, dialects: tuple[Dialect, ...] = (Dialect.PARQUET,), cells: str = "c"
) -> CheckReport:
    for cell in cells:
        knobs = Knobs(rows=ROWS, seed=3, cell=cell, traps=traps, dialects=dialects, rows_per_shard=ROWS // 5)
        generate(folder / cell, knobs)
    return check_raw(folder)


def names(report: CheckReport) -> set[str]:
    return {gate.name for gate in report.failed}


@pytest.mark.slow
@pytest.mark.parametrize("dialects", [V3, (Dialect.V2,)], ids=["v3", "v2"])
def test_a_clean_trace_passes_in_every_dialect_and_once_repaired_stays(
    dialects: tuple[Dialect, ...], tmp_path: Path
) -> None:
    report = checked(tmp_path / "raw", dialects=dialects)
    assert report.failed == ()
    first = repair(tmp_path / "raw", tmp_path / "first")
    assert first.is_usable
    assert first.account.quarantined == []
    assert repair(tmp_path / "first", tmp_path / "second").account.rows_touched == 0
    for path in (tmp_path / "first").rglob("*.parquet"):
        assert path.read_bytes() == (tmp_path / "second" / path.relative_to(tmp_path / "first")).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trap", "gate"), [(Trap.T2, "time-unit"), (Trap.T8, "enum-proof"), (Trap.T11, "null-rate")], ids=str
)
def test_a_trap_that_would_move_the_result_stops_by_name(trap: Trap, gate: str, tmp_path: Path) -> None:
    assert gate in names(checked(tmp_path, trap))


@pytest.mark.slow
def test_ids_equal_across_cells_are_counted_and_a_stray_file_is_named(tmp_path: Path) -> None:
    (overlap,) = [gate for gate in checked(tmp_path, Trap.T12, cells="bc").gates if gate.name == "id-overlap"]
    assert overlap.standing is Standing.PASSED
    assert overlap.measured
    stray = tmp_path / "one"
    generate(stray, Knobs(rows=ROWS, seed=3, cell="b"))
    other = tmp_path / "two"
    generate(other, Knobs(rows=ROWS, seed=4, cell="d"))
    target = stray / "instance_usage-000000000009.parquet"
    (other / "instance_usage-000000000000.parquet").rename(target)
    report = check_raw(stray)
    assert ("join-match", target.name) in {(gate.name, gate.where) for gate in report.failed}


@pytest.mark.slow
def test_a_generated_slice_is_refused_for_labels_with_the_reason(tmp_path: Path) -> None:
    report = checked(tmp_path, dialects=(Dialect.SLICE,))
    assert names(report) == {"separate-events"}
    assert all("cannot be known" in gate.sentence for gate in report.failed)


@pytest.mark.slow
@pytest.mark.parametrize("trap", [Trap.T2, Trap.T8], ids=str)
def test_what_a_trap_spoilt_is_mended_by_name_and_then_passes(trap: Trap, tmp_path: Path) -> None:
    checked(tmp_path / "raw", trap)
    report = repair(tmp_path / "raw", tmp_path / "mended")
    rule = {Trap.T2: "unit-ms-to-us", Trap.T8: "enum-v2-to-v3"}[trap]
    assert rule in {rule for rule, _ in report.account.touched}
    assert report.is_usable
    assert check_raw(tmp_path / "mended").failed == ()
