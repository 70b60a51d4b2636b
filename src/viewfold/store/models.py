"""Models in files: `load`, `save`, `edit`, `undo`, `restore` and `forget`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from viewfold._util.arguments import is_whole_number, suggests_arguments
from viewfold.errors import StateFileError
from viewfold.rows import BucketRows, Engine, RowSet, engine_of, using
from viewfold.state.admission import meant
from viewfold.state.log import FINAL, Log, noted
from viewfold.state.names import lost
from viewfold.state.registry import METHODS
from viewfold.state.state import State
from viewfold.state.transitions import keep_samples
from viewfold.store._catalogue import MOST_KEPT
from viewfold.store._file import Change
from viewfold.store.kept import restoring, undoing
from viewfold.store.kinds import store_of

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator


@suggests_arguments
def load(path: str | os.PathLike[str], *, engine: Engine | None = None) -> FoldingEstimator:
    """Return the model that a state file holds; it goes on exactly as the one that was saved.

    Parameters
    ----------
    path : path
        A ``.vf`` file, or a ``.vfd`` folder, that `save` or the command line wrote.
    engine : Engine, optional
        Where the rows of its samples are to be. If not given: those of a file in memory, and those
        of a folder in its buckets, of which a `DiskEngine` reads a few at a time.

    Returns
    -------
    FCMVC or ViewFold

    Raises
    ------
    StateFileError
        If the file is damaged, foreign or of a newer version.

    See Also
    --------
    edit : Load, change and write in one step.
    verify : Check everything in a file.

    Examples
    --------
    >>> import tempfile, numpy as np, viewfold
    >>> path = tempfile.mkdtemp() + "/model.vf"
    >>> viewfold.ViewFold(2).fit(np.eye(6)).save(path)
    >>> viewfold.load(path)
    ViewFold(n_clusters=2)
    """
    state = store_of(path).read(path, engine=engine)
    assert state is not None
    return model_of(state)


def save(
    model: FoldingEstimator, path: str | os.PathLike[str], *, keep: int = 1, wait: float = 60
) -> None:
    """Write a model to a state file; see `FoldingEstimator.save`, and `edit` for `keep`."""
    _check_keep(keep)
    store = store_of(path)
    with store.writing(path, wait):
        written = store.write(path, state_of(model), keep=keep)
    if (
        isinstance(getattr(getattr(model, "_state", None), "ids", None), BucketRows)
        and written.views
    ):
        # What its rows were read from may be what was replaced.
        model._keep(replace(written, method="", params={}))


@suggests_arguments
@contextmanager
def edit(
    path: str | os.PathLike[str],
    *,
    new: FoldingEstimator | None = None,
    keep: int | None = None,
    wait: float = 60,
    engine: Engine | None = None,
) -> Iterator[FoldingEstimator]:
    """Change the model in a state file: all that is done to it in the block is one transaction.

    Other writers wait; of a folder that is not on this machine, the first one to finish wins. The
    file is replaced when the block ends, and stays as it is if the block raises. What was done can
    be taken back with `viewfold.undo`; samples that were forgotten are gone from the states to
    return to as well, and so are encoders that are not kept any more. The log tells every change.

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
    engine : Engine, optional
        Who computes with the samples; see `load`. A new folder has as many buckets as the engine.

    Yields
    ------
    FCMVC or ViewFold

    See Also
    --------
    load : Read the model, and change nothing.
    undo : Take back what the block did.

    Notes
    -----
    The file is written as a whole when the block ends, with the states that it keeps: time and
    space grow with their number. docs/commands.md has measured ones.

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
    store = store_of(path)
    with store.writing(path, wait):
        begin = None if new is None or store.exists(path) else state_of(new)
        model = model_of(before := begin or _changeable(path, engine))
        settings, (had, older) = _settings(model), store.kept_in(path)
        with nullcontext() if engine is None else using(engine):
            yield model
        after = _following(before, settings, model)
        number = had if keep is None else keep
        if after.log == before.log and (begin is not None or number == had):
            return
        revise = _revision(before, after, _gone(before, after))
        kept = [*_returning(before, after, revise, new=begin is not None), *older]
        written = store.write(path, after, kept=kept, change=revise, keep=number)
        if written is not after:  # its rows are in other files now
            model._keep(replace(written, method="", params={}))


def _changeable(path: str | os.PathLike[str], engine: Engine | None = None) -> State:
    """Return a state that is going to be read more than once."""
    state = store_of(path).read(path, engine=engine, unpack=True)
    assert state is not None
    return state


def _returning(
    before: State, after: State, revise: Change | None, *, new: bool
) -> list[State | str]:
    """Return what undo returns to: the state before, unless there was a forget only."""
    if not any(event.what != FINAL for event in after.log[len(before.log) :]):
        return []
    back = before if revise is None else revise(before)
    if back is None:
        return []
    return ["main" if back is before and not new else back]


