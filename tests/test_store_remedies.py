"""Drives without locks, full scratch disks, lost manifests, a folder removed at the wrong time."""

import errno
import os
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from vfd_models import state_folder, written_folder

import viewfold
from viewfold import ViewFold
from viewfold._util import replace as _replace
from viewfold.errors import BusyError, NoSpaceError
from viewfold.rows import DiskEngine
from viewfold.store import file, lock

__all__ = ["state_folder", "written_folder"]
NO_LOCKS = [errno.ENOLCK, errno.EOPNOTSUPP]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "p.vf"
    ViewFold(2, random_state=0).fit(np.random.default_rng(0).normal(size=(30, 3))).save(path)
    return path


@pytest.mark.parametrize("number", NO_LOCKS)
def test_a_writer_says_that_a_drive_has_no_locks(
    state: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", fails)
    content = state.read_bytes()
    with pytest.raises(viewfold.StateFileError, match=r"p\.vf is on a drive without file locks"):
        viewfold.undo(state)
    assert state.read_bytes() == content


@pytest.mark.parametrize("number", [*NO_LOCKS, None])
def test_a_reader_tells_no_locks_from_a_lock_of_another(
    state: Path, number: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "Conflicting lock is held in python (PID 1)" if number is None else os.strerror(number)

    def fails(*_: object) -> None:
        raise duckdb.IOException(f'IO Error: Could not set lock on file "{state}": {why}. See also')

    monkeypatch.setattr(file, "_attach", fails)
    expected = "open for writing in another" if number is None else "a drive without file locks"
    with pytest.raises(viewfold.StateFileError, match=expected) as error:
        viewfold.load(state)
    assert isinstance(error.value, BusyError) == (number is None)


def test_a_full_scratch_disk_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = DiskEngine(2, folder=str(tmp_path))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(NoSpaceError, match=rf"temporary files in {tmp_path}.*folder=….*TMPDIR"):
        engine.partition(np.arange(9))
    assert not [name for _, _, names in os.walk(tmp_path) for name in names if name != "lock"]


def test_a_lost_manifest_is_found_with_what_to_do(state_folder: Path) -> None:
    assert viewfold.verify(state_folder).whole
    newest = max(state_folder.glob("manifest-*.json"))
    lost = newest.read_bytes()
    newest.unlink()
    verdict = viewfold.verify(state_folder)
    assert "000002-" in verdict.problems[0]
    assert "manifest-000001.json" in verdict.problems[0]
    assert "copy all manifest-*.json of the original again" in " ".join(verdict.rescue)
    newest.write_bytes(lost)
    assert viewfold.verify(state_folder).whole


def test_a_writer_at_work_is_no_lost_manifest(
    state_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(max(state_folder.glob("0*")), state_folder / "000003-01234567")
    assert "000003-01234567" in viewfold.verify(state_folder).problems[0]
    monkeypatch.setattr(lock, "is_held", lambda _: True)
    assert viewfold.verify(state_folder).whole


def test_a_folder_that_is_removed_while_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    real, removed = fcntl.flock, []

    def flock(handle: int, how: int) -> None:
        if not removed:  # another writer cleared it, between open and flock
            (folder,) = tmp_path.glob("*.part")
            removed.append(folder)
            folder.rmdir()
        real(handle, how)

    monkeypatch.setattr(_replace.fcntl, "flock", flock)
    with _replace.replacing(tmp_path / "a.csv") as draft:
        draft.write_text("whole")
    assert removed
    assert (tmp_path / "a.csv").read_text() == "whole"


@pytest.mark.parametrize(("ending", "n_rows"), [(".csv", 300), (".csv", 90_000), (".parquet", 300)])
def test_a_full_disk_while_a_view_is_read_is_named_with_the_remedy(
    ending: str, n_rows: int, tmp_path: Path
) -> None:
    resource = pytest.importorskip("resource")
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(n_rows, 3)), columns=list("abc"))
    path = tmp_path / f"labs{ending}"
    table.to_csv(path, index=False) if ending == ".csv" else table.to_parquet(path)
    room = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, room[1]))
        with pytest.raises(NoSpaceError, match=r"No space is left for temporary files.*TMPDIR"):
            viewfold.as_view(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, room)
    assert viewfold.as_view(path).shape == (n_rows, 3)
