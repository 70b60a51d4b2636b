"""Show how a file would be read, before anything is folded: `inspect_views`.

A view is read as a fold would read it. Where that is refused, the options that the error suggests
are added (`suggestion_of`), and it is read again: there is no second set of rules here.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

import numpy as np
from scipy import sparse

from viewfold._util.arguments import suggests_arguments, which_view
from viewfold._util.file import (
    FILE_OPTIONS,
    File,
    ReadKeywords,
    ReadOptions,
    file_with,
    path_and_options,
    takes_reading,
)
from viewfold._util.messages import short_repr, suggestion_of
from viewfold._util.types import Array, IdsLike, Matrix, ViewsLike
from viewfold.data import FileView, View
from viewfold.data.arrays import Spool
from viewfold.data.cells import SENTINELS
from viewfold.data.features import learn
from viewfold.data.fetch import STDIN, standard_input
from viewfold.data.id_columns import check_no_ids, find_ids, first_cells, is_called_id
from viewfold.data.ids import Similar, alike
from viewfold.data.opening import (
    make_view,
    named_views,
    open_path,
    own_name,
    read_view,
)
from viewfold.data.parts import Parts, check_part, is_path, split_file, split_object
from viewfold.data.source import as_object, batch_rows, without
from viewfold.data.view import invented_name, view_label
from viewfold.estimators.known import check_rename, options_of, read_known_view
from viewfold.method.scaling import chosen_scale
from viewfold.rows import LocalEngine, Rows, current_engine, engine_of
from viewfold.rows.normal import normal_forms
from viewfold.state.admission import admit, placed
from viewfold.state.hashes import seed_of
from viewfold.state.state import State, ViewRecord

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator

__all__ = ["ColumnFacts", "Inspection", "SampleFacts", "inspect_views"]

MOST_PROPOSALS = 50  # a file that needs more options than this is not understood
MOST_EXAMPLES = 3  # of ids that are almost known
MOST_KNOWN = 100_000  # ids of a state that tell which column holds ids
FEWEST_MARKS = 3  # a value that stands in fewer cells of a column marks nothing


@dataclass(frozen=True)
class ColumnFacts:
    """What would become of a column."""

    name: str  #: its name, or its number if columns have no names
    #: what it is; a boolean has no other values than 0 and 1
    kind: Literal["number", "boolean", "category", "date", "out"]
    levels: tuple[str, ...] = ()  #: of a category: its levels; of a date: what it gives
    why: str = ""  #: why it is left out, if nobody asked for that
    n_missing: int = 0  #: how many of its cells are missing


@dataclass(frozen=True)
class SampleFacts:
    """How the samples of a view compare with those that a model knows."""

    n_known: int  #: how many are known, with exactly this id
    n_new: int  #: how many are not
    n_similar: int = 0  #: how many of the new ones have an id that is almost a known one
    examples: tuple[tuple[int | str, int | str], ...] = ()  #: some of these, with the known one
    n_in_view: int = 0  #: how many are in the view of this name already
    fits: tuple[str, ...] = ()  #: the known views whose features are those of this one


@dataclass(frozen=True, eq=False)
class Inspection:
    """What would be understood of a view; see `inspect_views`."""

    __repr__ = short_repr

    name: str  #: what the view would be called
    source: Any  #: what to fold: X, or a `File` with the options that it needs
    #: what else to pass: ``model.partial_fit(found.source, **found.options)``
    options: Mapping[str, Any]
    proposed: tuple[str, ...] = ()  #: names of the options that nobody gave
    problems: tuple[str, ...] = ()  #: what would be refused without these
    refused: str = ""  #: why it would be refused all the same; empty if it would be folded
    n_rows: int = 0  #: how many rows there are, also of absent samples
    id_column: str | None = None  #: the column of ids, named or proposed; None if there is none
    id_candidates: tuple[str, ...] = ()  #: columns that look like ids, the likeliest first
    has_ids: bool = False  #: whether samples have ids; else they are known by their row number
    columns: tuple[ColumnFacts, ...] = ()  #: what would become of each column
    n_missing: int = 0  #: how many cells are missing
    n_cells: int = 0  #: how many there are
    n_absent: int = 0  #: rows without any value
    n_zero: int = 0  #: rows of zeros
    n_empty: int = 0  #: how many of these would be left out
    #: values that may mark missing cells, and the columns that have them
    suspects: Mapping[float, tuple[str, ...]] = field(default_factory=dict)
    #: how a text is written: encoding, delimiter, decimal sign
    written: Mapping[str, str] = field(default_factory=dict)
    cleaned: tuple[str, ...] = ()  #: what is done to a file before it is read
    #: what cannot be decided, each with the options between which to choose; `options` has the
    #: first of them
    undecided: tuple[tuple[str, tuple[Mapping[str, Any], ...]], ...] = ()
    scale: str | None = None  #: how the view would be scaled; see `ViewFold`
    samples: SampleFacts | None = None  #: who is known, if a model is given that folded a view
    notes: tuple[str, ...] = ()  #: what would be noted

    def of_kind(self, kind: str) -> list[ColumnFacts]:
        """Return the columns of a kind."""
        return [column for column in self.columns if column.kind == kind]

    def worst(self, most: int = 5) -> list[ColumnFacts]:
        """Return the columns with the most missing cells."""
        gaps = [column for column in self.columns if column.n_missing]
        return sorted(gaps, key=lambda column: -column.n_missing)[:most]

    def said(self) -> dict[str, Any]:
        """Return all options: those of the file, and the others."""
        said = self.source.options.given() if isinstance(self.source, File) else {}
        if "sheet" in said:
            said["sheet"] = list(said["sheet"])
        return {**said, **self.options}


@suggests_arguments
@takes_reading
def inspect_views(
    X: ViewsLike,
    *,
    ids: IdsLike = None,
    view: str | None = None,
    model: FoldingEstimator | None = None,
    similar_ids: Similar = "refuse",
    rename: Mapping[str, str] | None = None,
    **reading: Unpack[ReadKeywords],
) -> list[Inspection]:
    r"""Show how one or several views would be read; nothing is folded.

    If a fold would refuse a view, options are proposed with which it would not.

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
    similar_ids, rename
        As for `partial_fit`.
    **reading
        How the view is to be read: the keywords of `as_view`.

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
    A file is read once, as `as_view` reads it, and once more for each option that is proposed; not
    so for a column of ids that are texts.

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
    given: dict[str, Any] = {"ids": ids, "similar_ids": similar_ids, "rename": rename, **reading}
    given = {name: value for name, value in given.items() if not _is_default(name, value)}
    if isinstance(X, Iterator):
        raise TypeError("An iterator gives its batches once. Look at the first of them instead.")
    if is_path(X):
        return [look.inspect() for look in _looks_at_file(X, view, given, model)]
    several = None if view is not None else named_views(X)
    names = [view] if several is None or len(several) == 1 else list(several)
    return [_Look(X, name, given, model).inspect() for name in names]


