"""Files that an engine needs for a while are gone when it is, and the next one removes what a
killed program left."""

import errno
import gc
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from viewfold.rows import BucketEngine, DiskEngine, buckets_for, open_engine


def left_by_a_killed_program(folder) -> list[str]:
    code = (
        "import os, signal, sys; from viewfold.rows import DiskEngine; import numpy as np;"
        "rows = DiskEngine(folder=sys.argv[1]).partition(np.arange(9));"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, folder])
    assert done.returncode == -signal.SIGKILL
    return os.listdir(folder)


def test_the_next_engine_removes_what_a_killed_program_left(tmp_path) -> None:
    (left,) = left_by_a_killed_program(tmp_path)
    living = DiskEngine(folder=str(tmp_path))
    another = DiskEngine(folder=str(tmp_path))
    assert left not in os.listdir(tmp_path)
    assert {os.path.basename(e.folder) for e in (living, another)} == set(os.listdir(tmp_path))
    # Of another machine, locks say nothing.
    os.rename(living.folder, tmp_path / ".viewfold-elsewhere.12345678.part")
    DiskEngine(folder=str(tmp_path)).close()
    assert ".viewfold-elsewhere.12345678.part" in os.listdir(tmp_path)


def test_a_disk_without_locks_will_do(tmp_path, monkeypatch) -> None:
    def no_locks(file: int, how: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", no_locks)
    engine = DiskEngine(folder=str(tmp_path))
    rows, *_ = engine.partition(np.arange(9))
    DiskEngine(folder=str(tmp_path)).close()  # sees no lock, and must not take it for one left
    assert sorted(engine.collect(rows)) == list(range(9))
    del engine, rows
    gc.collect()
    assert not os.listdir(tmp_path)


def test_files_are_gone_when_an_engine_is_closed(tmp_path) -> None:
    with DiskEngine(folder=str(tmp_path)) as engine:
        engine.partition(np.arange(9))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("n_bytes", [0, 10**6, 10**9, 3 * 10**11, 10**15])
@pytest.mark.parametrize("workers", [1, 7])
def test_buckets_fit_in_memory(n_bytes: int, workers: int) -> None:
    memory = 2 * 10**9
    n = buckets_for(n_bytes, memory, workers)
    assert 16 <= n <= 16384
    assert n & (n - 1) == 0
    assert n == 16384 or n_bytes / n * workers * 6 <= memory
    assert n == 16 or n_bytes / (n / 2) * workers * 6 > memory


def test_engines_open_by_name(tmp_path) -> None:
    with open_engine("local", folder=str(tmp_path), n_buckets=3) as engine:
        assert isinstance(engine, BucketEngine)
        assert engine.n_buckets == 3
    with pytest.raises(ValueError, match=r"no engine 'ray'. Choose one of local, dask, spark"):
        open_engine("ray")
    with pytest.raises(ValueError, match=r"'local' has no address.*address='tcp://x'"):
        open_engine("local", address="tcp://x")
    with pytest.raises(ValueError, match=r"memory='much' is no size"):
        open_engine("local", memory="much")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "package"), [("DaskEngine", "distributed"), ("SparkEngine", "pyspark")]
)
def test_what_is_not_installed_is_named_with_the_command(name: str, package: str) -> None:
    extra = name.removesuffix("Engine").lower()
    code = (
        f"import sys; sys.modules[{package!r}] = None; import viewfold.rows as engine\n"
        f"assert not [m for m in sys.modules if m.split('.')[0] in ('dask', 'py4j')]\n"
        f"try: engine.{name}\nexcept ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"pip install 'viewfold[{extra}]'" in done.stdout
