"""From one kind of state to another, or to another number of buckets, with all that it holds."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from viewfold._util.arguments import suggests_arguments
from viewfold.errors import BusyError, StateFileError
from viewfold.rows import BucketEngine, BucketRows, DiskEngine, current_engine, using
from viewfold.rows.bucket_files import combine_partitions
from viewfold.rows.buckets import check_rows
from viewfold.state.state import ROWS
from viewfold.store.kinds import is_folder, store_of

if TYPE_CHECKING:
    from viewfold.state.state import State

StrPath = str | os.PathLike[str]


@suggests_arguments
def convert(
    source: StrPath, target: StrPath, *, n_buckets: int | None = None, wait: float = 60
) -> None:
    """Write a state anew as a ``.vf`` file or a ``.vfd`` folder, or with other buckets.

    All that it holds comes along: samples, history, log, encoders, and the states to return to
    (one that is damaged is left out, with a warning). The source stays as it is.

    Parameters
    ----------
    source, target : path
        The state, and where to write it; the endings tell what they are. There must be nothing at
        the target.
    n_buckets : int, optional
        How many buckets a folder gets: as many as the source has if not given, or the engine.
    wait : float, default=60
        Seconds to wait for another program that writes to the target.

    See Also
    --------
    load : Read a state with an engine of one's own.

    Notes
    -----
    Every state is read and written once, bucket by bucket if one of the two is a folder.

    Examples
    --------
    >>> import tempfile, numpy as np, viewfold
    >>> folder = tempfile.mkdtemp()
    >>> viewfold.ViewFold(2).fit(np.eye(6)).save(folder + "/model.vf")
    >>> viewfold.convert(folder + "/model.vf", folder + "/model.vfd", n_buckets=3)
    >>> viewfold.load(folder + "/model.vfd").ids_
    array([0, 1, 2, 3, 4, 5])
    """
    _check(target, n_buckets)
    old, new = store_of(source), store_of(target)
    before = old.held(source)
    with new.writing(target, wait):
        if new.exists(target):
            raise ValueError(f"{target} exists. Choose another name.")
        state = old.read(source)
        assert state is not None
        engine = _engine(state, n_buckets) if is_folder(target) else None
        kept: list[State | str] = []
        for one in before.states:
            try:
                earlier = old.read(source, one.schema)
            except StateFileError as error:
                warnings.warn(
                    f"A state to return to is damaged, and left out: {error}", stacklevel=2
                )
                continue
            kept += [] if earlier is None else [moved(earlier, engine)]
        if old.held(source) != before:
            raise BusyError(f"{source} was changed by another program meanwhile: try again.")
        with using(engine or current_engine()):
            new.write(target, moved(state, engine), kept=kept, keep=before.keep)


def _check(target: StrPath, n_buckets: int | None) -> None:
    if n_buckets is None:
        return
    if not is_folder(target):
        raise ValueError(f"{target} has no buckets: n_buckets=… is for a .vfd folder.")
    if n_buckets < 1:
        raise ValueError(f"n_buckets={n_buckets!r}: a folder has one bucket at least.")


def _engine(state: State, n_buckets: int | None) -> BucketEngine:
    """Return an engine with so many buckets; that of the state or of now, if it has as many."""
    known = [state.ids.engine] if isinstance(state.ids, BucketRows) else []
    now = current_engine()
    known += [now] if isinstance(now, BucketEngine) else []
    for one in known:
        if n_buckets in (None, one.n_buckets):
            found: BucketEngine = one
            return found
    return DiskEngine() if n_buckets is None else DiskEngine(n_buckets)


def moved(state: State, engine: BucketEngine | None) -> State:
    """Return a state whose rows are in the buckets of an engine; as it is, if there is none."""
    if engine is None or not state.views:
        return state
    if not isinstance(state.ids, BucketRows):
        return state.placed(engine)
    if state.ids.engine.n_buckets == engine.n_buckets:
        return state
    return dealt_anew(state, engine)


def dealt_anew(state: State, engine: BucketEngine) -> State:
    """Return a state with each sample in the bucket of the engine that its id falls into."""
    from viewfold.store._bucket import DealBucket

    path, owner = engine.room()
    before: BucketEngine = state.ids.engine
    items = before._items(tuple(getattr(state, name) for name in ROWS))
    dealt = before.each(DealBucket(path, engine.n_buckets), items)
    rows = [replace(one, cells=False) for one in combine_partitions(dealt, engine, owner=owner)]
    check_rows([one.n for one in rows], [state.n_samples] * len(rows))
    named: dict[str, Any] = dict(zip(ROWS, rows, strict=True))
    return replace(state, **named)
