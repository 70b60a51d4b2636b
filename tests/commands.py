"""Run commands in this process, as a user types them."""

import contextlib
import io
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from viewfold import cli

Run = Callable[..., tuple[int, str, str]]


def runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs a command, and returns its exit code, output and messages."""

    def command(line: str, *more: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["viewfold", *shlex.split(line), *map(str, more)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return command


def typed(line: str) -> str:
    """Run a command that works; return all it says. For fixtures that are made once."""
    before, sys.argv = sys.argv, shlex.split(line)
    said = io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            pytest.raises(SystemExit) as ended,
        ):
            cli.main()
    finally:
        sys.argv = before
    assert not ended.value.code, said.getvalue()
    return said.getvalue()


def write_patients(folder: Path) -> dict[str, pd.DataFrame]:
    """Write and return two views of 66 patients in clear clusters: 60 of them, and six new ones."""
    rng = np.random.default_rng(0)
    y = np.arange(66) % 3
    ids = pd.Index([f"p{i}" for i in range(66)], name="patient")
    views = {}
    for name in ("labs", "scan"):
        X = 6 * y[:, None] + rng.normal(size=(66, 5))
        frame = views[name] = pd.DataFrame(X, index=ids).add_prefix(name)
        frame[:60].to_csv(folder / f"{name}.csv")
        frame[60:].to_csv(folder / f"{name}-new.csv")
    return views