def _is_default(name: str, value: Any) -> bool:
    if name in ("similar_ids", "empty_rows", "missing_cells", "strict", "as_is"):
        return value in ("refuse", "absent", "accept", False)
    return value is None or (isinstance(value, list | tuple | dict) and not value)


def _looks_at_file(
    X: Any, view: str | None, given: Mapping[str, Any], model: FoldingEstimator | None
) -> list[_Look]:
    """Open a file, once, and return a look at each of its views."""
    if os.fspath(X) == STDIN:
        X = File(standard_input(), **(X.options.given() if isinstance(X, File) else {}))
    look = _Look(X, view, given, model)
    is_book = os.fspath(X).lower().endswith(".xlsx")
    try:
        with warnings.catch_warnings(record=True, action="always") as notes:
            held = look.open()
    except ValueError:
        if view is not None or not is_book:
            return [look]  # it fails again, and says what would help
        # One sheet may be in order though another one lacks the column of ids.
        with warnings.catch_warnings(action="ignore"):
            path, options = path_and_options(X, ReadOptions())
            several = open_path(path, None, options)
        names = list(several) if isinstance(several, dict) else []
        return [_Look(file_with(X, sheet=name), None, given, model) for name in names] or [look]
    if view is not None or not isinstance(held, dict):
        look.held, look.notes = held, notes
        return [look]
    looks = []
    for name in held:
        part, of_file = (file_with(X, sheet=name), None) if is_book else (X, name)
        looks.append(_Look(part, of_file, given, model))
        looks[-1].held, looks[-1].notes = {name: held[name]}, notes
    return looks


