"""Writing a ledger and reading it back; what is refused, and how it is said."""

import sqlite3
from datetime import timedelta

import pytest
import sqlalchemy

from leadtime.domain.errors import BadLedger
from leadtime.ledger.reader import LedgerReader
from leadtime.ledger.records import LedgerMeta, MinuteRow
from leadtime.ledger.sqlite import SqliteLedger

META = LedgerMeta(
    kind="demo", scenario="recurring", seed=7, policy_hash="0123456789abcdef", workloads=("serving/chat",),
    worlds=("hpa", "leadtime"), extra={"verdict": "Act."},
)  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ticks.sqlite"


@pytest.fixture
def written(path, build_tick):
    """A closed ledger with three ticks a minute apart."""
    first = build_tick()
    with SqliteLedger.create(path, META) as ledger:
        for i in range(3):
            ledger.append(build_tick(as_of=first.as_of + timedelta(minutes=i)))
    return path, first.as_of


def row(at, **changed):
    given = {
        "demand": 576.0, "served": 34_560.0, "unserved": 0.0, "wanted": 480, "ready": 470, "starting": 6, "pending": 4,
        "floor": 480, "nodes_by_stage": {"request": 0, "boot": 3, "ready": 65},
    }  # fmt: skip
    return MinuteRow(at=at, **(given | changed))


def test_the_meta_comes_back_as_it_was(written):
    with LedgerReader(written[0]) as ledger:
        assert ledger.meta() == META


def test_a_path_that_looks_like_an_address_is_that_path(tmp_path, build_tick):
    path = tmp_path / "a b#c?mode=memory%20ü" / "ticks.sqlite"
    path.parent.mkdir()
    with SqliteLedger.create(path, META) as ledger:
        ledger.append(build_tick())
    with LedgerReader(path) as ledger:
        assert ledger.meta() == META
        assert len(ledger.tick_times()) == 1
    assert [one.name for one in tmp_path.iterdir()] == [path.parent.name]


def test_ticks_come_back_oldest_first_and_whole(written):
    path, first = written
    with LedgerReader(path) as ledger:
        assert ledger.tick_times() == [first + timedelta(minutes=i) for i in range(3)]
        assert [tick["as_of"] for tick in ledger.ticks()] == [
            "2026-03-02T05:10:00Z", "2026-03-02T05:11:00Z", "2026-03-02T05:12:00Z",
        ]  # fmt: skip
        assert ledger.tick(first)["snapshot"]["workloads"][0]["ready_pods"] == 480


def test_windows_are_half_open(written):
    path, first = written
    minute = timedelta(minutes=1)
    with LedgerReader(path) as ledger:
        assert len(ledger.ticks(since=first, until=first + 2 * minute)) == 2
        assert len(ledger.ticks(since=first + minute)) == 2
        assert [tick["as_of"] for tick in ledger.ticks(limit=1)] == ["2026-03-02T05:10:00Z"]


def test_a_tick_that_is_not_there_is_said(written):
    path, first = written
    with LedgerReader(path) as ledger, pytest.raises(BadLedger, match=r"no tick as of 2026-03-02T04:10:00Z"):
        ledger.tick(first - timedelta(hours=1))


def test_the_decision_index_names_scope_reason_action_and_winner(written):
    with LedgerReader(written[0]) as ledger:
        lines = ledger.decisions(scope="workload:serving/chat", limit=1)
        assert [(line.reason, line.action, line.agent, line.proposal_id, line.rejected) for line in lines] == [
            ("ForecastAboveReady", "SetFloor", "scaling", "scaling/a", 1)
        ]
        assert len(ledger.decisions()) == 6
        assert {line.scope for line in ledger.decisions(acted_only=True)} == {"workload:serving/chat"}
        nothing = ledger.decisions(scope="pool:h100")[0]
        assert (nothing.action, nothing.agent, nothing.reason) == (None, None, "EnoughCapacity")


def test_decisions_can_be_asked_for_a_window(written):
    path, first = written
    with LedgerReader(path) as ledger:
        assert len(ledger.decisions(since=first + timedelta(minutes=1), until=first + timedelta(minutes=2))) == 2


def test_minute_rows_come_back_equal(path, build_tick):
    first = build_tick().as_of
    rows = [row(first), row(first + timedelta(minutes=1), demand=None, served=None, unserved=None)]
    with SqliteLedger.create(path, META) as ledger:
        ledger.put_world_minutes("hpa", "serving/chat", rows)
    with LedgerReader(path) as ledger:
        assert ledger.world_minutes("hpa", "serving/chat") == rows
        assert ledger.world_minutes("hpa", "serving/chat", since=first + timedelta(seconds=1)) == rows[1:]
        assert ledger.world_minutes("hpa", "serving/chat", until=first + timedelta(minutes=1)) == rows[:1]
        assert ledger.world_minutes("oracle", "serving/chat") == []
        assert ledger.worlds() == [("hpa", "serving/chat")]


def test_minute_rows_written_again_replace_the_old(path, build_tick):
    first = build_tick().as_of
    with SqliteLedger.create(path, META) as ledger:
        ledger.put_world_minutes("hpa", "serving/chat", [row(first)])
        ledger.put_world_minutes("hpa", "serving/chat", [row(first, ready=1)])
        ledger.put_world_minutes("hpa", "serving/chat", [])
    with LedgerReader(path) as ledger:
        assert [kept.ready for kept in ledger.world_minutes("hpa", "serving/chat")] == [1]


