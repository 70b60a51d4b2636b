"""Models in files: `load`, `save`, `edit`, `undo`, `restore` and `forget`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from viewfold._option import option
from viewfold.core.log import FINAL, Log, noted
from viewfold.core.names import lost
from viewfold.core.state import State
from viewfold.core.transitions import keep_samples
from viewfold.engine import current_engine
from viewfold.errors import StateFileError
from viewfold.registry import METHODS
from viewfold.store._catalogue import MOST_KEPT
from viewfold.store._file import Change, kept_in, read, write
from viewfold.store._kept import known_to, restoring, undoing
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


def save(
    model: FoldingEstimator, path: str | os.PathLike[str], *, keep: int = 1, wait: float = 60
) -> None:
    """Write a model to a ``.vf`` file; see `FoldingEstimator.save`, and `edit` for `keep`."""
    _check_keep(keep)
    with writing(path, wait):
        write(path, state_of(model), keep=keep)


@contextmanager
def edit(
    path: str | os.PathLike[str],
    *,
    new: FoldingEstimator | None = None,
    keep: int | None = None,
    wait: float = 60,
) -> Iterator[FoldingEstimator]:
    """Change the model in a ``.vf`` file: all that is done to it in the block is one transaction.

    Other writers wait. The file is replaced when the block ends, and stays as it is if the block
    raises. What was done can be taken back with `viewfold.undo`; samples that were forgotten are
    gone from the states to return to as well, and so are encoders if they are not kept any more.
    The log gets an entry for every change.

    Parameters
    ----------
    path : path
        A file that `save` or the command line wrote.
    new : FCMVC or ViewFold, optional
        What to begin with if there is no such file.
    keep : int, optional
        How many earlier states the file keeps from now on, for `undo` and `restore`: each takes as
        much space as the state of now. As many as before if not given, which is one in a new file.
        If there are more, the oldest go.
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
    _check_keep(keep)
    with writing(path, wait):
        begin = None if new is None or os.path.exists(path) else state_of(new)
        before = begin or read(path)
        assert before is not None
        model = model_of(before)
        settings, (had, older) = _settings(model), kept_in(path)
        yield model
        after = _following(before, settings, model)
        number = had if keep is None else keep
        if after.log == before.log and (begin is not None or number == had):
            return
        revise = _revision(before, after, _gone(before, after))
        kept: list[State | str] = list(older)
        if any(event.what != FINAL for event in after.log[len(before.log) :]):
            back = before if revise is None else revise(before)
            unchanged = back is before and begin is None
            kept[:0] = [] if back is None else ["main" if unchanged else back]
        write(path, after, kept=kept, change=revise, keep=number)


