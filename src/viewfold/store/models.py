"""Models in files: `load`, `save`, `edit` and `undo`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from viewfold.core.log import FINAL, noted
from viewfold.core.state import State
from viewfold.core.transitions import keep_samples
from viewfold.engine import current_engine
from viewfold.errors import StateFileError
from viewfold.registry import METHODS
from viewfold.store import queries
from viewfold.store._file import read, write
from viewfold.store._lock import writing

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator


def load(path: str | os.PathLike[str]) -> FoldingEstimator:
    """Return the model that a ``.vf`` file holds; it goes on exactly as the one that was saved.

    Parameters
    ----------
    path : path
        A file that `save` or the command line wrote.

    Returns
    -------
    FCMVC or ViewFold

    Raises
    ------
    StateFileError
        If the file is damaged, foreign or of a newer version.

    Examples
    --------
    >>> import tempfile, numpy as np, viewfold
    >>> path = tempfile.mkdtemp() + "/model.vf"
    >>> viewfold.ViewFold(2).fit(np.eye(6)).save(path)
    >>> viewfold.load(path)
    ViewFold(n_clusters=2)
    """
    state = read(path)
    assert state is not None
    return model_of(state)


def save(model: FoldingEstimator, path: str | os.PathLike[str], *, wait: float = 60) -> None:
    """Write a model to a ``.vf`` file; see `FoldingEstimator.save`."""
    with writing(path, wait):
        write(path, state_of(model))


@contextmanager
def edit(
    path: str | os.PathLike[str], *, new: FoldingEstimator | None = None, wait: float = 60
) -> Iterator[FoldingEstimator]:
    """Change the model in a ``.vf`` file: all that is done to it in the block is one transaction.

    Other writers wait. The file is replaced when the block ends, and stays as it is if the block
    raises. What a fold or `extend` did can be taken back with `viewfold.undo`; samples that were
    forgotten are gone from there as well, and so are encoders if they are not kept any more. The
    log gets an entry for every change.

    Parameters
    ----------
    path : path
        A file that `save` or the command line wrote.
    new : FCMVC or ViewFold, optional
        What to begin with if there is no such file.
    wait : float, default=60
        Seconds to wait for another program that writes to the file.

    Yields
    ------
    FCMVC or ViewFold

    Examples
    --------
    >>> import tempfile, numpy as np, viewfold
    >>> path = tempfile.mkdtemp() + "/model.vf"
    >>> with viewfold.edit(path, new=viewfold.ViewFold(2)) as model:
    ...     model = model.partial_fit(np.eye(6), view="labs")
    >>> viewfold.load(path).ids_
    array([0, 1, 2, 3, 4, 5])
    """
    with writing(path, wait):
        begin = None if new is None or os.path.exists(path) else state_of(new)
        before = begin or read(path)
        assert before is not None
        model = model_of(before)
        settings = _settings(model)
        yield model
        after = _following(before, settings, model)
        if after.log != before.log:
            undone = _to_return_to(path, before, after)
            if undone is not None and not model.keep_encoders:
                undone = _private(undone)
            write(path, after, before=undone, unchanged=undone is before)


def undo(
    path: str | os.PathLike[str], *, entry: int | None = None, wait: float = 60
) -> FoldingEstimator:
    """Return a ``.vf`` file to the state before the last change; the log gets an entry for it.

    Parameters
    ----------
    path : path
        The file.
    entry : int, optional
        The entry of the log that is to be taken back, as a safeguard against taking back another.
        Needed after a `forget`, which cannot be taken back itself.
    wait : float, default=60
        Seconds to wait for another program that writes to the file.

    Returns
    -------
    FCMVC or ViewFold
        What the file holds now.

    Examples
    --------
    >>> import tempfile, numpy as np, viewfold
    >>> path = tempfile.mkdtemp() + "/model.vf"
    >>> viewfold.ViewFold(2).fit({"labs": np.eye(6)}).save(path)
    >>> with viewfold.edit(path) as model:
    ...     model = model.partial_fit(np.eye(6), view="scan")
    >>> viewfold.undo(path).log_[["what", "view", "undoes"]].to_numpy().tolist()
    [['fold', 'labs', <NA>], ['fold', 'scan', <NA>], ['undo', None, 2]]
    """
    with writing(path, wait):
        log, taken = queries.undoing(path, entry)
        earlier = read(path, before=True)
        assert earlier is not None
        undoes = taken[0].entry if taken else None
        back = replace(earlier, log=noted(log, "undo", earlier.n_samples, undoes=undoes))
        write(path, back)
    return model_of(back)


def model_of(state: State) -> FoldingEstimator:
    """Return the model that was saved."""
    try:
        # A copy: a RandomState goes on, and what was saved must not.
        model = METHODS[state.method](**deepcopy(dict(state.params)))
        model._check_parameters()
    except (KeyError, TypeError, ValueError):
        raise StateFileError(
            f"The file holds a {state.method} with {sorted(state.params)}, which this viewfold "
            "does not know. Install a newer one, or the package that brings it along."
        ) from None
    if not state.views and not state.log:
        return model
    return model._keep(replace(state, method="", params={}))  # the model has them itself


def state_of(model: FoldingEstimator) -> State:
    """Return the state of a model as a file holds it."""
    name = METHODS.name_of(type(model)) or type(model).__name__
    state = replace(model._now, method=name, params=model.get_params())
    return state if model.keep_encoders else _private(state)


def _following(before: State, settings: dict[str, Any], model: FoldingEstimator) -> State:
    """Return the state of a model, with a log that continues the one before."""
    after = state_of(model)
    if after.views and after.log[: len(before.log)] != before.log:
        after = after.after(before.log)  # `fit` begins a new one
    if _settings(model) != settings:
        after = replace(after, log=noted(after.log, "params", after.n_samples))
    return after


def _settings(model: FoldingEstimator) -> dict[str, Any]:
    """Return the parameters for comparison: the position of a RandomState does not count."""
    return {
        name: np.random.RandomState if isinstance(value, np.random.RandomState) else value
        for name, value in model.get_params().items()
    }


def _to_return_to(path: str | os.PathLike[str], before: State, after: State) -> State | None:
    """Return the state that undo will return to, without samples that were forgotten."""
    gone = _gone(before, after)
    if any(event.what != FINAL for event in after.log[len(before.log) :]):
        return _without(before, gone)
    if not os.path.exists(path):
        return None
    try:
        earlier = read(path, before=True)
    except StateFileError as error:
        warnings.warn(
            f"The part of the file that undo returns to is damaged and was left out: {error}",
            stacklevel=4,
        )
        return None
    return None if earlier is None else _without(earlier, gone)


def _gone(old: State, new: State) -> pd.Index:
    """Return the samples that were forgotten, also those that were added again afterwards."""
    if not old.views or not new.views:
        return pd.Index([])
    ids, kept = pd.Index(old.ids), pd.Index(new.ids)
    if any(event.what == FINAL for event in new.log[len(old.log) :]):
        kept = kept[new.added <= len(old.log)]
    return ids[:0] if ids.equals(kept) else ids[kept.get_indexer(ids) < 0]


def _private(state: State) -> State:
    """Return a state without encoders, and with keep_encoders=False for later folds."""
    state = replace(state, params={**state.params, "keep_encoders": False})
    return state.without_encoders(current_engine())


def _without(state: State, gone: pd.Index) -> State | None:
    """Return a state to return to, without samples that were forgotten."""
    kept = ~pd.Index(state.ids).isin(gone)
    if kept.all():
        return state
    if not kept.any():
        return None
    return keep_samples(current_engine(), state, kept, model_of(state)._method())
