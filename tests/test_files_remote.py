"""What fsspec opens is read as local files are: here from memory, and from a local server."""

from __future__ import annotations

import gc
import re
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from io_files import ALL, FRAME, IDS, SEVERAL, TABLES, X, dense
from ugly_files import GENES, write_tenx

from viewfold import as_view, as_views
from viewfold.data import files as io

fsspec = pytest.importorskip("fsspec")
NAMES = [name for name in ALL if name not in SEVERAL]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Serve a folder that is in the temporary one."""
    pytest.importorskip("aiohttp")
    (tmp_path / "www").mkdir()
    handler = partial(Quiet, directory=str(tmp_path / "www"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Any]:
    system = fsspec.filesystem("memory")

    def put(name: str) -> str:
        ALL[name](tmp_path / name)
        system.pipe_file(f"/bucket/{name}", (tmp_path / name).read_bytes())
        return f"memory://bucket/{name}"

    yield put
    system.rm("/", recursive=True)


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("name", NAMES)
def test_every_format_is_read_from_elsewhere(name: str, memory, tmp_path: Path) -> None:
    address = memory(name)
    ids = "id" if name in TABLES else None
    here, there = as_view(tmp_path / name, ids=ids), as_view(address, ids=ids)
    assert there.name == here.name
    assert there.features == here.features
    assert np.array_equal(dense(there), dense(here))
    assert there.file == address


def test_tables_elsewhere_are_one_view(memory) -> None:
    for name in ("labs.csv", "labs.tsv", "labs.parquet"):
        memory(name)
    system = fsspec.filesystem("memory")
    half = len(FRAME) // 2
    for i, part in enumerate((FRAME[:half], FRAME[half:])):
        system.pipe_file(f"/parts/part.{i}.csv", part.to_csv(index=False).encode())
    for address in ("memory://parts", "memory://parts/*.csv"):
        view = as_view(address, ids="id")
        assert list(view.ids) == IDS
        assert np.array_equal(dense(view), X)
        assert view.name == "parts"
    with pytest.raises(ValueError, match="different formats"):
        as_view("memory://bucket", ids="id")


def test_names_beside_a_matrix_are_fetched_too(server: str, tmp_path: Path) -> None:
    write_tenx(tmp_path / "www" / "pbmc", "GSM1_")
    view = as_view(f"{server}/pbmc/GSM1_matrix.mtx.gz?token=1")
    assert (view.features, list(view.ids)) == (GENES, IDS)
    assert np.array_equal(dense(view), X)
    fsspec.filesystem("memory").put(str(write_tenx(tmp_path / "cells")), "/cells", recursive=True)
    assert as_view("memory://cells").features == GENES


def test_a_web_server_is_enough(server: str, tmp_path: Path) -> None:
    for name in ("labs.csv", "labs.parquet", "set.npz"):
        ALL[name](tmp_path / "www" / name)
    for name in ("labs.csv", "labs.parquet"):
        view = as_view(f"{server}/{name}?token=secret", ids="id")
        assert (view.name, list(view.ids)) == ("labs", IDS)
        assert view.file == f"{server}/{name}"  # without the secret
        assert np.array_equal(dense(view), X)
    with pytest.warns(UserWarning, match="left out"):
        assert [view.name for view in as_views(f"{server}/set.npz")] == ["a", "b"]


def test_errors_name_the_address_without_secrets(server: str, memory, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=re.escape(f"{server}/gone.csv: there is no such")):
        as_view(f"{server}/gone.csv?token=secret")
    with pytest.raises(FileNotFoundError, match=r"memory://bucket/gone\.csv: there is no such"):
        as_view("memory://bucket/gone.csv")
    fsspec.filesystem("memory").pipe_file("/bucket/a.csv", b"id,x\nann,1\nbob,?!\n")
    with pytest.raises(ValueError, match=r"^memory://bucket/a\.csv, line 3, column 'x': '\?!'"):
        as_view("memory://bucket/a.csv", ids="id")
    with pytest.raises(ValueError, match=r"^ftp2://h/a\.csv: cannot be fetched") as error:
        as_view("ftp2://me:secret@h/a.csv")
    assert "secret" not in str(error.value)
    with pytest.raises(ValueError, match=r"^memory://bucket/a\.doc: unknown format|there is no"):
        as_view("memory://bucket/a.doc")


def test_copies_are_bounded_and_removed(memory, tmp_path: Path, monkeypatch) -> None:
    address = memory("labs.csv")
    place = tmp_path / "copies"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    views = io.read(address, ids="id")
    assert [one.name for one in place.rglob("*.csv")] == ["labs.csv"]
    as_view(views["labs"], ids="id")
    del views
    gc.collect()
    assert not list(place.iterdir())
    monkeypatch.setattr("viewfold.data.fetch.free_disk", lambda: 10)
    with pytest.raises(ValueError, match=r"labs\.csv: a copy would take .* but 10 bytes are free"):
        as_view(address, ids="id")


def test_the_extra_is_named_where_it_is_missing(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    said = "s3://bucket/a.csv: reading it needs fsspec. Install it with: pip install 'viewfold[re"
    with pytest.raises(ImportError, match=re.escape(said)):
        as_view("s3://bucket/a.csv")
