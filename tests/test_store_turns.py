"""Writers of one file: first come, first served, and nobody is in the way."""

import os
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from writers import LOOKS, run, until_queued

from viewfold import store
from viewfold.errors import BusyError
from viewfold.store import _lock


@LOOKS
def test_writers_are_served_in_the_order_in_which_they_came(small_state: Path) -> None:
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
    log = small_state.with_name("log")
    log.touch()
    others = [run(script, small_state, log, name) for name in "abcdef"]
    with store.writing(small_state):
        for i, other in enumerate(others):
            assert other.stdin is not None
            assert other.stdout is not None
            other.stdout.readline()
            other.stdin.write("\n")
            other.stdin.flush()
            until_queued(small_state, i + 2)
        assert log.read_text() == ""
    assert [other.wait() for other in others] == [0] * 6
    assert log.read_text() == "abcdef"


@LOOKS
def test_nobody_starves(small_state: Path) -> None:
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
    log = small_state.with_name("log")
    log.touch()
    others = [run(script, small_state, log, name) for name in "abcd"]
    for other in others:
        assert other.stdout is not None
        other.stdout.readline()
    with store.writing(small_state):  # nobody has a head start
        for other in others:
            assert other.stdin is not None
            other.stdin.write("\n")
            other.stdin.flush()
        until_queued(small_state, 5)
    assert [other.wait() for other in others] == [0] * 4
    assert Counter(log.read_text()) == dict.fromkeys("abcd", 10)


def test_threads_take_turns_too_and_in_their_order(small_state: Path) -> None:
    order: list[int] = []

    def work(i: int) -> None:
        with store.writing(small_state):
            order.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    with store.writing(small_state):
        for i, thread in enumerate(threads):
            thread.start()
            while len(_lock._waiting[small_state.resolve()]) < i + 2:
                time.sleep(0.001)
        assert not order
    for thread in threads:
        thread.join()
    assert order == list(range(8))


def test_a_killed_writer_is_in_nobodys_way(small_state: Path) -> None:
    script = """
        import os, sys
        from viewfold import store
        with store.writing(sys.argv[1]):
            os.kill(os.getpid(), 9)
    """
    run(script, small_state).wait()
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


@LOOKS
def test_who_waited_for_a_lock_that_was_removed_queues_at_the_new_one(small_state: Path) -> None:
    other = run(HOLDS, small_state)
    assert other.stdout is not None
    other.stdout.readline()
    lock, served = small_state.with_name(".a.vf.lock"), []

    def work() -> None:
        with store.writing(small_state) as turn:
            turn.check()
            served.append(os.path.samestat(lock.stat(), os.fstat(turn.handle)))

    thread = threading.Thread(target=work)
    thread.start()
    until_queued(small_state, 2)
    lock.unlink()
    other.communicate("\n")
    thread.join()
    assert served == [True]


@pytest.mark.skipif(not hasattr(_lock, "OPEN_FILE"), reason="there are locks of one kind only")
def test_where_locks_belong_to_processes_they_keep_others_away_too(
    small_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = run(HOLDS, small_state)
    assert other.stdout is not None
    other.stdout.readline()
    monkeypatch.setattr(_lock, "OPEN_FILE", False)
    with pytest.raises(BusyError, match="another program"), store.writing(small_state, wait=0):
        pass
    other.communicate("\n")
    with store.writing(small_state, wait=0):
        third = run(
            HOLDS.replace("sys.argv[1])", "sys.argv[1], wait=0)"),
            small_state,
            stderr=subprocess.DEVNULL,
        )
        assert third.wait() == 1
    assert run(HOLDS, small_state).communicate("\n")[0] == "holds\n"
