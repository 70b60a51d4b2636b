"""Look a whole ``.vf`` file over: what is wrong with it, and what can be saved.

Commands check what they read; this reads everything, states to return to included.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from viewfold._util.arguments import suggests_arguments
from viewfold.errors import StateFileError
from viewfold.state.state import State
from viewfold.store import queries
from viewfold.store.kept import restoring, undoing
from viewfold.store.kinds import is_folder, store_of
from viewfold.store.models import model_of


@dataclass(frozen=True)
class Verdict:
    """What was found in a file.

    Attributes
    ----------
    file : str
        The file.
    problems : tuple of str
        What is wrong; empty if nothing is.
    rescue : tuple of str
        What can be saved of a file with problems, and how.
    """

    file: str
    problems: tuple[str, ...]
    rescue: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@suggests_arguments
def verify(path: str | os.PathLike[str]) -> Verdict:
    """Read everything in a ``.vf`` file and check what the format promises.

    Parameters
    ----------
    path : path
        The file. It stays as it is.

    Returns
    -------
    Verdict

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
    now, wrong_now = _tried(lambda: _checked(store.read(path)))
    problems = {"The state": wrong_now} if wrong_now else {}
    whole = []
    schemas, _ = _tried(lambda: store.kept_in(path)[1])
    for i, schema in enumerate(schemas or ()):
        earlier, wrong = _tried(lambda schema=schema: _checked(store.read(path, schema)))  # type: ignore[misc]
        if now and earlier and now.log[: len(earlier.log)] != earlier.log:
            wrong = "its log is not the beginning of the log of now"
        if wrong:
            which = f" later ({schema})" if i else ""
            problems[f"What undo returns to{which}"] = wrong
        else:
            whole.append(len(earlier.log))
    rescue: list[str] = []
    if wrong_now:
        rescue = _rescue(path, whole)
    elif problems:
        rescue = ["The state is whole; the next change to it leaves the damaged part out."]
    if is_folder(path) and store.exists(path) and not store.is_written(path):
        _look_for_newer(path, problems, rescue)
    said = tuple(f"{where}: {wrong}" for where, wrong in problems.items())
    return Verdict(os.fspath(path), said, tuple(rescue))


def _look_for_newer(
    path: str | os.PathLike[str], problems: dict[str, str], rescue: list[str]
) -> None:
    """Tell of states in a folder that are newer than its newest manifest."""
    from viewfold.store import manifest as _manifest
    from viewfold.store.folder import Folder

    folder = Folder.at(path)
    now, newer = _manifest.newer_than_now(folder)
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


def _tried(question: Callable[[], Any]) -> tuple[Any, str]:
    try:
        return question(), ""
    except StateFileError as error:
        return None, str(error)


def _checked(state: State | None) -> State | None:
    """Return what was read, if a model can be made of it."""
    if state is not None:
        model_of(state)
    return state


def _rescue(path: str | os.PathLike[str], whole: list[int]) -> list[str]:
    """Find out what of a damaged file can still be read; `whole` are entries to return to."""
    ways = []
    if whole and not _tried(lambda: undoing(path))[1]:
        ways.append(f"The state before the last change is whole: viewfold undo {path}")
    for entry in whole:
        if not _tried(lambda entry=entry: restoring(path, entry))[1]:  # type: ignore[misc]
            back = f"viewfold undo {path} --to {entry}"
            ways.append(f"The state after entry {entry} is whole: {back}")
    exports = {
        f"All there is per sample can be exported: viewfold export {path} -o samples.parquet": (
            queries.everything
        ),
        f"Labels can be exported: viewfold labels {path} -o labels.csv": queries.labels,
        f"The log can be read: viewfold history {path} -o log.csv": queries.log,
    }
    for said, question in exports.items():
        if not _tried(lambda question=question: question(path))[1]:  # type: ignore[misc]
            ways.append(said)
    return ways or ["Nothing can be read: use a copy of the file."]
