"""Several writers of one file: programs that write, and when they have queued."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from viewfold import ViewFold
from viewfold.store import _lock

LOOKS = pytest.mark.skipif(
    not getattr(_lock, "OPEN_FILE", False), reason="looking at the lock file would release it"
)


@pytest.fixture
def small_state(tmp_path: Path) -> Path:
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
    """Wait until so many writers hold or wait for a lock: each has locked a byte of it.

    Looking locks bytes, too: a writer that took its number meanwhile would pass them by, so
    nobody may take one while we look.
    """
    until = time.monotonic() + 60
    handle = os.open(path.parent / f".{path.name}.lock", os.O_RDWR)
    held = 0
    try:
        while time.monotonic() < until and _lock._wait(handle, 0, 1, until):
            held = 0
            for place in range(_lock.FIRST + 1, _lock.FIRST + 40):
                free = _lock._try(handle, place, 1)
                held += not free
                if free:
                    _lock._release(handle, place, 1)
            _lock._release(handle, 0, 1)
            if held >= many:
                return
            time.sleep(0.02)
        raise AssertionError(f"{held} of {many} are there")
    finally:
        os.close(handle)


def names(model: Any) -> set[str]:
    return {view.name for view in model.views_}
