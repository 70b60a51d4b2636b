"""Files that are replaced: owner, group and mode stay, outputs are whole, pipes are written to."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import start
from writers import names

import viewfold
from viewfold import ViewFold
from viewfold._util.replace import replacing

RIGHTS = pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="only root can be several users"
)


def rights(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


@RIGHTS
def test_owner_group_and_mode_stay_when_root_writes(small_state: Path) -> None:
    os.chown(small_state, 1234, 5678)
    small_state.chmod(0o640)
    with viewfold.edit(small_state) as model:
        model.partial_fit(np.eye(6), view="more")
    assert rights(small_state) == (1234, 5678, 0o640)
    assert rights(small_state.with_name(".a.vf.lock")) == (1234, 5678, 0o640)


AS_COLLEAGUE = """
    import os, sys
    import numpy, viewfold
    from viewfold import estimators, store  # while root may still read the code
    from viewfold.store import tables
    viewfold.ViewFold(2).fit(numpy.eye(6)).save(sys.argv[2])
    viewfold.load(sys.argv[2])
    os.setgroups([5678]); os.setgid(999); os.setuid(4321)
    with viewfold.edit(sys.argv[1], wait=5) as model:
        model.partial_fit(numpy.eye(6), view="colleague")
"""


@RIGHTS
@pytest.mark.parametrize("told_before", [True, False])
def test_a_colleague_with_rights_on_the_file_can_write(tmp_path: Path, told_before: bool) -> None:
    """The folder is shared by a group; the state was made by one of them and may be written."""
    folder = Path("/tmp") / f"viewfold-{os.getpid()}-{told_before}"
    folder.mkdir()
    try:
        path = folder / "a.vf"
        ViewFold(2).fit(np.eye(6)).save(path)
        for one in (folder, path, folder / ".a.vf.lock"):
            os.chown(one, 1234, 5678)
        folder.chmod(0o770)
        path.chmod(0o660)
        if told_before:
            viewfold.load(path).save(path)
            assert rights(folder / ".a.vf.lock") == (1234, 5678, 0o660)
        other = start(AS_COLLEAGUE, path, tmp_path / "warm.vf")
        _, said = other.communicate()
        assert other.returncode == 0, said
        assert "colleague" in names(viewfold.load(path))
        assert rights(path) == (4321, 5678, 0o660)
    finally:
        for left in folder.iterdir():
            left.unlink()
        folder.rmdir()


def test_a_file_in_a_group_that_cannot_be_kept_is_closed_to_the_new_one(
    small_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "chown"):
        pytest.skip("no groups here")
    small_state.chmod(0o664)

    def refuse(*_: Any) -> None:
        raise PermissionError

    real = os.stat

    def of_another_group(where: Any, *args: Any, **options: Any) -> Any:
        found = real(where, *args, **options)
        if Path(where) == small_state:
            values = list(found)
            values[5] = found.st_gid + 1
            return os.stat_result(values)
        return found

    monkeypatch.setattr(os, "chown", refuse)
    monkeypatch.setattr(os, "stat", of_another_group)
    with replacing(small_state) as draft:
        draft.write_text("x")
    monkeypatch.undo()
    assert rights(small_state)[2] == 0o604


def test_outputs_are_replaced_whole_and_as_private_as_asked(
    tmp_path: Path, small_state: Path
) -> None:
    output = tmp_path / "labels.csv"
    small_state.chmod(0o640)
    with replacing(output, like=small_state) as draft:
        draft.write_text("one")
        assert draft.suffix == ".csv"
        assert not output.exists()
    assert (output.read_text(), rights(output)[2]) == ("one", 0o640)
    output.chmod(0o644)
    with replacing(output, like=small_state) as draft:
        draft.write_text("two")
    assert (output.read_text(), rights(output)[2]) == ("two", 0o644)
    with pytest.raises(TypeError), replacing(output) as draft:
        draft.write_text(draft.write_text("half"))  # type: ignore[arg-type]
    assert output.read_text() == "two"
    link = tmp_path / "link.csv"
    link.symlink_to("labels.csv")
    with replacing(link) as draft:
        draft.write_text("four")
    assert link.is_symlink()
    assert output.read_text() == "four"
    with pytest.raises(IsADirectoryError, match="folder"), replacing(tmp_path):
        pass
    assert not list(tmp_path.glob(".*part"))


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes here")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    with replacing(pipe) as draft:
        draft.write_text("data")
    reader.join()
    assert got == ["data"]
    assert pipe.is_fifo()


def test_what_replaces_files_needs_neither_duckdb_nor_scikit_learn() -> None:
    code = (
        "import sys; import viewfold._util.replace; from viewfold.store import writing\n"
        "assert not {'duckdb', 'sklearn', 'pandas', 'numpy'} & set(sys.modules), 'slow to import'"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
