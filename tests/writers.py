"""Several writers of one file: a state to write to; which of the calls should fail."""

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


def worth_failing(calls: Sequence[Hashable]) -> list[int]:
    """Return which calls are to fail, and one that is not there: a caller's first and last."""
    first = {caller: at for at, caller in reversed([*enumerate(calls, 1)])}
    last = {caller: at for at, caller in enumerate(calls, 1)}
    return sorted({*first.values(), *last.values(), len(calls) + 1})


def names(model: Any) -> set[str]:
    return {view.name for view in model.views_}
