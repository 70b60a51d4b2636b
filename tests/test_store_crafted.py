"""Files that were made to harm: none runs its own SQL, takes all memory, or becomes a model."""

import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import duckdb
import numpy as np
import pytest
from conftest import Data
from test_contracts import folded

import viewfold
from viewfold import FCMVC, StateFileError, ViewFold, store
from viewfold.errors import DamagedFileError, NewerFormatError
from viewfold.store import _catalogue, _database, digests, queries

FOR_EVER = (
    "SELECT count(*)::VARCHAR AS key, 'x' AS value FROM range(1000000000000000) WHERE random() < 0"
)


@pytest.fixture(scope="module")
def good(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("good") / "model.vf"
    folded(ViewFold(4, random_state=0), data.parts()).save(path)
    return path


@pytest.fixture
def path(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(good, tmp_path))


def craft(path: Path, *statements: str) -> None:
    with duckdb.connect(path) as db:
        for statement in statements:
            db.execute(statement)


def forge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every digest be right whatever a file holds: anybody could compute them."""
    monkeypatch.setattr(digests, "of_meta", lambda _: ANY)
    monkeypatch.setattr(digests, "of_table", lambda _: ANY)
    monkeypatch.setattr(digests.Columns, "found", lambda _: ANY)


def again(table: str, change: str, more: str = "") -> str:
    """Make a table anew, with some columns changed."""
    return (
        f"DROP VIEW labels_history; CREATE TABLE t AS "
        f"SELECT * REPLACE ({change}) {more} FROM {table}; "
        f"DROP TABLE {table}; ALTER TABLE t RENAME TO {table}"
    )


def declared(table: str, columns: str) -> str:
    """Make a table anew with columns as declared, and without rows."""
    return f"DROP VIEW labels_history; DROP TABLE {table}; CREATE TABLE {table} ({columns})"


# -- what a database may contain

CATALOGUE = {
    "meta computes for ever": f"DROP TABLE meta; CREATE VIEW meta AS {FOR_EVER}",
    "meta is a view on itself": "ALTER TABLE meta RENAME TO m; CREATE VIEW meta AS FROM m",
    "samples is a view": "DROP VIEW labels_history; ALTER TABLE samples RENAME TO s; "
    "CREATE VIEW samples AS FROM s, range(1000000000000)",
    "views is a view": "DROP VIEW labels_history; ALTER TABLE views RENAME TO v; "
    "CREATE VIEW views AS FROM v",
    "arrays is a view": "ALTER TABLE arrays RENAME TO a; CREATE VIEW arrays AS FROM a",
    "log is a view": "DROP VIEW labels_history; ALTER TABLE log RENAME TO l; "
    "CREATE VIEW log AS FROM l",
    "a log of another time": "DROP VIEW labels_history; ALTER TABLE log ALTER time TYPE TIMESTAMP",
    "a view more": "CREATE VIEW helper AS SELECT 1",
    "a view in undo only": "CREATE SCHEMA undo; CREATE VIEW undo.meta AS FROM main.meta",
    "a macro": "CREATE MACRO octet_length(x) AS (SELECT count(*) FROM range(1000000000000000))",
    "a table macro": "CREATE MACRO helper(x) AS TABLE SELECT x",
    "a sequence": "CREATE SEQUENCE counter",
    "an index": "CREATE INDEX fast ON samples (label)",
    "a type": "CREATE TYPE mood AS ENUM ('sad', 'glad')",
    "a table more": "CREATE TABLE secrets AS SELECT 1 AS x",
    "a schema more": "CREATE SCHEMA attic",
    "a table in another schema": "CREATE SCHEMA attic; CREATE TABLE attic.t AS SELECT 1 AS x",
    "a default that computes": "ALTER TABLE meta ALTER value SET DEFAULT random()::VARCHAR",
    "a generated column": declared(
        "views", "fold INTEGER, name VARCHAR GENERATED ALWAYS AS (repeat('x', fold))"
    ),
    "a constraint": "CREATE TABLE t (key VARCHAR, value VARCHAR, CHECK (length(key) < 99)); "
    "INSERT INTO t FROM meta; DROP TABLE meta; ALTER TABLE t RENAME TO meta",
    "a key": "CREATE TABLE t (key VARCHAR PRIMARY KEY, value VARCHAR); "
    "INSERT INTO t FROM meta; DROP TABLE meta; ALTER TABLE t RENAME TO meta",
    "a collation": "CREATE TABLE t (key VARCHAR COLLATE NOCASE, value VARCHAR); "
    "INSERT INTO t FROM meta; DROP TABLE meta; ALTER TABLE t RENAME TO meta",
    "another type": again("samples", "label::BIGINT AS label"),
    "lists of any length": again("samples", "embedding::DOUBLE[] AS embedding"),
    "ids with parts": again("samples", "{'a': id} AS id"),
    "an enum": again("views", "name::ENUM('labs', 'scan', 'text') AS name"),
    "a column more": again("samples", "id AS id", ", 1 AS one"),
    "a column less": "ALTER TABLE meta RENAME value TO v",
    "a column that looks like two": "DROP TABLE meta; CREATE TABLE meta "
    '("key VARCHAR, value" VARCHAR)',
}


@pytest.mark.parametrize("kind", CATALOGUE)
def test_a_database_holds_our_tables_and_nothing_else(path: Path, kind: str) -> None:
    craft(path, *CATALOGUE[kind].split("; "))
    with pytest.raises(StateFileError, match=r"model\.vf"):
        viewfold.load(path)


def test_nothing_of_a_file_is_run_even_in_our_own_view(path: Path) -> None:
    craft(path, "DROP VIEW labels_history", f"CREATE VIEW labels_history AS {FOR_EVER}")
    assert len(viewfold.load(path).views_) == 3


# -- what the tables say

VALUES = {
    "two ids are one": ("UPDATE samples SET id = 's1' WHERE id = 's2'", "one id"),
    "no id": ("UPDATE samples SET id = NULL WHERE id = 's2'", "no 'id'"),
    "no label": ("UPDATE samples SET label = NULL WHERE id = 's2'", "no 'label'"),
    "no history": ("UPDATE samples SET history = NULL WHERE id = 's2'", "no 'history'"),
    "a gap in a history": (
        "UPDATE samples SET history = [0, NULL, label]::INTEGER[3] WHERE id = 's2'",
        "no 'history'",
    ),
    "another label than the history's": (
        "UPDATE samples SET label = (label + 1) % 4",
        "last of their history",
    ),
    "a label beyond the clusters": (
        "UPDATE samples SET label = 4, history = [4, 4, 4]::INTEGER[3] WHERE id = 's2'",
        "4 clusters",
    ),
    "a large label": (
        "UPDATE samples SET label = 2147483647, history = [0, 0, 2147483647]::INTEGER[3]",
        "4 clusters",
    ),
    "a label below zero": (
        "UPDATE samples SET label = -1, history = [0, 0, -1]::INTEGER[3] WHERE id = 's2'",
        "4 clusters",
    ),
    "a history below -1": (
        "UPDATE samples SET history = [-7, 0, label]::INTEGER[3] WHERE id = 's2'",
        "less than -1",
    ),
    "an embedding that is no number": (
        "UPDATE samples SET embedding = list_transform(embedding, lambda x: 'nan'::DOUBLE)"
        "::DOUBLE[{r}] WHERE id = 's2'",
        "not finite",
    ),
    "an infinite embedding": (
        "UPDATE samples SET embedding = list_transform(embedding, lambda x: '-inf'::DOUBLE)"
        "::DOUBLE[{r}] WHERE id = 's2'",
        "not finite",
    ),
    "a confidence of 2": ("UPDATE samples SET confidence = 2 WHERE id = 's2'", "confidence"),
    "a confidence that is no number": (
        "UPDATE samples SET confidence = 'nan' WHERE id = 's2'",
        "confidence",
    ),
    "a short history": (
        again("samples", "history[2:]::INTEGER[2] AS history"),
        "each of the views",
    ),
    "more views seen than views": (
        again("samples", "[true, true, true, true]::BOOLEAN[4] AS views_seen"),
        "each of the views",
    ),
    "a view less": ("DELETE FROM views WHERE fold = 3", "each of the views"),
    "a log with a gap": ("DELETE FROM log WHERE entry = 2", "log are not 1, 2, 3"),
    "a log that counts twice": ("UPDATE log SET entry = 1", "log are not 1, 2, 3"),
    "a log without numbers": ("UPDATE log SET entry = NULL", "log are not 1, 2, 3"),
    "samples of an entry that is not there": ("UPDATE samples SET added = 9", "samples came by"),
    "views of an entry that is not there": ("UPDATE views SET entry = 9", "views were folded by"),
    "a time that is none": ("UPDATE log SET time = NULL", "damaged"),
    "a map that does not fit": (
        "UPDATE arrays SET shape = [1, octet_length(data) // 8] WHERE name = 'turn/2'",
        "map of earlier encoders at view 'scan' does not fit",
    ),
    "no views": ("DELETE FROM views", "numbered"),
    "views that are numbered otherwise": ("UPDATE views SET fold = fold + 1", "numbered"),
    "two views of one name": ("UPDATE views SET name = 'labs'", "one name"),
    "a view without a name": ("UPDATE views SET name = NULL WHERE fold = 2", "one name"),
    "less than no samples": ("UPDATE views SET n_samples = -1 WHERE fold = 2", "n_samples"),
    "no number of features": ("UPDATE views SET n_features = NULL", "n_features"),
    "no objective": ("UPDATE views SET objective = NULL", "objective"),
    "names of other features": ("UPDATE views SET features = ['x', 'y']", "name for each"),
    "fewer features than the encoder has": (
        "UPDATE views SET n_features = 5 WHERE fold = 2",
        "does not fit the rest in the encoder of view 'scan'",
    ),
    "one sample more": ("UPDATE meta SET value = '161' WHERE key = 'n_samples'", "160 samples"),
    "a sample of which nothing is known": (
        "UPDATE meta SET value = '1000000000000' WHERE key = 'n_samples'",
        "160 samples",
    ),
    "a number of samples that is none": (
        "UPDATE meta SET value = '\"many\"' WHERE key = 'n_samples'",
        "160 samples",
    ),
    "another kind of ids": ("UPDATE meta SET value = '\"int\"' WHERE key = 'ids'", "ids"),
    "ids that are mixed and do not say which": (
        "UPDATE meta SET value = '\"mixed\"' WHERE key = 'ids'",
        "ids",
    ),
    "rows below zero": ("UPDATE meta SET value = '-5' WHERE key = 'length'", "row number"),
    "rows that are no number": ("UPDATE meta SET value = '\"x\"' WHERE key = 'length'", "row num"),
    "a version that is no number": ("UPDATE meta SET value = '\"x\"' WHERE key = 'version'", "'x'"),
    "version 0": ("UPDATE meta SET value = '0' WHERE key = 'version'", "format is 0"),
    "a key twice": ("INSERT INTO meta FROM meta", "twice"),
    "a key without a value": ("UPDATE meta SET value = NULL WHERE key = 'ids'", "without a value"),
    "JSON of a thousand brackets": (
        "UPDATE meta SET value = repeat('[', 100000) WHERE key = 'params'",
        "too deeply",
    ),
    "JSON of many megabytes": (
        "UPDATE meta SET value = '\"' || repeat('x', 64000000) || '\"' WHERE key = 'params'",
        "more than a file of",
    ),
    "quotes without end": (
        "UPDATE meta SET value = repeat('\\\"', 50000) || '\\' WHERE key = 'params'",
        "damaged",
    ),
    "parameters that are a list": (
        "UPDATE meta SET value = '[]' WHERE key = 'params'",
        "parameters",
    ),
    "a parameter that is a list": (
        "UPDATE meta SET value = '{{\"n_clusters\": [4]}}' WHERE key = 'params'",
        "is a list",
    ),
    "a parameter nobody knows": (
        'UPDATE meta SET value = \'{{"n_clusters": 4, "hook": "x"}}\' WHERE key = \'params\'',
        "hook",
    ),
    "a parameter out of range": (
        "UPDATE meta SET value = '{{\"n_clusters\": -4}}' WHERE key = 'params'",
        "n_clusters",
    ),
    "a random state of too few words": (
        'UPDATE meta SET value = \'{{"random_state": {{"RandomState": '
        '["MT19937", [1], 1, 0, 0.0]}}}}\' '
        "WHERE key = 'params'",
        "damaged",
    ),
    "a method nobody knows": ("UPDATE meta SET value = '\"Popen\"' WHERE key = 'method'", "Popen"),
    "an array of fewer bytes": (
        "UPDATE arrays SET data = data[8:] WHERE name = 'centers'",
        "as many bytes",
    ),
    "an array without bytes": (
        "UPDATE arrays SET data = NULL WHERE name = 'centers'",
        "as many bytes",
    ),
    "an array of 10¹² numbers": (
        "UPDATE arrays SET shape = [1000000, 1000000] WHERE name = 'centers'",
        "as many bytes",
    ),
    "a shape below zero": ("UPDATE arrays SET shape = [-1, -4] WHERE name = 'centers'", "shape"),
    "a shape with a gap": ("UPDATE arrays SET shape = [NULL] WHERE name = 'centers'", "shape"),
    "thirty axes": (
        "UPDATE arrays SET shape = list_transform(range(30), lambda x: 1) WHERE name = 'centers'",
        "shape",
    ),
    "an array of objects": ("UPDATE arrays SET dtype = 'object' WHERE name = 'centers'", "object"),
    "two arrays of one name": ("INSERT INTO arrays FROM arrays", "one name"),
    "no centres": ("DELETE FROM arrays WHERE name = 'centers'", "damaged"),
    "centres that are no numbers": (
        "UPDATE arrays SET data = from_hex(repeat('FF', octet_length(data))) "
        "WHERE name = 'centers'",
        "do not fit",
    ),
    "centres of other directions": (
        "UPDATE arrays SET shape = [1, shape[3], shape[2]] WHERE name = 'centers'",
        "clusters",
    ),
    "a projection that is turned": (
        "UPDATE arrays SET shape = [shape[2] * 2, shape[1] // 2] WHERE name = 'projection'",
        "do not fit",
    ),
    "a class nobody knows": (
        "UPDATE arrays SET type = 'Popen' WHERE name = 'encoder/1'",
        "damaged",
    ),
    "a part of another class": (
        "UPDATE arrays SET type = 'landmarks', version = 1 WHERE name = 'encoder/1'",
        "encoder of view 'labs'",
    ),
    "an encoder without directions": (
        "DELETE FROM arrays WHERE name = 'encoder/1/project/weights'",
        "encoder of view 'labs'",
    ),
    "an encoder of turned directions": (
        "UPDATE arrays SET shape = [1, shape[1] * shape[2]] "
        "WHERE name = 'encoder/2/project/weights'",
        "does not fit the rest in the encoder of view 'scan'",
    ),
    "an encoder that ends elsewhere": (
        "UPDATE arrays SET shape = [shape[1] * shape[2], 1] WHERE name = 'encoder/2/output'",
        "does not fit the rest in the encoder of view 'scan'",
    ),
    "an encoder of numbers that are none": (
        "UPDATE arrays SET data = from_hex(repeat('FF', octet_length(data))) "
        "WHERE name = 'encoder/2/factor'",
        "not finite in the encoder",
    ),
    "an encoder of whole numbers": (
        "UPDATE arrays SET dtype = 'int64' WHERE name = 'encoder/2/linear'",
        "in the encoder of view 'scan'",
    ),
    "landmarks without coordinates": (
        "DELETE FROM arrays WHERE name = 'encoder/2/landmarks/coordinates'",
        "encoder of view 'scan'",
    ),
}


def test_at_least_forty_kinds_are_tried() -> None:
    assert len(CATALOGUE) + len(VALUES) >= 40


@pytest.mark.parametrize("kind", VALUES)
def test_a_file_with_the_right_digest_and_wrong_content_is_refused(
    path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements, message = VALUES[kind]
    with duckdb.connect(path, read_only=True) as db:
        (kind_of,) = db.sql("SELECT typeof(embedding) FROM samples LIMIT 1").fetchall()[0]
    r = kind_of.partition("[")[2][:-1]
    craft(path, *statements.format(r=r).split("; "))
    forge(monkeypatch)
    with pytest.raises(StateFileError, match=message) as error:
        viewfold.load(path)
    assert type(error.value) in (DamagedFileError, StateFileError)


def test_the_digest_still_finds_what_could_be_true(path: Path) -> None:
    craft(path, "UPDATE samples SET id = 'sx' WHERE id = 's1'")
    with pytest.raises(DamagedFileError, match="changed by another program"):
        viewfold.load(path)


def test_commands_that_read_by_sql_check_the_same(path: Path) -> None:
    """A macro beside the tables would be found before DuckDB's own functions."""
    craft(path, "CREATE MACRO list_sum(x) AS (SELECT max(length(id)) FROM samples)")
    for question in (queries.labels, queries.status, queries.log, queries.everything, queries.logs):
        with pytest.raises(DamagedFileError, match="macro"):
            question(path)


@pytest.mark.parametrize("label", [2_000_000_000, 4])
def test_a_status_takes_no_more_memory_than_clusters_need(
    path: Path, label: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    craft(path, f"UPDATE samples SET label = {label}")
    forge(monkeypatch)
    monkeypatch.setattr(queries, "check", lambda *_: None)
    if label > 4:
        with pytest.raises(DamagedFileError, match="clusters"):
            queries.status(path)
    else:
        assert queries.status(path)["cluster_sizes"] == [0, 0, 0, 0, 160]


def test_good_files_of_every_kind_pass_the_checks(data: Data, tmp_path: Path) -> None:
    counts = np.random.default_rng(0).poisson(0.05, size=(160, 300)).astype(float)
    mixed = [*range(80), *(str(i) for i in range(80))]
    for model in (
        ViewFold(4),
        ViewFold(4, encoder="linear").fit({"counts": counts, **data.views}),
        ViewFold(1).fit(data.views),
        ViewFold(4, keep_encoders=False, n_components=1).fit(
            data.views["labs"], ids=mixed, similar_ids="new"
        ),
        FCMVC(4, random_state=np.random.RandomState(3)).fit(data.views),
    ):
        model.save(tmp_path / "model.vf")
        assert type(viewfold.load(tmp_path / "model.vf")) is type(model)


# -- limits


def test_a_small_file_cannot_take_much_memory(path: Path) -> None:
    """A file of some hundred kilobytes that holds 400 MB of one letter."""
    craft(
        path,
        "SET threads = 1",
        "INSERT INTO samples SELECT s.* REPLACE (repeat('x', 100000000) || i AS id) "
        "FROM samples s, range(4) t(i) WHERE id = 's1'",
    )
    assert path.stat().st_size < 2_000_000
    script = f"""
        import resource, viewfold
        from viewfold import store
        import viewfold.store.tables
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            store.read({str(path)!r})
        except viewfold.StateFileError as error:
            print(error)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    *said, more = done.stdout.splitlines()
    assert "would take" in said[0], done.stdout
    assert int(more) < 100_000  # kilobytes: less than a single one of these ids


@pytest.mark.parametrize(
    ("table", "statement"),
    [
        ("samples", "UPDATE samples SET id = repeat('x', 3000000) WHERE id = 's1'"),
        ("views", "UPDATE views SET features = list_transform(range(400000), lambda x: 'x')"),
        ("views", "UPDATE views SET objective = list_transform(range(400000), lambda x: 1.0)"),
        ("arrays", "UPDATE arrays SET data = encode(repeat('x', 3000000)) WHERE name = 'centers'"),
    ],
)
def test_what_a_table_takes_in_memory_is_known_before_it_is_read(
    path: Path, table: str, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_catalogue, "MEMORY", (2**21, 0))
    viewfold.load(path)
    craft(path, statement)
    with pytest.raises(DamagedFileError, match=f"'{table}' would take [0-9,]+ bytes of memory"):
        viewfold.load(path)


def test_reading_has_a_limit_of_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_database, "SECONDS", (0.2, 0.0))
    with pytest.raises(DamagedFileError, match="too long"), _database.reading(path) as db:
        db.execute(FOR_EVER).fetchall()


def test_time_that_is_up_between_two_queries_is_up(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_database, "SECONDS", (0.01, 0.0))

    def dawdle() -> None:
        with _database.reading(path) as db:
            time.sleep(0.2)
            db.execute(FOR_EVER).fetchall()

    with pytest.raises(DamagedFileError, match="too long"):
        dawdle()


def test_reading_has_a_limit_of_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_database, "MEMORY", (2**25, 1))
    with pytest.raises(DamagedFileError, match="more memory"), _database.reading(path) as db:
        db.execute("SELECT list(i) FROM range(20000000) t(i)").fetchall()


def test_a_file_that_is_read_can_reach_no_other(path: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    with _database.reading(path) as db:
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
def test_what_duckdb_left_beside_a_file_is_not_read_along(path: Path, suffix: str) -> None:
    beside = Path(f"{path}{suffix}")
    beside.write_bytes(b"")
    for act in (viewfold.load, ViewFold(3).save):
        with pytest.raises(StateFileError, match=rf"model\.vf{suffix} beside it"):
            act(path)
    beside.unlink()
    beside.symlink_to("nowhere")
    with pytest.raises(StateFileError, match="beside it"):
        viewfold.load(path)


def test_changes_that_wait_in_a_wal_are_not_taken_for_the_state(path: Path, tmp_path: Path) -> None:
    """A copy of a file that is open in DuckDB, with the changes that are not in it yet."""
    copy = tmp_path / "copy.vf"
    with duckdb.connect(path) as db:
        db.execute("SET checkpoint_threshold = '1GB'")
        db.execute("CREATE TABLE more AS SELECT 1 AS x")
        shutil.copy(path, copy)
        shutil.copy(f"{path}.wal", f"{copy}.wal")
    with pytest.raises(StateFileError, match="beside it"):
        viewfold.load(copy)


def test_a_newer_file_may_hold_anything(path: Path) -> None:
    craft(
        path,
        "CREATE TABLE more AS SELECT 1 AS x",
        "CREATE VIEW helper AS SELECT 1",
        "UPDATE meta SET value = '99' WHERE key = 'version'",
    )
    with pytest.raises(NewerFormatError, match="format 99"):
        viewfold.load(path)


def test_the_state_before_is_checked_as_well(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with viewfold.edit(path) as model:
        model.partial_fit(np.eye(160), ids=[f"s{i}" for i in range(160)], view="more")
    craft(path, "UPDATE undo.samples SET confidence = 2")
    forge(monkeypatch)
    viewfold.load(path)
    with pytest.raises(DamagedFileError, match="confidence"):
        store.read(path, before=True)
    craft(path, "DROP VIEW undo.labels_history", "DROP TABLE undo.log")
    assert len(viewfold.load(path).views_) == 4
    with pytest.raises(DamagedFileError, match="'log'"):
        store.read(path, before=True)
    craft(path, "CREATE MACRO undo.helper(x) AS x")
    with pytest.raises(DamagedFileError, match="macro"):
        viewfold.load(path)


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE undo.meta AS FROM main.meta", "CREATE TABLE undo.more AS SELECT 1 AS x"],
)
def test_half_a_state_to_return_to_does_not_harm_the_state_of_now(
    path: Path, statement: str
) -> None:
    craft(path, "CREATE SCHEMA undo", statement)
    assert len(viewfold.load(path).views_) == 3
    with pytest.raises(DamagedFileError, match="tables of format"):
        viewfold.undo(path)


def test_everything_wrong_is_found_not_only_the_first(path: Path) -> None:
    from dataclasses import replace

    from viewfold.store._check import problems

    saved: Any = store.read(path)
    assert list(problems(saved)) == []
    embedding, ids = saved.embedding.copy(), saved.ids.copy()
    embedding[3], ids[4] = np.nan, ids[5]
    found = list(problems(replace(saved, embedding=embedding, ids=ids)))
    assert found == ["two samples have one id", "the embedding is not finite"]