class _Look:
    """A look at one view: options are added until it would be folded, or nothing helps."""

    def __init__(self, X: Any, view: str | None, given: Mapping[str, Any], model: Any) -> None:
        self.X, self.view, self.model = X, view, model
        self.given, self.options = given, dict(given)
        self.held: Any = None  # the opened file, for the first attempt
        self.read: tuple[ReadOptions, Any] | None = None  # an attempt without ids, and what it gave
        self.notes: list[warnings.WarningMessage] = []  # warnings of opening it
        self.problems: list[str] = []
        self.undecided: list[tuple[str, tuple[Mapping[str, Any], ...]]] = []
        self.facts: dict[str, Any] = {}

    def inspect(self) -> Inspection:
        refused = ""
        for _ in range(MOST_PROPOSALS):
            self.facts.pop("samples", None)
            notes = self.notes
            try:
                with warnings.catch_warnings(record=True, action="always") as more:
                    self._read()
                break
            except ValueError as error:
                said = " ".join(str(error).split())
                choices = getattr(error, "choices", ())
                if self._add_options(suggestion_of(error)):
                    if choices:
                        self.undecided.append((said, tuple(choices)))
                    else:
                        self.problems.append(said)
                    continue
                if "n_rows" not in self.facts:  # nothing was understood of it
                    raise
                refused = said
                break
        source, options = self._source_and_options()
        return Inspection(
            source=source,
            options=options,
            proposed=tuple(name for name in self.options if name not in self.given),
            problems=tuple(self.problems),
            refused=refused,
            undecided=tuple(self.undecided),
            notes=tuple(" ".join(str(one.message).split()) for one in [*notes, *more]),
            **self.facts,
        )

    def open(self) -> Any:
        """Open the file; return its view, or its views by name."""
        X, options, ids, _ = self._read_options()
        return open_path(X, ids, options)

    def _add_options(self, proposed: Mapping[str, Any]) -> bool:
        """Add options that would help; tell whether there was any that is not there yet."""
        more = False
        for name, value in proposed.items():
            before = self.options.get(name)
            if isinstance(value, list):
                held = _as_list(before)
                new = [one for one in value if one not in held]
                self.options[name], more = [*held, *new], more or bool(new)
            elif before is None:
                self.options[name], more = value, True
        return more

    def _source_and_options(self) -> tuple[Any, dict[str, Any]]:
        """Return what to fold, with options of the file, and the other options."""
        of_file = FILE_OPTIONS if is_path(self.X) else ()
        options = {name: value for name, value in self.options.items() if name not in of_file}
        if self.view is not None:
            options["view"] = self.view
        if not of_file:
            return self.X, options
        own = {name: value for name, value in self.options.items() if name in of_file}
        return file_with(self.X, **own), options

    def _read_options(self) -> tuple[Any, ReadOptions, Any, Similar]:
        """Return what to read, how, its ids, and what to do with similar ids."""
        source, said = self._source_and_options()
        said.pop("view", None)
        said.pop("rename", None)
        ids, rule = said.pop("ids", None), said.pop("similar_ids", "refuse")
        X, options = path_and_options(source, ReadOptions.of(**said))
        records = {record.name: record.source for record in self._state.views}
        remembered = records.get(self.view or own_name(X) or "")
        if remembered is not None:  # later rows are written as the first ones were
            as_is = options.as_is or remembered.as_is
            options = replace(options, cleaning=remembered.cleaning, as_is=as_is)
        return X, options, ids, rule

    def _read(self) -> None:
        X, options, ids, rule = self._read_options()
        check_part(X, options)
        parts, name, file, written = self._take_apart(X, ids, options)
        label = view_label(name, file)
        self._note(parts, name, ids, options, label)
        self.facts["written"] = dict(written)
        if ids is None and parts.ids is None:
            for j, column in enumerate(parts.names or ()):
                codes = parts.codes.get(column)
                if codes is not None and codes.repeats and is_called_id(column, first=j == 0):
                    warnings.warn(
                        f"{label}: column {column!r} is called like ids, but some of its texts "
                        "stand in several rows. Keep one row per sample if they are ids.",
                        stacklevel=1,
                    )
            check_no_ids(parts, label, is_file=file is not None, known=self._known_ids())
        given = None if ids is False else parts.ids
        view = make_view(parts, given, name, file, options)
        state = self._state
        self.facts["samples"] = compare(state, view)
        none = False if ids is False else None
        of_cells = ReadOptions(empty_rows=options.empty_rows, missing_cells=options.missing_cells)
        checked = read_view(view, none, None, of_cells)
        self.facts["n_empty"] = checked.n_empty
        self.facts["scale"] = self._scale(checked)
        engine, rename = engine_of(state.ids), self.options.get("rename", {})
        if self.model is None or name not in state.names:
            check_rename(rename, ())
            admit(engine, state, checked, rule)
            return
        record = state.views[state.names.index(name)]
        if was_read_alike(parts, options, record) and not rename:
            X, ids = make_view(parts, given, name, file, options, record.columns), none
        new_names = options_of(record, ReadOptions(rename=check_rename(rename, [record])))
        me = type(self.model).__name__
        checked = read_known_view(X, record, ids=ids, gaps=True, me=me, options=new_names)
        admit(engine, state, checked, rule)

    def _take_apart(
        self, X: Any, ids: Any, options: ReadOptions
    ) -> tuple[Parts, str, str | None, Any]:
        """Return ids, rows and columns of the view, its name, file and how it is written."""
        if self.read is not None and self.read[0] == options and isinstance(ids, str):
            parts, *others = self.read[1]
            if (read := with_ids(parts, ids)) is not None:
                return read, *others
        held = open_path(X, ids, options) if self.held is None else self.held
        self.held, self.notes = None, []  # its batches come once
        several, key = named_views(held), None
        if several is not None:
            key = list(several)[which_view(list(several), self.view, "there are")]
            held = several[key]
        name = self.view or key or own_name(held)
        if not name:
            name = invented_name(self._state.names, len(self._state.views))
        named = None if ids is False else ids
        if isinstance(held, FileView):
            label = view_label(name, held.file)
            parts = split_file(held, named, label, options)
            self.facts["cleaned"] = tuple(held.cleaned)
            found = parts, name, held.file, held.written
            if ids is None and not options.names_columns:
                self.read = options, found
            return found
        return split_object(held, named, view_label(name), options), name, None, {}

    def _note(self, parts: Parts, name: str, ids: Any, options: ReadOptions, label: str) -> None:
        n, d = parts.rows.shape
        names, by_name = list(map(str, range(d))), dict[str, ColumnFacts]()
        if parts.names is not None:
            names = list(parts.names)
            learned, why = learn(names, parts.codes, options, parts.dropped, label)
            by_name = {c.name: ColumnFacts(c.name, c.kind, c.levels) for c in learned}
            by_name |= {name: replace(by_name[name], why=reason) for name, reason in why.items()}
        counts = count_cells(parts.rows)
        candidates = self.facts.get("id_candidates", [])
        if parts.ids is None:
            likely = find_ids(first_cells(parts), self._known_ids())
            candidates = [column for column, _ in likely] or candidates
        flags = (counts.others == 0) & (counts.missing < n)
        found = []
        for j, column in enumerate(names):
            known = by_name.get(column, ColumnFacts(column, "number"))
            kind = "boolean" if known.kind == "number" and flags[j] else known.kind
            found.append(replace(known, kind=kind, n_missing=int(counts.missing[j])))
        dropped = set(_as_list(self.options.get("drop"))) - set(_as_list(self.given.get("drop")))
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
            "n_missing": int(counts.missing.sum()),
            "n_cells": n * d,
            "n_absent": int(counts.n_absent),
            "n_zero": int(counts.n_zero),
            "suspects": counts.suspects(names),
        }

    def _known_ids(self) -> frozenset[str]:
        """Return the normal forms of some known ids."""
        state = self._state
        if not state.views or state.length is not None:
            return frozenset()
        some = engine_of(state.ids).head(state.ids, MOST_KNOWN)
        return frozenset(map(str, normal_forms(some).tolist()))

    @property
    def _state(self) -> State:
        return State.empty() if self.model is None else self.model._now

    def _scale(self, view: View) -> str | None:
        rule: Any = "auto" if self.model is None else self.model.get_params().get("scale", "auto")
        seed = (seed_of(getattr(self.model, "random_state", 0)), len(self._state.views))
        found = chosen_scale(current_engine(), view, rule, seed)
        return None if found is None else str(found)


