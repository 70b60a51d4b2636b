"""A state file holds our tables and nothing else; nothing that is in it is run."""

from pathlib import Path

import pytest
from crafted_files import FOR_EVER, again, craft, declared

import viewfold
from viewfold import StateFileError

pytestmark = pytest.mark.usefixtures("every_check")

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
def test_a_database_holds_our_tables_and_nothing_else(crafted_file: Path, kind: str) -> None:
    craft(crafted_file, *CATALOGUE[kind].split("; "))
    with pytest.raises(StateFileError, match=r"model\.vf"):
        viewfold.load(crafted_file)


def test_nothing_of_a_file_is_run_even_in_our_own_view(crafted_file: Path) -> None:
    craft(crafted_file, "DROP VIEW labels_history", f"CREATE VIEW labels_history AS {FOR_EVER}")
    assert len(viewfold.load(crafted_file).views_) == 3


def test_a_file_keeps_no_more_states_than_its_format_knows(crafted_file: Path) -> None:
    craft(crafted_file, "CREATE SCHEMA undo100")
    viewfold.load(crafted_file)
    craft(crafted_file, "CREATE SCHEMA undo101")
    with pytest.raises(StateFileError, match="did not put there: 'undo101'"):
        viewfold.load(crafted_file)
