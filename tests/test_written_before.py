"""What a command says that it has written is what it has written, wherever it was interrupted."""

import errno
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from writers import worth_failing

import viewfold
from commands import Run, runner
from viewfold import ViewFold
from viewfold.rows import DiskEngine

CALLS: list[tuple[Any, str]] = [
    (os, "fsync"),
    (os, "link"),
    (os, "replace"),
    (os, "unlink"),
    (shutil, "rmtree"),
]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)


def eio() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


class Fault:
    """Raises at the call of a number, before it is made or when it was."""

    def __init__(self, at: int, error: Callable[[], BaseException], late: bool) -> None:
        self.left, self.error, self.late = at, error, late
        self.callers: list[tuple[str, str, str]] = []

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **more: Any) -> Any:
            caller = sys._getframe(1)
            self.callers.append((call.__name__, caller.f_code.co_filename, caller.f_code.co_name))
            self.left -= 1
            if self.left != 0:
                return call(*args, **more)
            if self.late:
                call(*args, **more)
            error = self.error()
            if isinstance(error, OSError) and not isinstance(args[0], int):
                error.filename = os.fspath(args[0])  # as the system does; not of an open file
            raise error

        return counted


def write_good(path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(3):
        new = ViewFold(2, n_init=1, random_state=0)
        with viewfold.edit(path, new=new, keep=3, engine=DiskEngine(2)) as model:
            model.partial_fit(rng.normal(size=(30, 3)), ids=range(30), view=f"v{i}")


@pytest.mark.parametrize(
    ("name", "error", "late"),
    [  # every pair of two of the three
        ("p.vf", KeyboardInterrupt, False),
        ("p.vf", eio, True),
        ("p.vfd", KeyboardInterrupt, True),
        ("p.vfd", eio, False),
    ],
)
def test_what_is_said_to_be_written_is_written(
    name: str, error: Any, late: bool, tmp_path: Path, run: Run
) -> None:
    good, work = tmp_path / "good" / name, tmp_path / "work"
    good.parent.mkdir()
    write_good(good)
    n = len(viewfold.load(good).log_)

    def undo(step: int) -> tuple[Fault, int, str, str]:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(good.parent, work)
        fault = Fault(step, error, late)
        with pytest.MonkeyPatch.context() as patch:
            for module, call in CALLS:
                patch.setattr(module, call, fault.wrap(getattr(module, call)))
            return fault, *run("undo --yes --json", work / name)

    outcomes = []
    for step in worth_failing(undo(0)[0].callers):
        fault, code, said, err = undo(step)
        changed = len(viewfold.load(work / name).log_) == n + 1
        if fault.left > 0:
            assert code == 0, said + err
            break
        if code == 0:  # what could not be removed is left to the next writer
            assert changed
            continue
        facts = json.loads(said)["error"]
        outcomes.append(changed)
        assert [Path(path).name for path in facts["written"]] == [name] * changed
        assert ("nothing was changed" in facts["message"]) <= (not changed)
        if error is eio:
            assert str(work) in facts["message"], "which file is it about?"
    assert outcomes[0] is False
    assert True in outcomes