def was_read_alike(parts: Parts, options: ReadOptions, record: ViewRecord) -> bool:
    """Whether rows were read as more rows of a known view would be: they need not be read again."""
    if options.names_columns or options.empty_markers is not None or record.source is not None:
        return False
    kinds = {name: codes.kind for name, codes in parts.codes.items()}
    return all(
        column.kind in ("out", kinds.get(column.name, "number")) for column in record.columns or ()
    )


def _as_list(names: Any) -> list[Any]:
    return [names] if isinstance(names, str) else list(names or ())


# -- what the cells of a view tell, as they are


class Counts(NamedTuple):
    """Counts of cells; each array has an entry per column, or one per marker and column."""

    missing: Array
    others: Array  # neither 0 nor 1, and not missing
    marks: Array  # cells with a number that may mark missing ones
    near: Array  # other cells that are as far out as that
    n_absent: Any  # rows without any value
    n_zero: Any  # rows of zeros

    def suspects(self, names: Sequence[str]) -> dict[float, tuple[str, ...]]:
        """Return the numbers that stand in several cells, far from all others, with columns."""
        alone = (self.marks >= FEWEST_MARKS) & (self.near == 0)
        return {
            float(mark): tuple(names[j] for j in np.flatnonzero(which).tolist())
            for mark, which in zip(SENTINELS, alone, strict=True)
            if which.any()
        }


