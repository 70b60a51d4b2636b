"""State files that somebody changed with SQL, digests and all."""

import shutil
from pathlib import Path
from unittest.mock import ANY

import duckdb
import pytest
from conftest import Data
from every_estimator import folded_once

from viewfold import ViewFold
from viewfold.store import file, tables

FOR_EVER = (
    "SELECT count(*)::VARCHAR AS key, 'x' AS value FROM range(1000000000000000) WHERE random() < 0"
)


@pytest.fixture(scope="session")
def good_file(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("good") / "model.vf"
    folded_once(ViewFold(4, random_state=0), data).save(path)
    return path


@pytest.fixture
def crafted_file(good_file: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(good_file, tmp_path))


def craft(path: Path, *statements: str) -> None:
    with duckdb.connect(path) as db:
        for statement in statements:
            db.execute(statement)


def forge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every digest be right whatever a file holds: anybody could compute them."""
    monkeypatch.setattr(tables, "meta_digest", lambda _: ANY)
    for module in (tables, file):
        monkeypatch.setattr(module, "table_digest", lambda _: ANY)
        monkeypatch.setattr(module, "column_digests", lambda _: ANY)


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
