"""Models in states on disk: load, save, edit, take back, forget, convert and verify.

A command opens a state once: what was read goes on to whoever needs it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from viewfold._util.arguments import is_whole_number, suggests_arguments
from viewfold.errors import BusyError, DamagedFileError, StateFileError
from viewfold.explain import distinguished
from viewfold.rows import (
    BucketRows,
    Engine,
    RowSet,
    current_engine,
    engine_of,
    using,
)
from viewfold.state.admission import meant
from viewfold.state.log import FINAL, Log, noted, standing, undoable
from viewfold.state.names import lost
from viewfold.state.registry import METHODS
from viewfold.state.state import State
from viewfold.state.transitions import keep_samples
from viewfold.store import (
    Change,
    Contents,
    Kept,
    Returns,
    Store,
    StrPath,
    is_folder,
    queries,
    store_of,
)
from viewfold.store.check import MOST_KEPT

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator


@dataclass(frozen=True)
class Loaded:
    """A state that is going to be changed, and the file that holds it, which is still open.

    There is no file yet if `contents` is None; `mark` tells whether it is still the same.
    """

    store: Store
    state: State
    contents: Contents | None = None
    mark: Hashable = None


@contextmanager
def loading(store: Store, engine: Engine | None = None) -> Iterator[Loaded]:
    """Open and read a state that is going to be changed."""
    mark = store.mark()
    with store.reading() as contents:
        yield Loaded(store, contents.read(engine=engine, unpack=True), contents, mark)


@suggests_arguments
def load(path: StrPath, *, engine: Engine | None = None) -> FoldingEstimator:
    """Return the model that a state file holds; it goes on exactly as the one that was saved.

    Parameters
    ----------
    path : path
        A ``.vf`` file, or a ``.vfd`` folder, that `save` or the command line wrote.
    engine : Engine, optional
        Where the rows of its samples are to be. If not given: those of a file in memory, and those
        of a folder in its buckets, of which a `DiskEngine` reads a few at a time.

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
    with store_of(path).reading() as contents:
        return model_of(contents.read(engine=engine))


def save(model: FoldingEstimator, path: StrPath, *, keep: int = 1, wait: float = 60) -> None:
    """Write a model to a state file; see `FoldingEstimator.save`, and `edit` for `keep`."""
    _check_keep(keep)
    store, state = store_of(path), state_of(model)
    with store.writing(wait) as turn:
        written = store.write(turn, state, Returns(keep=keep))
    if isinstance(state.ids, BucketRows):
        # What its rows were read from may be what was replaced.
        model._keep(replace(written, method="", params={}))


