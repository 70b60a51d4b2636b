"""Writers of one file: first come, first served, nobody's work is lost, rights are kept."""

import os
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import viewfold
from viewfold import ViewFold, store
from viewfold._replace import replacing
from viewfold.errors import BusyError
from viewfold.store import _lock

LOOKS = pytest.mark.skipif(
    not getattr(_lock, "OPEN_FILE", False), reason="looking at the lock file would release it"
)
RIGHTS = pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="only root can be several users"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ViewFold(2).fit(np.eye(6)).save(tmp_path / "a.vf")
    return tmp_path / "a.vf"


def run(script: str, *args: Any, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def until_queued(path: Path, many: int) -> None:
    """Wait until so many writers hold or wait for a lock: each has locked a byte of it."""
    until = time.monotonic() + 60
    handle = os.open(path.parent / f".{path.name}.lock", os.O_RDWR)
    try:
        while time.monotonic() < until:
            held = 0
            for place in range(_lock.FIRST + 1, _lock.FIRST + 40):
                free = _lock._try(handle, place, 1)
                held += not free
                if free:
                    _lock._release(handle, place, 1)
            if held >= many:
                return
            time.sleep(0.005)
        raise AssertionError(f"{held} of {many} are there")
    finally:
        os.close(handle)


def names(model: Any) -> set[str]:
    return {view.name for view in model.views_}


def fold(path: Path, meanwhile: Callable[[], None]) -> None:
    with viewfold.edit(path) as model:
        model.partial_fit(np.eye(6), view="first")
        meanwhile()


# -- nobody's work is lost


def test_a_writer_whose_lock_was_removed_writes_nothing(path: Path) -> None:
    script = """
        import sys, numpy, viewfold
        with viewfold.edit(sys.argv[1], wait=5) as model:
            model.partial_fit(numpy.eye(6), view="second")
    """

    def let_another_in() -> None:
        (path.parent / ".a.vf.lock").unlink()
        assert run(script, path).wait() == 0

    with pytest.raises(BusyError, match=r"lock of a\.vf"):
        fold(path, let_another_in)
    assert "second" in names(viewfold.load(path))
    assert "first" not in names(viewfold.load(path))
    assert sorted(p.name for p in path.parent.iterdir()) == [".a.vf.lock", "a.vf"]


def test_a_file_that_was_replaced_meanwhile_is_left_alone(path: Path) -> None:
    content = path.read_bytes()

    def replace() -> None:
        (path.parent / "copy").write_bytes(content)
        os.replace(path.parent / "copy", path)

    with pytest.raises(BusyError, match="since it was read"):
        fold(path, replace)
    assert path.read_bytes() == content
    with pytest.raises(BusyError, match="since it was read"):
        fold(path, path.unlink)
    assert not path.exists()


def test_a_file_that_is_being_edited_is_not_written_from_within(path: Path) -> None:
    with viewfold.edit(path) as model:
        model.partial_fit(np.eye(6), view="more")
        with pytest.raises(BusyError, match="this very program"):
            ViewFold(3).save(path)
    assert "more" in names(viewfold.load(path))


def test_a_live_writer_of_a_file_with_a_longer_name_keeps_its_folder(path: Path) -> None:
    longer = path.with_name("a.vf.bak.vf")
    dead = path.with_name(".a.vf.bak.vf.abcdefgh.part")
    with replacing(longer) as draft:
        dead.mkdir()
        ViewFold(3).save(path)
        assert dead.exists()  # somebody else's business, too
        draft.write_text("whole")
    assert longer.read_text() == "whole"


def test_what_the_dead_left_is_cleared_and_what_the_living_use_is_not(path: Path) -> None:
    script = """
        import os, sys
        from viewfold._replace import replacing
        with replacing(sys.argv[1]) as draft:
            draft.write_text("half")
            print("ready", flush=True)
            sys.stdin.readline()
            os.kill(os.getpid(), 9)
    """
    other = run(script, path)
    assert other.stdout is not None
    assert other.stdin is not None
    other.stdout.readline()
    beside = {p.name for p in path.parent.glob("*.part")}
    assert len(beside) == 1
    ViewFold(3).save(path)
    assert {p.name for p in path.parent.glob("*.part")} == beside
    other.stdin.write("\n")
    other.stdin.close()
    other.wait()
    assert {p.name for p in path.parent.glob("*.part")} == beside
    ViewFold(3).save(path)
    assert not list(path.parent.glob("*.part"))


def test_a_forked_process_does_not_think_that_the_lock_is_its_own(path: Path) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    script = """
        import os, sys, numpy, viewfold
        from viewfold.errors import BusyError
        with viewfold.edit(sys.argv[1]) as model:
            model.partial_fit(numpy.eye(6), view="parent")
            child = os.fork()
            if not child:
                try:
                    viewfold.ViewFold(3).save(sys.argv[1], wait=0.1)
                except BusyError as error:
                    os._exit("another program" in str(error))
                os._exit(9)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    """
    assert run(script, path).wait() == 0
    assert "parent" in names(viewfold.load(path))


# -- fair turns


@LOOKS
def test_writers_are_served_in_the_order_in_which_they_came(path: Path) -> None:
    script = """
        import sys
        from viewfold import store
        print("up", flush=True)
        sys.stdin.readline()
        print("queues", flush=True)
        with store.writing(sys.argv[1]):
            with open(sys.argv[2], "a") as file:
                file.write(sys.argv[3])
    """
    log = path.with_name("log")
    log.touch()
    others = [run(script, path, log, name) for name in "abcdef"]
    with store.writing(path):
        for i, other in enumerate(others):
            assert other.stdin is not None
            assert other.stdout is not None
            other.stdout.readline()
            other.stdin.write("\n")
            other.stdin.flush()
            until_queued(path, i + 2)
        assert log.read_text() == ""
    assert [other.wait() for other in others] == [0] * 6
    assert log.read_text() == "abcdef"


@LOOKS
def test_nobody_starves(path: Path) -> None:
    """Four that write again and again, until there were 40 turns: each has its share."""
    script = """
        import sys, time
        from viewfold import store
        print("up", flush=True)
        sys.stdin.readline()
        done = 0
        while done < 40:
            with store.writing(sys.argv[1]), open(sys.argv[2], "r+") as file:
                done = len(file.read())
                if done < 40:
                    file.write(sys.argv[3])
                    time.sleep(0.005)
    """
    log = path.with_name("log")
    log.touch()
    others = [run(script, path, log, name) for name in "abcd"]
    for other in others:
        assert other.stdout is not None
        other.stdout.readline()
    with store.writing(path):  # nobody has a head start
        for other in others:
            assert other.stdin is not None
            other.stdin.write("\n")
            other.stdin.flush()
        until_queued(path, 5)
    assert [other.wait() for other in others] == [0] * 4
    assert Counter(log.read_text()) == dict.fromkeys("abcd", 10)


def test_threads_take_turns_too_and_in_their_order(path: Path) -> None:
    order: list[int] = []

    def work(i: int) -> None:
        with store.writing(path):
            order.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    with store.writing(path):
        for i, thread in enumerate(threads):
            thread.start()
            while len(_lock._waiting[path.resolve()]) < i + 2:
                time.sleep(0.001)
        assert not order
    for thread in threads:
        thread.join()
    assert order == list(range(8))


def test_a_killed_writer_is_in_nobodys_way(path: Path) -> None:
    script = """
        import os, sys
        from viewfold import store
        with store.writing(sys.argv[1]):
            os.kill(os.getpid(), 9)
    """
    run(script, path).wait()
    with store.writing(path, wait=0):
        pass


def test_a_lock_file_of_nonsense_is_no_obstacle(path: Path) -> None:
    lock = path.with_name(".a.vf.lock")
    for content in (b"", b"x", b"\xff" * 100):
        lock.write_bytes(content)
        with store.writing(path, wait=0):
            pass


# -- rights


def rights(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


@RIGHTS
def test_owner_group_and_mode_stay_when_root_writes(path: Path) -> None:
    os.chown(path, 1234, 5678)
    path.chmod(0o640)
    with viewfold.edit(path) as model:
        model.partial_fit(np.eye(6), view="more")
    assert rights(path) == (1234, 5678, 0o640)
    assert rights(path.with_name(".a.vf.lock")) == (1234, 5678, 0o640)


AS_COLLEAGUE = """
    import os, sys
    import numpy, viewfold
    from viewfold import store, tables, estimators  # while root may still read the code
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
        other = run(AS_COLLEAGUE, path, tmp_path / "warm.vf", stderr=subprocess.PIPE)
        _, said = other.communicate()
        assert other.returncode == 0, said
        assert "colleague" in names(viewfold.load(path))
        assert rights(path) == (4321, 5678, 0o660)
    finally:
        for left in folder.iterdir():
            left.unlink()
        folder.rmdir()


def test_a_file_in_a_group_that_cannot_be_kept_is_closed_to_the_new_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "chown"):
        pytest.skip("no groups here")
    path.chmod(0o664)

    def refuse(*_: Any) -> None:
        raise PermissionError

    real = os.stat

    def of_another_group(where: Any, *args: Any, **options: Any) -> Any:
        found = real(where, *args, **options)
        if Path(where) == path:
            values = list(found)
            values[5] = found.st_gid + 1
            return os.stat_result(values)
        return found

    monkeypatch.setattr(os, "chown", refuse)
    monkeypatch.setattr(os, "stat", of_another_group)
    with replacing(path) as draft:
        draft.write_text("x")
    monkeypatch.undo()
    assert rights(path)[2] == 0o604


# -- other files that are replaced


def test_outputs_are_replaced_whole_and_as_private_as_asked(tmp_path: Path, path: Path) -> None:
    output = tmp_path / "labels.csv"
    path.chmod(0o640)
    with replacing(output, like=path) as draft:
        draft.write_text("one")
        assert draft.suffix == ".csv"
        assert not output.exists()
    assert (output.read_text(), rights(output)[2]) == ("one", 0o640)
    output.chmod(0o644)
    with replacing(output, like=path) as draft:
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
    script = """
        import sys
        from viewfold._replace import replacing
        from viewfold.store import writing
        assert not {"duckdb", "sklearn", "pandas", "numpy"} & set(sys.modules), "slow to import"
    """
    assert run(script).wait() == 0