@suggests_arguments
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

    See Also
    --------
    restore : Return to the state after any entry that was kept.

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
    store = store_of(path)
    with store.writing(path, wait):
        held, taken = undoing(path, entry)
        latest, *older = [state.schema for state in held.states]
        undoes = taken[0].entry if taken else None
        back = _returned(path, latest, held.log, "undo", undoes)
        return model_of(store.write(path, back, kept=older, keep=held.keep))


@suggests_arguments
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

    See Also
    --------
    undo : Take back the last change.

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
    store = store_of(path)
    with store.writing(path, wait):
        held, wanted = restoring(path, entry)
        older = [state.schema for state in held.states]
        back = _returned(path, wanted.schema, held.log, "restore", entry + 1)
        return model_of(store.write(path, back, kept=["main", *older], keep=held.keep))


@suggests_arguments
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

    See Also
    --------
    ViewFold.forget : The same for a model in memory.

    Examples
    --------
    >>> import tempfile, numpy as np, viewfold
    >>> path = tempfile.mkdtemp() + "/model.vf"
    >>> viewfold.ViewFold(2).fit(np.eye(6)).save(path)
    >>> viewfold.forget(path, [3]).ids_
    array([0, 1, 2, 4, 5])
    """
    asked, store = list(dict.fromkeys(ids)), store_of(path)
    with store.writing(path, wait):
        before = _changeable(path)
        gone = _anywhere(path, before, asked)
        engine = engine_of(before.ids)
        mine = engine.collect(engine.keep(before.ids, _among(engine, before, gone)))
        after = before if not mine.size else state_of(model_of(before).forget(mine))
        facts = {"n_forgotten": len(gone), "note": lost(before, after)}
        log = noted(before.log, FINAL, after.n_samples, **facts)
        after = replace(after, log=log)
        keep, older = store.kept_in(path)
        change = _revision(before, after, gone)
        return model_of(store.write(path, after, kept=older, change=change, keep=keep))


def _check_keep(keep: int | None) -> None:
    if keep is not None and not (is_whole_number(keep) and 0 <= keep <= MOST_KEPT):
        raise ValueError(
            f"keep=… is {keep!r}, but should be a whole number from 0 to {MOST_KEPT}: "
            "how many earlier states a file keeps, each as large as the state of now."
        )


def _returned(
    path: str | os.PathLike[str], schema: str, log: Log, what: str, undoes: int | None
) -> State:
    """Return an earlier state with the log of now, and an entry that says so."""
    earlier = store_of(path).read(path, schema)
    assert earlier is not None
    return replace(earlier, log=noted(log, what, earlier.n_samples, undoes=undoes))


def _anywhere(path: str | os.PathLike[str], state: State, asked: list[int | str]) -> pd.Index:
    """Return samples as the states of a file know them; each must be known to one of them."""
    written = {one: _written(one) for one in asked}
    known = store_of(path).known_to(path, [text for texts in written.values() for text in texts])
    found: list[int | str] = []
    for one, texts in written.items():
        same = next((known[text] for text in texts if text in known), [])
        # A number and a text that look the same are two samples: the one that was named is meant.
        found += [one] if one in same else same
        if not same:
            raise ValueError(f"Unknown samples: {one!r}. Nothing was done.{meant(state, [one])}")
    return pd.Index(found, tupleize_cols=False).unique()


def _written(one: int | str) -> list[str]:
    """Return how a sample may be written in a file: numbers have no zeros before them."""
    text = str(one)
    return [text, str(int(text))] if text.removeprefix("-").isdecimal() else [text]


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
    if not old.views or not new.views or old.ids is new.ids:
        return pd.Index([])
    engine = engine_of(old.ids)
    since = len(old.log)
    if not any(event.what == FINAL for event in new.log[since:]):
        since = new.log[-1].entry
    alignment = engine.join(new.placed(engine).ids, old.ids)
    added = alignment.partners(new.placed(engine).added, fill=-1)
    gone = engine.map(lambda entry: (entry < 0) | (entry > since), added)
    return pd.Index(engine.collect(engine.keep(old.ids, gone)))


def _private(state: State) -> State:
    """Return a state without encoders, and with keep_encoders=False for later folds."""
    state = replace(state, params={**state.params, "keep_encoders": False})
    return state.without_encoders(engine_of(state.ids))


def _without(state: State, gone: pd.Index) -> State | None:
    """Return a state to return to, without samples that were forgotten."""
    engine = engine_of(state.ids)
    among = _among(engine, state, gone)
    n = int(engine.reduce(np.count_nonzero, among)) if state.n_samples else 0
    if not n or n == state.n_samples:
        return None if n else state
    kept = engine.map(np.logical_not, among)
    return keep_samples(engine, state, kept, model_of(state)._method())


def _among(engine: Engine, state: State, ids: pd.Index) -> RowSet:
    """Return for each sample of a state whether it is one of these."""
    return engine.map(lambda block: pd.Index(block).isin(ids), state.ids)