def undo(
    path: str | os.PathLike[str], *, entry: int | None = None, wait: float = 60
) -> FoldingEstimator:
    """Return a ``.vf`` file to the state before the last change; the log gets an entry for it.

    Again and again, it takes back one change after the other, as far as states were kept
    (`viewfold.edit` has `keep`).

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
        held, taken = undoing(path, entry)
        latest, *older = [state.schema for state in held.states]
        undoes = taken[0].entry if taken else None
        back = _returned(path, latest, held.log, "undo", undoes)
        write(path, back, kept=older, keep=held.keep)
    return model_of(back)


def restore(path: str | os.PathLike[str], *, entry: int, wait: float = 60) -> FoldingEstimator:
    """Return a ``.vf`` file to the state after an entry of its log, which gets an entry for it.

    The state of now is kept like one before any other change, so that `undo` takes a restore back.

    Parameters
    ----------
    path : path
        The file.
    entry : int
        The entry; ``viewfold status`` lists those whose state was kept. 0 is before the first.
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
    >>> with viewfold.edit(path, new=viewfold.ViewFold(2), keep=3) as model:
    ...     model = model.partial_fit(np.eye(6), view="labs")
    >>> for name in ("scan", "text"):
    ...     with viewfold.edit(path) as model:
    ...         model = model.partial_fit(np.eye(6), view=name)
    >>> [view.name for view in viewfold.restore(path, entry=1).views_]
    ['labs']
    >>> [view.name for view in viewfold.undo(path).views_]
    ['labs', 'scan', 'text']
    """
    with writing(path, wait):
        held, wanted = restoring(path, entry)
        older = [state.schema for state in held.states]
        back = _returned(path, wanted.schema, held.log, "restore", entry + 1)
        write(path, back, kept=["main", *older], keep=held.keep)
    return model_of(back)


def forget(
    path: str | os.PathLike[str], ids: Iterable[int | str], *, wait: float = 60
) -> FoldingEstimator:
    """Remove samples from a ``.vf`` file for good: from the state, and from all it can return to.

    The same as `forget` of the model in `edit`, but for samples that only a state to return to
    still knows, as after a `restore`: these are removed, too.

    Parameters
    ----------
    path : path
        The file.
    ids : array-like
        Samples. A text is taken for a number where samples are known by numbers.
    wait : float, default=60
        Seconds to wait for another program that writes to the file.

    Returns
    -------
    FCMVC or ViewFold
        What the file holds now.

    Raises
    ------
    ValueError
        If no state in the file knows one of them. Then nothing was done.

    Examples
    --------
    >>> import tempfile, numpy as np, viewfold
    >>> path = tempfile.mkdtemp() + "/model.vf"
    >>> viewfold.ViewFold(2).fit(np.eye(6)).save(path)
    >>> viewfold.forget(path, [3]).ids_
    array([0, 1, 2, 4, 5])
    """
    asked = list(dict.fromkeys(ids))
    with writing(path, wait):
        before = read(path)
        assert before is not None
        gone = _anywhere(path, asked)
        here = pd.Index(before.ids)
        model = model_of(before)
        mine = gone[gone.isin(here)]
        after = before if not len(mine) else state_of(model.forget(mine))
        facts = {"n_forgotten": len(gone), "note": lost(before, after)}
        log = noted(before.log, FINAL, after.n_samples, **facts)
        after = replace(after, log=log)
        keep, older = kept_in(path)
        write(path, after, kept=older, change=_revision(before, after, gone), keep=keep)
    return model_of(after)


def _check_keep(keep: int | None) -> None:
    if keep is not None and not (isinstance(keep, int) and 0 <= keep <= MOST_KEPT):
        raise ValueError(
            f"{option('keep')} is {keep!r}, but should be a whole number from 0 to {MOST_KEPT}: "
            "how many earlier states a file keeps, each as large as the state of now."
        )


def _returned(
    path: str | os.PathLike[str], schema: str, log: Log, what: str, undoes: int | None
) -> State:
    """Return an earlier state with the log of now, and an entry that says so."""
    earlier = read(path, schema)
    assert earlier is not None
    return replace(earlier, log=noted(log, what, earlier.n_samples, undoes=undoes))


def _anywhere(path: str | os.PathLike[str], asked: list[int | str]) -> pd.Index:
    """Return samples as the states of a file know them; each must be known to one of them."""
    written = {one: _written(one) for one in asked}
    known = known_to(path, [text for texts in written.values() for text in texts])
    found: list[int | str] = []
    for one, texts in written.items():
        same = next((known[text] for text in texts if text in known), [])
        # A number and a text that look the same are two samples: the one that was named is meant.
        found += [one] if one in same else same
        if not same:
            raise ValueError(f"Unknown samples: {one!r}. Nothing was done.")
    return pd.Index(found, tupleize_cols=False).unique()


def _written(one: int | str) -> list[str]:
    """Return how a sample may be written in a file: numbers have no zeros before them."""
    text = str(one)
    return [text, str(int(text))] if text.lstrip("-").isdecimal() else [text]


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
    if any(event.n_clusters is not None for event in after.log[len(before.log) :]):
        settings = {**settings, "n_clusters": model.n_clusters}  # `recluster` has its own entry
    if _settings(model) != settings:
        after = replace(after, log=noted(after.log, "params", after.n_samples))
    return after


def _settings(model: FoldingEstimator) -> dict[str, Any]:
    """Return the parameters for comparison: the position of a RandomState does not count."""
    return {
        name: np.random.RandomState if isinstance(value, np.random.RandomState) else value
        for name, value in model.get_params().items()
    }


def _revision(before: State, after: State, gone: pd.Index) -> Change | None:
    """Return what has to become of states to return to: without the forgotten, or encoders."""
    private = not after.params["keep_encoders"] and before.params["keep_encoders"]
    if not private and not len(gone):
        return None

    def revise(state: State) -> State | None:
        left = _without(state, gone)
        return _private(left) if private and left is not None else left

    return revise


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