def count_cells(X: Matrix) -> Counts:
    """Pass over the cells of a matrix, block by block."""
    if not sparse.issparse(X):
        return Counts(*LocalEngine().reduce(_count_in_block, Rows(X)))
    d = X.shape[1]
    gaps = np.isnan(X.data) if X.data.dtype.kind == "f" else np.zeros(X.data.size, bool)
    other = (X.data != 0) & (X.data != 1) & ~gaps
    n_gaps, n_other = (np.bincount(X.indices[which], minlength=d) for which in (gaps, other))
    nothing = np.zeros((len(SENTINELS), d), np.intp)
    n_zero = np.count_nonzero(X.count_nonzero(axis=1) == 0)
    return Counts(n_gaps, n_other, nothing, nothing, 0, n_zero)


def _count_in_block(block: Array) -> tuple[Array, ...]:
    gaps = np.isnan(block)
    low = np.fmin.reduce(block, axis=0, initial=np.inf)
    high = np.fmax.reduce(block, axis=0, initial=-np.inf)
    marks, near = np.zeros((2, len(SENTINELS), block.shape[1]), np.intp)
    for i, mark in enumerate(SENTINELS):
        far = high if mark > 0 else -low
        for j in np.flatnonzero(far > abs(mark) / 2):
            out = block[:, j] * np.sign(mark) > abs(mark) / 2
            marks[i, j] = np.count_nonzero(block[:, j] == mark)
            near[i, j] = np.count_nonzero(out) - marks[i, j]
    others = np.count_nonzero((block != 0) & (block != 1) & ~gaps, axis=0)
    n_absent, n_zero = gaps.all(axis=1).sum(), (~block.any(axis=1)).sum()
    return gaps.sum(axis=0), others, marks, near, n_absent, n_zero


def with_ids(parts: Parts, column: str) -> Parts | None:
    """Return what was read without ids as if with them; None if the file has to be read again."""
    n = parts.rows.shape[0]
    codes = parts.codes.get(column)
    if parts.ids is not None or parts.names is None or codes is None:
        return None
    if codes.kind != "category" or codes.texts is None or len(codes.texts) != n:
        return None
    at, spool = parts.names.index(column), Spool()
    for start in range(0, n, step := batch_rows(len(parts.names))):
        rows = np.delete(parts.rows[start : start + step], at, axis=1)
        spool.append(rows, rows.dtype)
    others = {name: held for name, held in parts.codes.items() if name != column}
    names = without(parts.names, [column])
    return Parts(as_object(codes.texts), spool.matrix(), names, others, parts.dropped)


# -- how the samples of a view compare with those that a model knows


def compare(state: State, view: View) -> SampleFacts | None:
    """Return who is known of a view; None if nobody is, as there is no sample yet."""
    if not state.views or (view.length is not None and state.length is None):
        return None
    engine = engine_of(state.ids)
    view = placed(engine, view)
    alignment = engine.join(state.ids, view.ids)
    new = engine.keep(view.ids, engine.map(np.logical_not, alignment.known))
    pairs: list[tuple[Any, Any]] = []
    found = engine.collect(new)
    whole = found.dtype != object and state.ids.dtype != object
    if alignment.n_new and not whole:  # whole numbers are the same or not
        forms = normal_forms(found)
        almost = engine.reduce(lambda block: alike(block, forms), state.ids, combine=np.append)
        partner = dict(zip(normal_forms(almost).tolist(), almost.tolist(), strict=True))
        named = zip(found.tolist(), forms.tolist(), strict=True)
        pairs = [(name, partner[form]) for name, form in named if form in partner]
    fits = [
        record.name
        for record in state.views
        if view.features is not None and set(record.features or ()) == set(view.features)
    ]
    n_in_view = 0
    if view.name in state.names:
        which, seen = state.names.index(view.name), alignment.partners(state.seen, False)
        n_in_view = int(engine.reduce(lambda block: np.count_nonzero(block[:, which]), seen))
    return SampleFacts(
        n_known=alignment.n_shared,
        n_new=alignment.n_new,
        n_similar=len(pairs),
        examples=tuple(pairs[:MOST_EXAMPLES]),
        n_in_view=n_in_view,
        fits=tuple(fits),
    )
