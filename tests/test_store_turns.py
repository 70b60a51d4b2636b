"""Writers of one file take turns, and nobody is in the way."""

import threading
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest
from children import start
from filelock import FileLock

from viewfold import store
from viewfold.errors import BusyError
from viewfold.store import lock


def test_everybody_who_writes_again_and_again_gets_turns(small_state: Path) -> None:
    """Four programs with ten turns each: nobody waits in vain, and no two write at once."""
    script = """
        import sys
        from viewfold import store
        for _ in range(10):
            with store.writing(sys.argv[1], wait=30), open(sys.argv[2], "r+") as file:
                before = file.read()
                file.seek(0)
                file.write(before + sys.argv[3])
    """
    log = small_state.with_name("log")
    log.touch()
    others = [start(script, small_state, log, name) for name in "abcd"]
    assert [other.wait() for other in others] == [0] * 4
    assert Counter(log.read_text()) == dict.fromkeys("abcd", 10)


def test_threads_take_turns_too(small_state: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(i: int) -> None:
        with store.writing(small_state):
            inside.append(i)
            most.append(len(inside))
            time.sleep(0.002)
            inside.remove(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


def test_a_killed_writer_is_in_nobodys_way(small_state: Path) -> None:
    script = """
        import os, sys
        from viewfold import store
        with store.writing(sys.argv[1]):
            os.kill(os.getpid(), 9)
    """
    start(script, small_state).wait()
    with store.writing(small_state, wait=0):
        pass


def test_a_lock_file_of_nonsense_is_no_obstacle(small_state: Path) -> None:
    lock = small_state.with_name(".a.vf.lock")
    for content in (b"", b"x", b"\xff" * 100):
        lock.write_bytes(content)
        with store.writing(small_state, wait=0):
            pass


HOLDS = """
    import sys
    from viewfold import store
    with store.writing(sys.argv[1]):
        print("holds", flush=True)
        sys.stdin.readline()
"""


def test_who_waited_for_a_lock_that_was_removed_takes_the_new_one(small_state: Path) -> None:
    other = start(HOLDS, small_state)
    assert other.stdout is not None
    other.stdout.readline()
    beside, served = small_state.with_name(".a.vf.lock"), []

    def work() -> None:
        with store.writing(small_state) as turn:
            turn.check()
            served.append(beside.exists())

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.2)
    assert not served
    beside.unlink()
    other.communicate("\n")
    thread.join()
    assert served == [True]


def test_another_program_is_kept_away_and_found(small_state: Path) -> None:
    assert lock.is_held(small_state) is False
    other = start(HOLDS, small_state)
    assert other.stdout is not None
    other.stdout.readline()
    assert lock.is_held(small_state) is True
    said = r"a\.vf is being written by another program"
    with pytest.raises(BusyError, match=said), store.writing(small_state, wait=0):
        pass
    other.communicate("\n")
    assert lock.is_held(small_state) is False
    with store.writing(small_state, wait=0):
        assert lock.is_held(small_state) is False, "it is this program"


def test_who_asks_whether_a_state_is_written_is_no_writer(
    small_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks has the lock for a moment: a writer who does not want to wait tries again."""
    refused = []

    class Asked(FileLock):
        def _acquire(self) -> None:
            with nullcontext() if refused else FileLock(self.lock_file):
                super()._acquire()
            if not self.is_locked:
                refused.append(self.lock_file)

    monkeypatch.setattr(lock, "FileLock", Asked)
    with store.writing(small_state, wait=0) as turn:
        turn.check()
    assert len(refused) == 1
