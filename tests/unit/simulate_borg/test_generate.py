"""Files of a trace: same bytes, every dialect, earlier traces, folders of others, a stopped run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadtime.domain.borg import Dialect
from leadtime.domain.errors import BadTrace, WrongUse
from leadtime.simulate.borg.generate import Knobs, generate

pytestmark = pytest.mark.slow  # every test draws traces of its own


def test_equal_seeds_give_equal_bytes_and_another_seed_gives_others(tmp_path: Path, reading: Any, knobs: Knobs) -> None:
    small = replace(knobs, rows=5_000)
    first = reading.digest(generate(tmp_path / "a", small).folder)
    assert reading.digest(generate(tmp_path / "b", small).folder) == first
    other = reading.digest(generate(tmp_path / "d", replace(small, seed=4)).folder)
    assert other["truth/truth_rows.parquet"] != first["truth/truth_rows.parquet"]


@pytest.mark.parametrize("dialect", list(Dialect))
def test_every_dialect_has_the_same_truth(tmp_path: Path, dialect: Dialect, knobs: Knobs) -> None:
    small = replace(knobs, rows=2_000)
    plain = generate(tmp_path / "plain", small)
    other = generate(tmp_path / "other", replace(small, dialects=(dialect,)))
    assert other.truth_rows.read_bytes() == plain.truth_rows.read_bytes()
    declared = json.loads((other.folder / "trace.json").read_text())
    assert declared["clusterdata"] == ("v2" if dialect is Dialect.V2 else "v3")
    assert sum(path.name.startswith(("instance_usage", "slice", "task_usage")) for path in other.files) >= 2


def test_an_earlier_trace_is_replaced_and_nothing_of_it_is_left(tmp_path: Path, reading: Any, knobs: Knobs) -> None:
    out = tmp_path / "c"
    generate(out, replace(knobs, rows=5_000, dialects=(Dialect.NDJSON,)))
    again = generate(out, replace(knobs, rows=2_000))
    assert not list(out.glob("*.json.gz"))
    assert reading.digest(out) == reading.digest(generate(tmp_path / "d", replace(knobs, rows=2_000)).folder)
    assert again.rows < 5_000


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, knobs: Knobs) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadTrace) as refused:
        generate(tmp_path, replace(knobs, rows=1_000))
    assert refused.value.slug == "trace-folder-not-ours"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_in_the_way_is_named(tmp_path: Path, knobs: Knobs) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WrongUse, match="is a file"):
        generate(tmp_path / "file" / "c", replace(knobs, rows=1_000))


def test_a_run_that_is_stopped_leaves_nothing(tmp_path: Path, knobs: Knobs) -> None:
    def stop(_what: str, _done: int, _total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(tmp_path / "c", replace(knobs, rows=5_000), progress=stop)
    assert list(tmp_path.iterdir()) == []