@suggests_arguments
@contextmanager
def edit(
    path: StrPath,
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
        How many earlier states the file keeps from now on, for `undo`: each takes as
        much space as the state of now. As many as before if not given, which is one in a new file.
        If there are more, the oldest go.
    wait : float, default=60
        Seconds to wait for another program that writes to the file.
    engine : Engine, optional
        Who computes with the samples; see `load`. A new folder has as many buckets as the engine.

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
    with editing(path, new=new, keep=keep, wait=wait, engine=engine) as model:
        yield model


@contextmanager
def editing(
    path: StrPath,
    *,
    new: FoldingEstimator | None = None,
    keep: int | None = None,
    wait: float = 60,
    engine: Engine | None = None,
    loaded: Loaded | None = None,
) -> Iterator[FoldingEstimator]:
    """Do what `edit` does; what was loaded before is not read again, if it is still the same."""
    _check_keep(keep)
    store = store_of(path) if loaded is None else loaded.store
    with ExitStack() as stack:
        turn = stack.enter_context(store.writing(wait))
        if new is not None and not store.exists():
            loaded = Loaded(store, state_of(new))
        elif loaded is None or loaded.mark != store.mark():
            if loaded is not None and loaded.contents is not None:
                loaded.contents.close()
            loaded = stack.enter_context(loading(store, engine))
        before, contents = loaded.state, loaded.contents
        kept_before = 1 if contents is None else contents.keep
        model = model_of(before)
        settings = _settings(model)
        with nullcontext() if engine is None else using(engine):
            yield model
        after = _following(before, settings, model)
        number = kept_before if keep is None else keep
        if after.log == before.log and (contents is None or number == kept_before):
            return
        revise = _revision(before, after, _gone(before, after))
        kept: list[State | str] = [] if contents is None else list(contents.schemas)
        if any(event.what != FINAL for event in after.log[len(before.log) :]):
            back = before if revise is None else revise(before)
            if back is not None:
                kept.insert(0, "main" if back is before and contents is not None else back)
        written = store.write(turn, after, Returns(kept, number, revise, contents))
        if written is not after:  # its rows are in other files now
            model._keep(replace(written, method="", params={}))


@suggests_arguments
def undo(
    path: StrPath, *, entry: int | None = None, to: int | None = None, wait: float = 60
) -> FoldingEstimator:
    """Return a state file to the state before the last change; the log gets an entry for it.

    Again and again, it takes back one change after the other, as far as states were kept
    (`viewfold.edit` has `keep`, and says what `wait` is). It returns the model that the file holds
    now.

    Parameters
    ----------
    entry : int, optional
        The entry of the log that is to be taken back, as a safeguard against taking back another.
        Needed after a `forget`, which cannot be taken back itself.
    to : int, optional
        The entry of the log after which the file is to be as it was then; 0 is before the first.
        ``viewfold status`` lists the entries whose state was kept. The state of now is kept like
        one before any other change, so that the next `undo` takes this back.

    See Also
    --------
    edit : Change a state, and say how many states are kept.

    Examples
    --------
    >>> import tempfile, numpy as np, viewfold
    >>> path = tempfile.mkdtemp() + "/model.vf"
    >>> with viewfold.edit(path, new=viewfold.ViewFold(2), keep=3) as model:
    ...     model = model.partial_fit(np.eye(6), view="labs")
    >>> for name in ("scan", "text"):
    ...     with viewfold.edit(path) as model:
    ...         model = model.partial_fit(np.eye(6), view=name)
    >>> [view.name for view in viewfold.undo(path, to=1).views_]
    ['labs']
    >>> [view.name for view in viewfold.undo(path).views_]
    ['labs', 'scan', 'text']
    >>> viewfold.undo(path).log_[["what", "view", "undoes"]].to_numpy().tolist()[-1]
    ['undo', None, 3]
    """
    return take_back(path, entry, wait, to=to)[0]


def take_back(
    path: StrPath, entry: int | None = None, wait: float = 60, *, to: int | None = None
) -> tuple[FoldingEstimator, Log]:
    """Do what `undo` does; also return the entries of the log that were taken back."""
    store = store_of(path)
    with store.writing(wait) as turn, store.reading() as contents:
        states, taken = plan_undo(contents, entry) if to is None else plan_restore(contents, to)
        earlier, what = contents.read(states[0].schema), "undo" if to is None else "restore"
        undoes = to + 1 if to is not None else taken[0].entry if taken else None
        older = [one.schema for one in states[1:]] if to is None else ["main", *contents.schemas]
        log = noted(contents.log(), what, earlier.n_samples, undoes=undoes)
        returns = Returns(older, contents.keep, contents=contents)
        written = store.write(turn, replace(earlier, log=log), returns)
    return model_of(written), taken


@suggests_arguments
def forget(path: StrPath, ids: Iterable[int | str], *, wait: float = 60) -> FoldingEstimator:
    """Remove samples from a ``.vf`` file for good: from the state, and from all it can return to.

    The same as `forget` of the model in `edit`, but for samples that only a state to return to
    still knows, as after an `undo`: these are removed, too. A text is taken for a number where
    samples are known by numbers. If no state in the file knows one of them, nothing is done. It
    returns the model that the file holds now; `viewfold.edit` says what `wait` is.

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
    with store.writing(wait) as turn, store.reading() as contents:
        before = contents.read(unpack=True)
        gone = _known_anywhere(contents, before, asked)
        engine = engine_of(before.ids)
        mine = engine.collect(engine.keep(before.ids, _among(engine, before, gone)))
        after = before if not mine.size else state_of(model_of(before).forget(mine))
        facts = {"n_forgotten": len(gone), "note": lost(before, after)}
        log = noted(before.log, FINAL, after.n_samples, **facts)
        after = replace(after, log=log)
        change = _revision(before, after, gone)
        returns = Returns(contents.schemas, contents.keep, change, contents)
        written = store.write(turn, after, returns)
    return model_of(written)


# -- what can be taken back


def plan_undo(contents: Contents, entry: int | None = None) -> tuple[tuple[Kept, ...], Log]:
    """Return the states to return to, and the entries of the log that `undo` takes back.

    Refuse if there is nothing to take back, or something else than was asked for.
    """
    name = Path(contents.path).name
    now, states = contents.log(), contents.kept()
    in_force = standing(now)
    last = in_force[-1] if in_force else None
    after_forget = last is not None and last.what == FINAL
    if not states:
        why = f"The last change, {last}, cannot be taken back."
        why = why if after_forget else "It keeps no state to return to; keep=3 would."
        raise StateFileError(f"There is nothing to undo in {name}. {why}")
    earlier = states[0].log
    if earlier is None:
        raise DamagedFileError(
            f"The state before the last change cannot be read: {states[0].wrong} "
            f"{_ways(name, states)}"
        )
    taken = undoable(now, earlier)
    said = " and ".join(map(str, taken))
    n = taken[0].entry if taken else 0
    how = f"viewfold.undo({name!r}, entry={n})"
    if entry is None and after_forget:
        before = f" To take back the change before it, {said}: {how}." if taken else ""
        raise StateFileError(f"The last change to {name}, {last}, cannot be taken back.{before}")
    if entry is not None and (not taken or taken[0].entry != entry):
        can = f"what can be is {said}: {how}" if taken else "the log does not say what can be"
        raise StateFileError(f"Entry {entry} of {name} cannot be taken back; {can}.")
    return states, taken


def plan_restore(contents: Contents, entry: int) -> tuple[tuple[Kept, ...], Log]:
    """Return the state after an entry of the log, and the entries that are taken back by it."""
    name = Path(contents.path).name
    now, states = contents.log(), contents.kept()
    for state in states:
        if state.entry == entry:
            return (state,), undoable(now, state.log or ())
    if entry == (now[-1].entry if now else 0):
        raise StateFileError(f"{name} is in the state after entry {entry} already.")
    raise StateFileError(
        f"{name} does not hold the state after entry {entry}. {_ways(name, states)}"
    )


def _ways(name: str, states: Sequence[Kept]) -> str:
    """Say which states there are to return to."""
    known = [state.entry for state in states if state.entry is not None]
    if not known:
        return "There is no other state to return to."
    said = ", ".join(map(str, known))
    what = f"those after entries {said}" if len(known) > 1 else f"the one after entry {said}"
    return f"What it can be returned to: {what} (viewfold undo {name} --to {known[0]})."


def _check_keep(keep: int | None) -> None:
    if keep is not None and not (is_whole_number(keep) and 0 <= keep <= MOST_KEPT):
        raise ValueError(
            f"keep=… is {keep!r}, but should be a whole number from 0 to {MOST_KEPT}: "
            "how many earlier states a file keeps, each as large as the state of now."
        )


def _known_anywhere(contents: Contents, state: State, asked: list[int | str]) -> pd.Index:
    """Return samples as the states of a file know them; each must be known to one of them."""
    written = {one: [str(one)] for one in asked}
    for texts in written.values():
        if texts[0].removeprefix("-").isdecimal():
            texts.append(str(int(texts[0])))  # in a file, numbers have no zeros before them
    known = contents.find_ids([text for texts in written.values() for text in texts])
    found: list[int | str] = []
    for one, texts in written.items():
        same = next((known[text] for text in texts if text in known), [])
        # A number and a text that look the same are two samples: the one that was named is meant.
        found += [one] if one in same else same
        if not same:
            raise ValueError(f"Unknown samples: {one!r}. Nothing was done.{meant(state, [one])}")
    return pd.Index(found, tupleize_cols=False).unique()


# -- models and states


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
    state = replace(model._now, method=name, params=_params(model))
    return distinguished(state) if model.keep_encoders else _private(state)


def _following(before: State, settings: dict[str, Any], model: FoldingEstimator) -> State:
    """Return the state of a model, with a log that continues the one before."""
    after = state_of(model)
    if after.views and after.log[: len(before.log)] != before.log:
        after = after.after(before.log)  # `fit` begins a new one
    if any(event.n_clusters is not None for event in after.log[len(before.log) :]):
        settings = {**settings, "n_clusters": model._number}  # `recluster` has its own entry
    if _settings(model) != settings:
        after = replace(after, log=noted(after.log, "params", after.n_samples))
    return after


def _settings(model: FoldingEstimator) -> dict[str, Any]:
    """Return the parameters for comparison: the position of a RandomState does not count."""
    return {
        name: np.random.RandomState if isinstance(value, np.random.RandomState) else value
        for name, value in _params(model).items()
    }


def _params(model: FoldingEstimator) -> dict[str, Any]:
    """Return the parameters as a file holds them: the number of clusters, and not "auto"."""
    return {**model.get_params(), "n_clusters": model._number}


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
    return distinguished(keep_samples(engine, state, kept, model_of(state)._method()))


def _among(engine: Engine, state: State, ids: pd.Index) -> RowSet:
    """Return for each sample of a state whether it is one of these."""
    return engine.map(lambda block: pd.Index(block).isin(ids), state.ids)


# -- convert, verify


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
    if n_buckets is not None and not is_folder(target):
        raise ValueError(f"{target} has no buckets: n_buckets=… is for a .vfd folder.")
    if n_buckets is not None and n_buckets < 1:
        raise ValueError(f"n_buckets={n_buckets!r}: a folder has one bucket at least.")
    old, new = store_of(source), store_of(target)
    with new.writing(wait) as turn:
        if new.exists():
            raise ValueError(f"{target} exists. Choose another name.")
        mark = old.mark()
        with old.reading() as contents:
            state = contents.read()
            place, engine = _to_place(state, target, n_buckets)
            kept: list[State | str] = []
            for schema in contents.schemas:
                try:
                    kept.append(place(contents.read(schema)))
                except StateFileError as error:
                    warnings.warn(
                        f"A state to return to is damaged, and left out: {error}", stacklevel=2
                    )
        if old.mark() != mark:
            raise BusyError(f"{source} was changed by another program meanwhile: try again.")
        with using(engine):
            new.write(turn, place(state), Returns(kept, contents.keep))


def _to_place(
    state: State, target: StrPath, n_buckets: int | None
) -> tuple[Callable[[State], State], Engine]:
    """Return what puts the rows of states where a target wants them, and whose rows they are."""
    if not is_folder(target):
        return lambda state: state, current_engine()
    from viewfold.store.buckets import engine_for, in_buckets_of

    engine = engine_for(getattr(state.ids, "engine", None), n_buckets, exactly=True)
    return partial(in_buckets_of, engine=engine), engine


@dataclass(frozen=True)
class Verdict:
    """What was found in a file: its problems, and what can be saved of it, and how."""

    file: str
    problems: tuple[str, ...]  # empty if nothing is wrong
    rescue: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@suggests_arguments
def verify(path: StrPath) -> Verdict:
    """Read everything in a ``.vf`` file and check what the format promises; it stays as it is.

    See Also
    --------
    load : Read the model, which checks the state of now.
    undo : Return to the state before a damaged one.

    Examples
    --------
    >>> import tempfile, numpy as np, viewfold
    >>> path = tempfile.mkdtemp() + "/model.vf"
    >>> viewfold.ViewFold(2).fit(np.eye(6)).save(path)
    >>> viewfold.verify(path).whole
    True
    """
    store = store_of(path)
    try:
        with store.reading() as contents:
            problems, rescue = _look_over(contents)
    except StateFileError as error:
        problems, rescue = {"The state": str(error)}, [NOTHING_READABLE]
    if is_folder(path) and store.exists() and not store.is_written():
        _look_for_newer(path, problems, rescue)
    said = tuple(f"{where}: {wrong}" for where, wrong in problems.items())
    return Verdict(os.fspath(path), said, tuple(rescue))


NOTHING_READABLE = "Nothing can be read: use a copy of the file."


def _look_over(contents: Contents) -> tuple[dict[str, str], list[str]]:
    """Return what is wrong with the states of a file, and what can be saved."""
    problems: dict[str, str] = {}
    now, wrong_now = _try(_checked_log, contents, "main")
    if wrong_now:
        problems["The state"] = wrong_now
    whole = []
    for i, schema in enumerate(contents.schemas):
        earlier, wrong = _try(_checked_log, contents, schema)
        if now is not None and earlier is not None and now[: len(earlier)] != earlier:
            wrong = "its log is not the beginning of the log of now"
        if wrong:
            which = f" later ({schema})" if i else ""
            problems[f"What undo returns to{which}"] = wrong
        else:
            whole.append(len(earlier))
    if wrong_now:
        return problems, _find_rescue(contents, whole)
    said = "The state is whole; the next change to it leaves the damaged part out."
    return problems, [said] if problems else []


def _look_for_newer(path: StrPath, problems: dict[str, str], rescue: list[str]) -> None:
    """Tell of states in a folder that are newer than its newest manifest."""
    from viewfold.store.folder import Folder, newer_than_now

    folder = Folder.at(path)
    now, newer = newer_than_now(folder)
    if not newer:
        return
    problems["Newer files"] = (
        f"{', '.join(newer)} in {folder.name} are newer than its newest manifest "
        f"(manifest-{now:06d}.json): the manifest was lost, as in a partial copy, or a program was "
        "ended while it wrote"
    )
    rescue.append(
        f"If {folder.name} is a copy, copy all manifest-*.json of the original again, before "
        "anything is changed: the next change removes the newer files. If a program was ended "
        "while it wrote, repeat what it did."
    )


def _try(question: Callable[..., Any], *arguments: Any) -> tuple[Any, str]:
    try:
        return question(*arguments), ""
    except StateFileError as error:
        return None, str(error)


def _checked_log(contents: Contents, schema: str) -> Log:
    """Return the log of a state, if a model can be made of it."""
    state = contents.read(schema)
    model_of(state)
    return state.log


def _find_rescue(contents: Contents, whole: list[int]) -> list[str]:
    """Find out what of a damaged file can still be read; `whole` are entries to return to."""
    path = contents.path
    ways: list[tuple[Callable[..., Any], str]] = [
        *(
            [(plan_undo, f"The state before the last change is whole: viewfold undo {path}")]
            * bool(whole)
        ),
        *(
            (
                partial(plan_restore, entry=entry),
                f"The state after entry {entry} is whole: viewfold undo {path} --to {entry}",
            )
            for entry in whole
        ),
        (
            queries.everything,
            f"All there is per sample can be exported: viewfold export {path} -o samples.parquet",
        ),
        (queries.labels, f"Labels can be exported: viewfold labels {path} -o labels.csv"),
        (queries.log, f"The log can be read: viewfold history {path} -o log.csv"),
    ]
    return [way for ask, way in ways if not _try(ask, contents)[1]] or [NOTHING_READABLE]
