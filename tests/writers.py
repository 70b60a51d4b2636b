"""Several writers of one file: programs that write; which of their calls should fail."""

import subprocess
import sys
import textwrap
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from viewfold import ViewFold


@pytest.fixture
def small_state(tmp_path: Path) -> Path:
    ViewFold(2, n_init=1).fit(np.eye(6)).save(tmp_path / "a.vf")
    return tmp_path / "a.vf"


def run(script: str, *args: Any, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def worth_failing(calls: Sequence[Hashable]) -> list[int]:
    """Return which calls are to fail, and one that is not there: a line's first and its last."""
    first = {line: at for at, line in reversed([*enumerate(calls, 1)])}
    last = {line: at for at, line in enumerate(calls, 1)}
    return sorted({*first.values(), *last.values(), len(calls) + 1})


def names(model: Any) -> set[str]:
    return {view.name for view in model.views_}
