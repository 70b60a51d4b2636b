"""What a state holds: its model or a table of samples, its log, and who moved since an entry."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from viewfold._util.table import Table
    from viewfold._util.types import Array
    from viewfold.estimators import FoldingEstimator
    from viewfold.rows import Engine
    from viewfold.state.names import Transfers
    from viewfold.state.state import State


def load_folded(path: Path) -> FoldingEstimator:
    """Load the model in a state, which must have folded a view."""
    from viewfold.store import load

    return check_folded(path, load(path))


def check_folded(path: Path, model: FoldingEstimator) -> FoldingEstimator:
    if not hasattr(model, "views_"):
        raise empty_state(path)
    return model


def check_table(path: Path, table: Table | None) -> Table:
    """Return a table of samples, if the state has any."""
    if table is None:
        raise empty_state(path)
    return table


def empty_state(path: Path) -> ValueError:
    return ValueError(f"{path} is empty: no view was folded yet. Add one with viewfold add.")


def describe_model(model: FoldingEstimator) -> dict[str, Any]:
    """Return which views a model has folded, and of how many samples."""
    names = [record.name for record in model.views_] if hasattr(model, "views_") else []
    return {"views": names, "samples": model.n_samples_ if names else 0}


def last_entry(model: FoldingEstimator) -> int:
    """Return the last entry of the log of a model, 0 if it is empty."""
    state = getattr(model, "_state", None)
    return state.log[-1].entry if state is not None and state.log else 0


def transfers_since(engine: Engine, state: State, entry: int) -> Transfers | None:
    """Count who went where since an entry of the log; None if labels of then are not known."""
    from viewfold.state.names import Transfers

    column = bisect_right(state.steps, entry) - 1
    if column < 0:
        return None

    def count(history: Array, added: Array) -> Transfers:
        before = history[:, column].copy()
        before[added > entry] = -1
        return Transfers.of(before, history[:, -1])

    found: Transfers = engine.reduce(
        count, state.history, state.added, combine=lambda one, other: one + other
    )
    return found
