"""State files that are not what they should be: tampered, newer, foreign, cut, damaged."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_models import bits, changed

import viewfold
from viewfold import StateFileError, ViewFold
from viewfold.store.tables import FORMAT


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE samples SET label = 1 - label",
        "UPDATE samples SET embedding = (SELECT embedding FROM samples LIMIT 1)",
        "UPDATE samples SET id = 's0'",
        "UPDATE samples SET id = id || 'x' WHERE id = 's5'",
        "DELETE FROM samples WHERE id = 's5'",
        "DROP VIEW labels_history; DROP TABLE samples",
        "DROP TABLE arrays",
        "DELETE FROM arrays WHERE name = 'centers'",
        "UPDATE arrays SET dtype = 'object' WHERE name = 'centers'",
        "UPDATE arrays SET type = 'popen' WHERE name = 'encoder/1'",
        "UPDATE arrays SET shape = [3, 4000000000] WHERE name = 'centers'",
        "UPDATE views SET name = 'other' WHERE fold = 1",
        "UPDATE meta SET value = '{' WHERE key = 'params'",
        "DELETE FROM meta WHERE key = 'digest'",
        "DELETE FROM meta",
        "DROP VIEW labels_history; ALTER TABLE samples DROP embedding",
        "DROP VIEW labels_history; ALTER TABLE samples RENAME TO s; CREATE VIEW samples AS FROM s, "
        "read_text('/etc/hostname')",
    ],
)
def test_a_tampered_file_is_refused(model_file: Path, statement: str) -> None:
    changed(model_file, *statement.split(";"))
    with pytest.raises(StateFileError, match=r"model\.vf"):
        viewfold.load(model_file)


def test_a_newer_or_foreign_file_says_so(model_file: Path, tmp_path: Path) -> None:
    changed(model_file, f"UPDATE meta SET value = '{FORMAT + 1}' WHERE key = 'version'")
    with pytest.raises(StateFileError, match=rf"format {FORMAT + 1} .* newer viewfold"):
        viewfold.load(model_file)
    changed(tmp_path / "other.vf", "CREATE TABLE meta (key VARCHAR, value VARCHAR)")
    with pytest.raises(StateFileError, match="not one of viewfold"):
        viewfold.load(tmp_path / "other.vf")
    (tmp_path / "notes.txt").write_text("dear diary")
    with pytest.raises(StateFileError, match="not written by viewfold"):
        viewfold.load(tmp_path / "notes.txt")
    with pytest.raises(StateFileError, match="not written by viewfold"):
        ViewFold(3).save(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "dear diary"
    with pytest.raises(FileNotFoundError, match=r"nobody\.vf"):
        viewfold.load(tmp_path / "nobody.vf")
    with pytest.raises(FileNotFoundError, match="no folder"):
        ViewFold(3).save(tmp_path / "nowhere" / "model.vf")


def test_a_truncated_file_is_refused(model_file: Path) -> None:
    content = model_file.read_bytes()
    for length in (0, 1, 11, 12, 4096, 12288, len(content) // 2, len(content) - 1):
        model_file.write_bytes(content[:length])
        with pytest.raises(StateFileError):
            viewfold.load(model_file)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_changed_bytes_are_refused_or_do_not_matter(
    model_file: Path, stored_model: Any, data: Any
) -> None:
    content = bytearray(model_file.read_bytes())
    copy = model_file.with_name("copy.vf")
    for _ in range(data.draw(st.integers(1, 8))):
        where = data.draw(st.integers(0, len(content) - 1))
        content[where] = data.draw(st.integers(0, 255))
    copy.write_bytes(content)
    try:
        back = viewfold.load(copy)
    except StateFileError:
        return
    assert bits(back) == bits(stored_model)