def test_documents_are_kept_by_name(path):
    with SqliteLedger.create(path, META) as ledger:
        ledger.put_document("report", '{"a":1}')
        ledger.put_document("report", '{"a":2}')
    with LedgerReader(path) as ledger:
        assert ledger.document("report") == '{"a":2}'
        assert ledger.document("scores") is None


def test_a_closed_ledger_is_one_file(written):
    path, _ = written
    assert [found.name for found in path.parent.iterdir()] == ["ticks.sqlite"]


def test_it_can_be_read_from_a_copy_and_while_it_is_written(path, tmp_path, build_tick):
    ledger = SqliteLedger.create(path, META)
    ledger.append(build_tick())
    with LedgerReader(path) as reader:
        assert len(reader.tick_times()) == 1
        ledger.append(build_tick(as_of=build_tick().as_of + timedelta(minutes=1)))
        assert len(reader.tick_times()) == 2
    ledger.close()
    ledger.close()
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(path.read_bytes())
    assert len(LedgerReader(copy).tick_times()) == 2


def test_the_same_tick_twice_is_refused_and_the_first_kept(path, build_tick):
    with SqliteLedger.create(path, META) as ledger:
        ledger.append(build_tick())
        with pytest.raises(BadLedger, match="is there already"):
            ledger.append(build_tick(demand=1.0))
        ledger.append(build_tick(as_of=build_tick().as_of + timedelta(minutes=1)))
    with LedgerReader(path) as reader:
        assert [tick["assessments"][0]["demand"] for tick in reader.ticks()] == [576.0, 576.0]


def test_a_ledger_stopped_in_the_middle_of_a_write_closes_and_keeps_what_was_committed(path, build_tick):
    ledger = SqliteLedger.create(path, META)
    ledger.append(build_tick())
    connection = ledger._connection.connection.dbapi_connection
    connection.set_progress_handler(lambda: (_ for _ in ()).throw(KeyboardInterrupt), 1)
    with pytest.raises((sqlalchemy.exc.OperationalError, KeyboardInterrupt)):
        ledger.append(build_tick(as_of=build_tick().as_of + timedelta(minutes=1)))
    ledger._connection.invalidate()  # as SQLAlchemy does when Ctrl-C or SIGTERM arrives inside a call

    ledger.close()

    with LedgerReader(path) as reader:
        assert len(reader.tick_times()) == 1


def test_a_ledger_can_be_gone_on_with(written, build_tick):
    path, first = written
    with SqliteLedger.resume(path) as ledger:
        ledger.append(build_tick(as_of=first + timedelta(minutes=3)))
    with LedgerReader(path) as reader:
        assert len(reader.tick_times()) == 4


def test_creating_replaces_an_older_ledger(written):
    path, _ = written
    SqliteLedger.create(path, META).close()
    with LedgerReader(path) as reader:
        assert reader.tick_times() == []


def test_creating_never_overwrites_a_file_that_is_no_ledger(path):
    path.write_text("my only copy")
    with pytest.raises(BadLedger, match="not a SQLite file"):
        SqliteLedger.create(path, META)
    assert path.read_text() == "my only copy"


def test_creating_in_a_folder_that_is_not_there_says_so(tmp_path):
    with pytest.raises(BadLedger, match="its folder does not exist"):
        SqliteLedger.create(tmp_path / "nowhere" / "ticks.sqlite", META)


def foreign_database(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE meta (key TEXT, value TEXT)")
    connection.commit()
    connection.close()


def other_format(path):
    SqliteLedger.create(path, META).close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("prepare", "slug", "says"),
    [
        pytest.param(lambda path: None, "ledger-absent", "no such file", id="absent"),
        pytest.param(lambda path: path.mkdir(), "ledger-foreign", "this is a folder", id="a folder"),
        pytest.param(lambda path: path.write_bytes(b""), "ledger-foreign", "not one of leadtime's", id="empty"),
        pytest.param(lambda path: path.write_text("x" * 4096), "ledger-foreign", "not a SQLite file", id="text"),
        pytest.param(foreign_database, "ledger-foreign", "not one of leadtime's", id="another program's database"),
        pytest.param(other_format, "ledger-format", "format 99, this version reads 1", id="another format"),
    ],
)
def test_the_reader_refuses_in_one_line_with_a_cure(path, prepare, slug, says):
    prepare(path)
    with pytest.raises(BadLedger) as refused:
        LedgerReader(path)
    assert refused.value.slug == slug
    assert says in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.cure


def test_reading_never_changes_or_creates_a_file(written, tmp_path):
    path, _ = written
    before = path.read_bytes()
    with LedgerReader(path) as reader:
        reader.ticks()
        reader.decisions()
    assert path.read_bytes() == before
    assert sorted(found.name for found in tmp_path.iterdir()) == ["ticks.sqlite"]


def test_equal_runs_give_equal_ticks_in_the_file(tmp_path, build_tick):
    def bodies(name):
        with SqliteLedger.create(tmp_path / name, META) as ledger:
            ledger.append(build_tick())
        connection = sqlite3.connect(tmp_path / name)
        try:
            return connection.execute("SELECT as_of_us, body FROM ticks").fetchall()
        finally:
            connection.close()

    assert bodies("a.sqlite") == bodies("b.sqlite")
