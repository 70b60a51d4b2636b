"""States by their path: whether there is one, and the model in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from viewfold._util.table import Table
    from viewfold.estimators import FoldingEstimator


def is_there(state: Path) -> bool:
    from viewfold.store import store_of

    return store_of(state).exists()


def load_model(state: Path) -> FoldingEstimator:
    from viewfold.store import load

    return load(state)


def folded_model(state: Path) -> FoldingEstimator:
    """Return the model in a state, which must have folded a view."""
    return check_folded(state, load_model(state))


def check_folded(state: Path, model: FoldingEstimator) -> FoldingEstimator:
    """Return a model, if there is anything in it."""
    if not hasattr(model, "views_"):
        raise empty(state)
    return model


def folded_table(state: Path, table: Table | None) -> Table:
    """Return a table of samples, if there are any."""
    if table is None:
        raise empty(state)
    return table


def empty(state: Path) -> ValueError:
    return ValueError(f"{state} is empty: no view was folded yet. Add one with viewfold add.")


def returned(model: FoldingEstimator) -> dict[str, Any]:
    """Return what a state holds after it went back: its views and how many samples."""
    names = [record.name for record in model.views_] if hasattr(model, "views_") else []
    return {"views": names, "samples": model.n_samples_ if names else 0}
