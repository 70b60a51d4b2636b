"""What every reader of files promises, whatever the format; `io_files` has one file of each."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from io_files import FRAME, IDS, MATRICES, SEVERAL, TABLES, X, dense

from viewfold import as_view, as_views
from viewfold.data import FileError, files
from viewfold.data import read as read_file

TABLES_TOO = TABLES | {"labs.xlsx": lambda path: FRAME.to_excel(path, index=False)}
ALL: dict[str, Callable[[Path], Any]] = TABLES_TOO | MATRICES | SEVERAL
READ_ONCE = [name for name in ALL if name.endswith((".csv", ".tsv", ".gz", ".zst", ".npy", ".npz"))]


@pytest.fixture(params=ALL)
def path(request: Any, tmp_path: Path) -> Path:
    ALL[request.param](tmp_path / request.param)
    return tmp_path / request.param


def ids_of(path: Path) -> str | None:
    return "id" if path.name in TABLES_TOO else None


@pytest.mark.filterwarnings("ignore")
def test_rows_are_numbers_in_the_order_of_the_file_under_their_ids(path: Path) -> None:
    view = as_views(path, ids=ids_of(path))[0]
    np.testing.assert_array_equal(dense(view), X)
    known = path.name in TABLES_TOO or path.suffix in (".h5ad", ".h5mu")
    assert list(view.ids) == (IDS if known else [0, 1, 2, 3])
    assert view.file == str(path)
    if path.name not in SEVERAL:
        assert view.name == path.name.split(".")[0]
        assert as_view(path, ids=ids_of(path), name="other").name == "other"
    if path.name in TABLES_TOO or path.suffix == ".h5ad":
        assert view.features == ("age", "iron", "zinc")


@pytest.mark.filterwarnings("ignore")
def test_a_file_can_be_read_again(path: Path) -> None:
    first, second = (as_views(path, ids=ids_of(path)) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert dense(one).tobytes() == dense(other).tobytes()
        assert list(one.ids) == list(other.ids)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("content", [b"", b"\x00\xff\x00\xffnothing that is known", None])
def test_what_is_damaged_is_an_error_that_names_the_file(path: Path, content: Any) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 3] if content is None else content)
    if content is None and path.name in ("labs.csv", "labs.tsv", "labs.jsonl", "labs.ndjson"):
        return  # the first third of a text may be a text
    with pytest.raises(ValueError, match=path.name):
        as_views(path, ids=ids_of(path))


def test_a_column_that_is_not_there_is_named_with_those_that_are(path: Path) -> None:
    if path.name not in TABLES_TOO:
        return
    with pytest.raises(FileError, match=r"no column 'nobody'.*'age', 'iron', 'zinc', 'id'"):
        as_view(path, ids="nobody")


@pytest.mark.filterwarnings("ignore")
def test_no_reader_keeps_a_file_open(path: Path) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("open files are seen on Linux")
    views = as_views(path, ids=ids_of(path))
    held = {os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()}
    assert str(path) not in held
    assert views


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", READ_ONCE)
def test_a_file_is_opened_once(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    if name in ("labs.ndjson.gz", "sparse.npz"):
        return  # keys are known at the end only; SciPy opens its own
    ALL[name](tmp_path / name)
    opened, own = [], builtins.open

    def counting(file: Any, *args: Any, **kwargs: Any) -> Any:
        opened.append(str(file))
        return own(file, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", counting)
    views = read_file(tmp_path / name, ids="id" if name in TABLES else None)
    for view in views.values():
        np.vstack([rows for _, rows in view.rows] if name in TABLES else [view.rows.shape])
    assert opened.count(str(tmp_path / name)) == 1


def test_every_format_is_under_contract() -> None:
    there = {files.suffix_of(name)[0] for name in ALL}
    same = {".tab": ".tsv"}
    assert {same.get(suffix, suffix) for form in files._BUILT_IN for suffix in form.suffixes} == (
        there | {".ndjson"}
    )
