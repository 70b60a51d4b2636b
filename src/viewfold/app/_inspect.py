"""Read a view as a fold would; where that is refused, propose what would help, and go on.

Errors know which options would help (`suggestion_of`), so that there is no second set of rules
here: what is proposed is what the message of the error says.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from viewfold._util.arguments import suggests_arguments
from viewfold._util.choice import which_view
from viewfold._util.file import File, as_file
from viewfold._util.messages import suggestion_of
from viewfold._util.types import Array, IdsLike, ViewsLike
from viewfold.app._cells import Cells, id_candidates, look_at, repeated_ids
from viewfold.app._facts import ColumnFacts, Inspection
from viewfold.app._known import compare
from viewfold.data import View, as_view
from viewfold.data import files as io
from viewfold.data.anndata_parts import chosen
from viewfold.data.asked import asking
from viewfold.data.features import check_no_text_ids, learn
from viewfold.data.fetch import STDIN, standard_input
from viewfold.data.ids import Similar
from viewfold.data.opening import assembled, named_views, opened, own_name
from viewfold.data.parts import Parts, is_path, of_file, of_object
from viewfold.data.reading import Reading, parted, takes_reading
from viewfold.data.view import called, invented_name
from viewfold.estimators.known import view_of_known
from viewfold.method.scaling import scale_of
from viewfold.rows import current_engine, engine_of
from viewfold.state.admission import admit
from viewfold.state.hashes import draw, seed_of
from viewfold.state.state import State

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator

MOST_PROPOSALS = 50
"""A file that needs more options than this is not understood."""

OF_COLUMNS = ("columns", "drop", "categories", "empty_markers", "strict")
OF_FILE = frozenset(field.name for field in fields(File)) - {"path"}


@suggests_arguments
@takes_reading
def inspect_views(
    X: ViewsLike,
    *,
    ids: IdsLike = None,
    view: str | None = None,
    model: FoldingEstimator | None = None,
    similar_ids: Similar = "refuse",
    **reading: Unpack[Reading],
) -> list[Inspection]:
    r"""Say what would be understood of one or several views; nothing is folded.

    What a fold would refuse is looked at, too, if there are options with which it would not.

    Parameters
    ----------
    X : view, dict of views or path
        Anything `as_view` takes but an iterator, or several views by name, such as a file of
        several.
    ids : array-like, str or False, optional
        As for `partial_fit`; if not given, a column that looks like ids is proposed.
    view : str, optional
        What the view is called; of several, the one to look at.
    model : FCMVC or ViewFold, optional
        Compare the samples with those that this model knows; it stays as it is.
    similar_ids : {"refuse", "match", "new"}, default="refuse"
        As for `partial_fit`.
    empty_rows, missing_cells, columns, drop, categories, empty_markers, strict, layer, use_rep
        How the view is to be read; see `as_view`.

    Returns
    -------
    list of Inspection
        One for each view.

    See Also
    --------
    as_view : What the options mean.
    ViewFold.partial_fit : Fold what was looked at.

    Notes
    -----
    A file is read once, as `as_view` reads it; nothing is folded.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import viewfold
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labs.csv")
    ...     lines = [f"p{i},{i % 3},{'ICU' if i % 2 else 'ER'}" for i in range(20)]
    ...     _ = path.write_text("\n".join(["patient,iron,ward", *lines]))
    ...     labs = viewfold.inspect_views(path)[0]
    >>> labs.n_rows, labs.id_column, [(c.name, c.kind) for c in labs.columns]
    (20, 'patient', [('iron', 'number'), ('ward', 'category')])
    >>> labs.options
    {'ids': 'patient'}
    """
    given: dict[str, Any] = {"ids": ids, "similar_ids": similar_ids, **reading}
    given = {name: value for name, value in given.items() if not _is_default(name, value)}
    return [_Look(one, name, given, model).found() for one, name in _each(X, view, given)]


def _each(X: Any, view: str | None, given: Mapping[str, Any]) -> list[tuple[Any, str | None]]:
    """Return what to look at, one view after the other, and what each is called."""
    if isinstance(X, Iterator):
        raise TypeError("An iterator gives its batches once. Look at the first of them instead.")
    if is_path(X) and str(as_file(X)) == STDIN:
        X = replace(as_file(X), path=standard_input())
    names = [view] if view is not None else _names_of(X, given)
    if len(names) == 1:
        return [(X, view)]
    if is_path(X) and str(as_file(X)).lower().endswith(".xlsx"):
        # Sheets are chosen before they are opened: another one may lack the column of ids.
        return [(replace(as_file(X), sheet=name), None) for name in names]
    return [(X, name) for name in names]


def _names_of(X: Any, given: Mapping[str, Any]) -> list[str]:
    """Return the names of the views that there are; of one view, one name or another."""
    if not is_path(X):
        return list(named_views(X) or [""])
    said = {name: value for name, value in given.items() if name in OF_FILE}
    with warnings.catch_warnings(action="ignore"):
        try:
            return list(io.read(replace(as_file(X), **said)))
        except ValueError as error:
            if not suggestion_of(error):
                raise
    return [""]


class _Look:
    """A look at one view: options are added until it would be folded, or nothing helps.

    Parameters
    ----------
    X : object
        What holds the view.
    view : str or None
        Its name, if that is given, or has to be.
    given : dict
        The options of the user.
    model : FoldingEstimator or None
        What the samples are compared with.
    """

    def __init__(
        self,
        X: Any,
        view: str | None,
        given: Mapping[str, Any],
        model: FoldingEstimator | None,
    ) -> None:
        self.X, self.view, self.model = X, view, model
        self.given, self.options = given, dict(given)
        self.problems: list[str] = []
        self.facts: dict[str, Any] = {}

    def found(self) -> Inspection:
        """Return what is found out."""
        refused = ""
        for _ in range(MOST_PROPOSALS):
            self.facts.pop("samples", None)
            try:
                with warnings.catch_warnings(record=True, action="always") as told:
                    self._read()
                break
            except ValueError as error:
                said = " ".join(str(error).split())
                if self._helped(suggestion_of(error)):
                    self.problems.append(said)
                    continue
                if "n_rows" not in self.facts:  # nothing was understood of it
                    raise
                refused = said
                break
        source, options = self._parted()
        return Inspection(
            source=source,
            options=options,
            proposed=tuple(name for name in self.options if name not in self.given),
            problems=tuple(self.problems),
            refused=refused,
            notes=tuple(" ".join(str(one.message).split()) for one in told),
            **self.facts,
        )

    def _helped(self, proposed: Mapping[str, Any]) -> bool:
        """Add options that would help; tell whether there was any that is not there yet."""
        more = False
        for name, value in proposed.items():
            before = self.options.get(name)
            if isinstance(value, list):
                held = _listed(before)
                new = [one for one in value if one not in held]
                self.options[name], more = [*held, *new], more or bool(new)
            elif before is None:
                self.options[name], more = value, True
        return more

    def _parted(self) -> tuple[Any, dict[str, Any]]:
        """Return what to fold, with options of the file, and the other options."""
        path = is_path(self.X)
        options = {
            name: value for name, value in self.options.items() if not (path and name in OF_FILE)
        }
        if self.view is not None:
            options["view"] = self.view
        if not path:
            return self.X, options
        own = {name: value for name, value in self.options.items() if name in OF_FILE}
        return replace(as_file(self.X), **own), options

    def _read(self) -> None:
        source, options = self._parted()
        options.pop("view", None)
        ids, rule = options.pop("ids", None), options.pop("similar_ids", "refuse")
        source, reading = chosen(source, options)  # type: ignore[arg-type]
        asked = parted(**reading)[-1]
        with asking(asked):
            parts, name, file, written = self._take_apart(source, ids)
            cells = look_at(parts.rows)
            label = called(name, file)
            self._note(parts, name, ids, cells, learn_of(parts, asked, label), written)
            if ids is None and parts.ids is None:
                for column in repeated_ids(parts):
                    warnings.warn(
                        f"{label}: column {column!r} is called like ids, but some of its texts "
                        "stand in several rows. Keep one row per sample if they are ids.",
                        stacklevel=1,
                    )
                self._propose_ids(parts, label)
            view = assembled(parts, None if ids is False else parts.ids, name, file, asked)
        self.facts["samples"] = compare(self._state, view)
        rules = {name: value for name, value in reading.items() if name not in OF_COLUMNS}
        view = as_view(view, ids=ids if ids is False else None, **rules)  # type: ignore[arg-type]
        self.facts["n_empty"] = view.n_empty
        self.facts["scale"] = self._scale(view)
        engine = engine_of(self._state.ids)
        if self.model is not None and name in self._state.names:
            record = self._state.views[self._state.names.index(name)]
            me = type(self.model).__name__
            view = view_of_known(source, record, ids=ids, gaps=True, me=me)
        admit(engine, self._state, view, rule)

    def _propose_ids(self, parts: Parts, label: str) -> None:
        """Take the likeliest column for the ids, if a fold would ask for them."""
        try:
            check_no_text_ids(parts.codes, label)
        except ValueError as error:
            best = next(iter(self.facts["id_candidates"]), None)
            if best is not None:
                error.options = {"ids": best}  # type: ignore[attr-defined]
            raise

    def _take_apart(self, source: Any, ids: Any) -> tuple[Parts, str, str | None, Any]:
        """Return ids, rows and columns of the view, its name, file and how it is written."""
        held = opened(source, ids)
        several, key = named_views(held), None
        if several is not None:
            key = list(several)[which_view(list(several), self.view, "there are")]
            held = several[key]
        name = self.view or key or own_name(held)
        if not name:
            name = invented_name(self._state.names, len(self._state.views))
        named = None if ids is False else ids
        if isinstance(held, io.FileView):
            label = called(name, held.file)
            return of_file(held, named, label), name, held.file, held.written
        return of_object(held, named, called(name)), name, None, {}

    def _note(
        self,
        parts: Parts,
        name: str,
        ids: Any,
        cells: Cells,
        columns: tuple[list[str], dict[str, ColumnFacts]],
        written: Mapping[str, str],
    ) -> None:
        """Write down what the cells tell, whatever comes of the view."""
        names, by_name = columns
        n, d = parts.rows.shape
        candidates = id_candidates(parts) or self.facts.get("id_candidates", [])
        found = []
        for j, column in enumerate(names):
            known = by_name.get(column, ColumnFacts(column, "number"))
            flag = known.kind == "number" and bool(cells.flags[j])
            found.append(
                replace(
                    known,
                    kind="boolean" if flag else known.kind,
                    n_missing=int(cells.missing[j]),
                )
            )
        dropped = set(_listed(self.options.get("drop"))) - set(_listed(self.given.get("drop")))
        read = set(names)
        for one in by_name.values():
            if one.name not in read:
                nobody = one.kind == "out" and not one.why and one.name in dropped
                found.append(replace(one, why="proposed") if nobody else one)
        self.facts |= {
            "name": name,
            "n_rows": n,
            "id_column": ids if isinstance(ids, str) else None,
            "id_candidates": tuple(candidates),
            "has_ids": parts.ids is not None and ids is not False,
            "columns": tuple(found),
            "n_missing": int(cells.missing.sum()),
            "n_cells": n * d,
            "n_absent": cells.n_absent,
            "n_zero": cells.n_zero,
            "suspects": {
                mark: tuple(names[j] for j in which) for mark, which in cells.suspects().items()
            },
            "written": dict(written),
        }

    @property
    def _state(self) -> State:
        return State.empty() if self.model is None else self.model._now

    def _scale(self, view: View) -> str | None:
        """Return how the view would be scaled."""
        rule = "auto" if self.model is None else self.model.get_params().get("scale", "auto")
        if rule != "auto":
            return None if rule is None else str(rule)
        engine, state = current_engine(), self._state
        seed = (seed_of(getattr(self.model, "random_state", 0)), len(state.views))
        drawn = draw(engine, view.ids, 1000, seed=seed, purpose="scale")
        some = engine.collect(engine.select(view.rows, drawn))
        return str(scale_of(_filled(some) if isinstance(some, np.ndarray) else some))


def learn_of(parts: Parts, asked: Any, label: str) -> tuple[list[str], dict[str, ColumnFacts]]:
    """Return the names of the columns that were read, and what would become of some."""
    if parts.names is None:
        return [str(j) for j in range(parts.rows.shape[1])], {}
    known, why = learn(parts.names, parts.codes, asked, parts.dropped, label)
    facts = {
        column.name: ColumnFacts(
            column.name, _kind(column.kind), column.levels, why.get(column.name, "")
        )
        for column in known
    }
    return list(parts.names), facts


def _kind(kind: str) -> Literal["number", "category", "date", "out"]:
    return kind  # type: ignore[return-value]


def _filled(rows: Array) -> Array:
    """Return rows with the mean of their column where a cell is missing."""
    gaps = np.isnan(rows)
    if not gaps.any():
        return rows
    count = np.maximum((~gaps).sum(axis=0), 1)
    return np.where(gaps, np.where(gaps, 0, rows).sum(axis=0) / count, rows)


def _listed(names: Any) -> list[Any]:
    """Return one name, or several, as a list."""
    return [names] if isinstance(names, str) else list(names or ())


def _is_default(name: str, value: Any) -> bool:
    defaults = {
        "similar_ids": "refuse",
        "empty_rows": "absent",
        "missing_cells": "accept",
        "strict": False,
    }
    if name in defaults:
        return bool(value == defaults[name])
    return value is None or (isinstance(value, list | tuple) and not value)
