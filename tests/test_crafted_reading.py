"""A crafted state file cannot take memory or time, reach other files, or slip in beside."""

import errno
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pytest
from crafted_files import FOR_EVER, craft, forge
from store_models import kept_states, read_state

import viewfold
from viewfold import StateFileError, ViewFold
from viewfold.errors import DamagedFileError, NewerFormatError
from viewfold.store import file, queries
from viewfold.store.file import FileStore

pytestmark = pytest.mark.usefixtures("every_check")


@contextmanager
def reading(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """What is raised in the block is raised while the file is read."""
    with FileStore(path).reading() as contents, contents.understood():
        yield contents.db


def test_the_digest_still_finds_what_could_be_true(crafted_file: Path) -> None:
    craft(crafted_file, "UPDATE samples SET id = 'sx' WHERE id = 's1'")
    with pytest.raises(DamagedFileError, match="changed by another program"):
        viewfold.load(crafted_file)


def test_commands_that_read_by_sql_check_the_same(crafted_file: Path) -> None:
    """A macro beside the tables would be found before DuckDB's own functions."""
    craft(crafted_file, "CREATE MACRO list_sum(x) AS (SELECT max(length(id)) FROM samples)")
    for question in (queries.labels, queries.status, queries.log, queries.everything, kept_states):
        with pytest.raises(DamagedFileError, match="macro"):
            question(crafted_file)


@pytest.mark.parametrize("label", [2_000_000_000, 4])
def test_a_status_takes_no_more_memory_than_clusters_need(
    crafted_file: Path, label: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    craft(crafted_file, f"UPDATE samples SET label = {label}")
    forge(monkeypatch)
    unchecked = lambda self, *_: file.read_meta(file.meta_table(self.db, "main"))  # noqa: E731
    monkeypatch.setattr(file.FileContents, "_check", unchecked)
    if label > 4:
        with pytest.raises(DamagedFileError, match="clusters"):
            queries.status(crafted_file)
    else:
        assert queries.status(crafted_file)["cluster_sizes"] == [0, 0, 0, 0, 160]


def test_a_small_file_cannot_take_much_memory(crafted_file: Path) -> None:
    """A file of some hundred kilobytes that holds 110 MB of one letter."""
    craft(crafted_file, "UPDATE samples SET id = repeat('x', 110000000) WHERE id = 's1'")
    assert crafted_file.stat().st_size < 2_000_000
    script = f"""
        import resource, viewfold
        import viewfold.store.tables
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            viewfold.load({str(crafted_file)!r})
        except viewfold.StateFileError as error:
            print(error)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    *said, more = done.stdout.splitlines()
    assert "would take" in said[0], done.stdout
    assert int(more) < 100_000  # kilobytes: less than this id


@pytest.mark.parametrize(
    ("table", "statement"),
    [
        ("samples", "UPDATE samples SET id = repeat('x', 3000000) WHERE id = 's1'"),
        ("views", "UPDATE views SET features = list_transform(range(100000), lambda x: 'x')"),
        ("views", "UPDATE views SET objective = list_transform(range(100000), lambda x: 1.0)"),
        ("arrays", "UPDATE arrays SET data = encode(repeat('x', 3000000)) WHERE name = 'centers'"),
    ],
)
def test_what_a_table_takes_in_memory_is_known_before_it_is_read(
    crafted_file: Path, table: str, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "UNPACKED", (2**21, 0))
    viewfold.load(crafted_file)
    craft(crafted_file, statement)
    with pytest.raises(DamagedFileError, match=f"'{table}' would take [0-9,]+ bytes of memory"):
        viewfold.load(crafted_file)


def test_reading_has_a_limit_of_time(crafted_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "SECONDS", (0.2, 0.0))
    with pytest.raises(DamagedFileError, match="too long"), reading(crafted_file) as db:
        db.execute(FOR_EVER).fetchall()


def test_every_question_has_a_minute_and_200_seconds_for_each_gigabyte(
    crafted_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = []

    class Event(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout)
            return super().wait(timeout)

    names = {"Event": Event, "Thread": threading.Thread}
    monkeypatch.setattr(file, "threading", SimpleNamespace(**names))
    with reading(crafted_file):
        pass
    size = crafted_file.stat().st_size
    assert {*waited} == {60 + 200 * size / 1e9}


def test_time_that_is_up_between_two_queries_is_up(
    crafted_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "SECONDS", (0.01, 0.0))

    def dawdle() -> None:
        with reading(crafted_file) as db:
            time.sleep(0.2)
            db.execute(FOR_EVER).fetchall()

    with pytest.raises(DamagedFileError, match="too long"):
        dawdle()


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EIO, "Input/output error"), PermissionError("not yours"), TimeoutError()],
    ids=["of the disk", "of rights", "of a network"],
)
def test_what_the_system_refuses_is_no_damage_to_the_file(
    crafted_file: Path, error: OSError
) -> None:
    with pytest.raises(type(error)) as found, reading(crafted_file):
        raise error
    assert found.value is error


@pytest.mark.parametrize("error", [OSError("Invalid snappy data"), ValueError("no such type")])
def test_what_a_reader_cannot_make_sense_of_is_damage(crafted_file: Path, error: Exception) -> None:
    with pytest.raises(DamagedFileError, match=str(error)), reading(crafted_file):
        raise error


def test_reading_has_a_limit_of_memory(crafted_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "MEMORY", (2**25, 1))
    with (
        pytest.raises(DamagedFileError, match="more memory"),
        reading(crafted_file) as db,
    ):
        db.execute("SELECT list(i) FROM range(20000000) t(i)").fetchall()


def test_a_file_that_is_read_can_reach_no_other(crafted_file: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    with reading(crafted_file) as db:
        for statement in (
            f"FROM read_text('{tmp_path / 'secret'}')",
            f"COPY (SELECT 1) TO '{tmp_path / 'out'}'",
            f"ATTACH '{tmp_path / 'other.db'}'",
            "SET enable_external_access = true",
            "SET memory_limit = '1TB'",
            "INSTALL httpfs",
        ):
            with pytest.raises(duckdb.Error):
                db.execute(statement)


@pytest.mark.parametrize("suffix", [".wal", ".wal.checkpoint", ".wal.recovery"])
def test_what_duckdb_left_beside_a_file_is_not_read_along(crafted_file: Path, suffix: str) -> None:
    beside = Path(f"{crafted_file}{suffix}")
    beside.write_bytes(b"")
    for act in (viewfold.load, ViewFold(3).save):
        with pytest.raises(StateFileError, match=rf"model\.vf{suffix} beside it"):
            act(crafted_file)
    beside.unlink()
    beside.symlink_to("nowhere")
    with pytest.raises(StateFileError, match="beside it"):
        viewfold.load(crafted_file)


def test_changes_that_wait_in_a_wal_are_not_taken_for_the_state(
    crafted_file: Path, tmp_path: Path
) -> None:
    """A copy of a file that is open in DuckDB, with the changes that are not in it yet."""
    copy = tmp_path / "copy.vf"
    with duckdb.connect(crafted_file) as db:
        db.execute("SET checkpoint_threshold = '1GB'")
        db.execute("CREATE TABLE more AS SELECT 1 AS x")
        shutil.copy(crafted_file, copy)
        shutil.copy(f"{crafted_file}.wal", f"{copy}.wal")
    with pytest.raises(StateFileError, match="beside it"):
        viewfold.load(copy)


def test_a_newer_file_may_hold_anything(crafted_file: Path) -> None:
    craft(
        crafted_file,
        "CREATE TABLE more AS SELECT 1 AS x",
        "CREATE VIEW helper AS SELECT 1",
        "UPDATE meta SET value = '99' WHERE key = 'version'",
    )
    with pytest.raises(NewerFormatError, match="format 99"):
        viewfold.load(crafted_file)


@pytest.fixture(scope="module")
def with_undo(good_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = shutil.copy(good_file, tmp_path_factory.mktemp("undo"))
    with viewfold.edit(path) as model:
        model.partial_fit(np.eye(160), ids=[f"s{i}" for i in range(160)], view="more")
    return Path(path)


@pytest.fixture
def file_with_undo(with_undo: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(with_undo, tmp_path))


def test_the_state_before_is_checked_as_well(
    file_with_undo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crafted_file = file_with_undo
    craft(crafted_file, "UPDATE undo.samples SET confidence = 2")
    forge(monkeypatch)
    viewfold.load(crafted_file)
    with pytest.raises(DamagedFileError, match="confidence"):
        read_state(crafted_file, "undo")
    craft(crafted_file, "DROP VIEW undo.labels_history", "DROP TABLE undo.log")
    assert len(viewfold.load(crafted_file).views_) == 4
    with pytest.raises(DamagedFileError, match="'log'"):
        read_state(crafted_file, "undo")
    craft(crafted_file, "CREATE MACRO undo.helper(x) AS x")
    with pytest.raises(DamagedFileError, match="macro"):
        viewfold.load(crafted_file)


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE undo.meta AS FROM main.meta", "CREATE TABLE undo.more AS SELECT 1 AS x"],
)
def test_half_a_state_to_return_to_does_not_harm_the_state_of_now(
    crafted_file: Path, statement: str
) -> None:
    craft(crafted_file, "CREATE SCHEMA undo", statement)
    assert len(viewfold.load(crafted_file).views_) == 3
    with pytest.raises(DamagedFileError, match="tables of format"):
        viewfold.undo(crafted_file)


def test_everything_wrong_is_found_not_only_the_first(crafted_file: Path) -> None:
    from dataclasses import replace

    from viewfold.store.check import problems

    saved: Any = read_state(crafted_file)
    assert list(problems(saved)) == []
    embedding, ids = saved.embedding.copy(), saved.ids.copy()
    embedding[3], ids[4] = np.nan, ids[5]
    found = list(problems(replace(saved, embedding=embedding, ids=ids)))
    assert found == ["two samples have one id", "the embedding is not finite"]


@pytest.mark.parametrize(
    ("version", "kind", "message"),
    [(3, StateFileError, "format 3"), (99, NewerFormatError, "format 99")],
)
def test_the_state_before_has_the_format_of_the_state_of_now(
    file_with_undo: Path, monkeypatch: pytest.MonkeyPatch, version: int, kind: type, message: str
) -> None:
    craft(file_with_undo, f"UPDATE undo.meta SET value = '{version}' WHERE key = 'version'")
    forge(monkeypatch)
    with pytest.raises(kind, match=message):
        read_state(file_with_undo, "undo")


def test_a_state_before_with_another_past_is_no_state_to_return_to(
    file_with_undo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    craft(file_with_undo, "UPDATE undo.log SET n_samples = 7 WHERE entry = 2")
    forge(monkeypatch)
    found = viewfold.verify(file_with_undo)
    assert found.problems == (
        "What undo returns to: its log is not the beginning of the log of now",
    )
    assert "The state is whole" in found.rescue[0]
