"""Writers of one file: nobody's work is lost, and what the dead left is cleared."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from children import start
from writers import names

import viewfold
from viewfold import ViewFold
from viewfold._util.replace import replacing
from viewfold.errors import BusyError


def fold(path: Path, meanwhile: Callable[[], None]) -> None:
    with viewfold.edit(path) as model:
        model.partial_fit(np.eye(6), view="first")
        meanwhile()


def test_a_writer_whose_lock_was_removed_writes_nothing(small_state: Path) -> None:
    script = """
        import sys, numpy, viewfold
        with viewfold.edit(sys.argv[1], wait=5) as model:
            model.partial_fit(numpy.eye(6), view="second")
    """

    def let_another_in() -> None:
        (small_state.parent / ".a.vf.lock").unlink()
        assert start(script, small_state).wait() == 0

    with pytest.raises(BusyError, match=r"lock of a\.vf"):
        fold(small_state, let_another_in)
    assert "second" in names(viewfold.load(small_state))
    assert "first" not in names(viewfold.load(small_state))
    assert sorted(p.name for p in small_state.parent.iterdir()) == [".a.vf.lock", "a.vf"]


def test_a_file_that_was_replaced_meanwhile_is_left_alone(small_state: Path) -> None:
    content = small_state.read_bytes()

    def replace() -> None:
        (small_state.parent / "copy").write_bytes(content)
        os.replace(small_state.parent / "copy", small_state)

    with pytest.raises(BusyError, match="since it was read"):
        fold(small_state, replace)
    assert small_state.read_bytes() == content
    with pytest.raises(BusyError, match="since it was read"):
        fold(small_state, small_state.unlink)
    assert not small_state.exists()


def test_a_file_that_is_being_edited_is_not_written_from_within(small_state: Path) -> None:
    with viewfold.edit(small_state) as model:
        model.partial_fit(np.eye(6), view="more")
        with pytest.raises(BusyError, match="this very program"):
            ViewFold(3).save(small_state)
    assert "more" in names(viewfold.load(small_state))


def test_a_live_writer_of_a_file_with_a_longer_name_keeps_its_folder(small_state: Path) -> None:
    longer = small_state.with_name("a.vf.bak.vf")
    dead = small_state.with_name(".a.vf.bak.vf.abcdefgh.part")
    with replacing(longer) as draft:
        dead.mkdir()
        ViewFold(3).save(small_state)
        assert dead.exists()  # somebody else's business, too
        draft.write_text("whole")
    assert longer.read_text() == "whole"


def test_what_the_dead_left_is_cleared_and_what_the_living_use_is_not(small_state: Path) -> None:
    script = """
        import os, sys
        from viewfold._util.replace import replacing
        with replacing(sys.argv[1]) as draft:
            draft.write_text("half")
            print("ready", flush=True)
            sys.stdin.readline()
            os.kill(os.getpid(), 9)
    """
    other = start(script, small_state)
    assert other.stdout is not None
    assert other.stdin is not None
    other.stdout.readline()
    beside = {p.name for p in small_state.parent.glob("*.part")}
    assert len(beside) == 1
    ViewFold(3).save(small_state)
    assert {p.name for p in small_state.parent.glob("*.part")} == beside
    other.stdin.write("\n")
    other.stdin.close()
    other.wait()
    assert {p.name for p in small_state.parent.glob("*.part")} == beside
    ViewFold(3).save(small_state)
    assert not list(small_state.parent.glob("*.part"))


def test_a_forked_process_does_not_think_that_the_lock_is_its_own(small_state: Path) -> None:
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
    assert start(script, small_state).wait() == 0
    assert "parent" in names(viewfold.load(small_state))
