"""Views in Parquet files that workers read for themselves: what their columns are, over all files.

The files are looked at, and columns that are not numbers are read once to find their kinds and
levels. Rows are read when they are dealt into buckets (`viewfold.data._dealing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from viewfold._util.file import ReadOptions, is_address
from viewfold.data._dealing import PIECE, Reader, Unread
from viewfold.data.columnar import Facts, Run, facts_of, runs_of, same_columns
from viewfold.data.features import (
    check_known,
    check_no_text_ids,
    check_no_twins,
    known_options,
    learn,
    tell_left_out,
)
from viewfold.data.files import FileError, FileView
from viewfold.data.ids import as_ids, is_called_id
from viewfold.data.view import Column, View, called, features_of
from viewfold.rows import BucketEngine

if TYPE_CHECKING:
    from viewfold.data.codes import Codes


@dataclass(frozen=True)
class Survey(Reader):
    """Look at the columns of a file."""

    def __call__(self, file: str) -> Facts:
        return facts_of(file, self.ids, self.options)


@dataclass(frozen=True)
class Levels(Reader):
    """Read columns that are not numbers, and tell what they hold."""

    def __call__(self, runs: tuple[Run, ...]) -> dict[str, Codes]:
        found: dict[str, Codes] = {}
        for run in runs:
            table, batches = run.batches(self.ids, self.options)
            for _ in batches:
                pass
            joined(found, table.codes)
        return found


def joined(found: dict[str, Codes], more: dict[str, Codes]) -> dict[str, Codes]:
    """Add what columns hold in rows that follow."""
    for name, codes in more.items():
        found[name] = found[name].joined(codes) if name in found else codes
    return found


def in_partitions(
    X: FileView,
    ids: Any,
    name: str | None,
    options: ReadOptions,
    known: tuple[Column, ...] | None,
    engine: BucketEngine,
) -> View:
    """Return a view whose rows are `Unread`; see `viewfold.data.open_view`."""
    try:
        return _in_partitions(X, ids, name, options, known, engine)
    except BaseException:
        if X.owner is not None:
            X.owner.cleanup()
        raise


def _in_partitions(
    X: FileView,
    ids: Any,
    name: str | None,
    options: ReadOptions,
    known: tuple[Column, ...] | None,
    engine: BucketEngine,
) -> View:
    label, source = called(name, X.file or None), options.to_remember()
    reader = Reader(X.id_column, options)
    facts, first = _surveyed(engine, reader, X.files)
    starts, names = np.append(0, np.cumsum([one.n_rows for one in facts])), first.features or ()
    n = int(starts[-1])
    if not n:
        raise FileError(f"{label}: there are columns, but no rows. Leave the view out.")
    numbered = ids is False or (ids is None and X.id_column is None)
    given = None if numbered or ids is None or isinstance(ids, str) else as_ids(ids, n, label)
    most = max(1, PIECE // (len(names) * first.dtype.itemsize))
    runs = runs_of(X.files, facts, most, [is_address(file) for file in X.files])
    columns, unsaid = known, ids is None and numbered and known is None
    if known is None:
        coded = frozenset[str]().union(*(one.coded for one in facts))
        codes = _codes(engine, reader, coded, runs)
        if unsaid:
            check_no_text_ids(codes, label)
        columns = _learned(names, codes, options, first.dropped, label)
    elif X.features is not None:
        check_known(known, [*names, *first.dropped], label)
    made = None if X.features is None else columns
    features, dtype = X.features, first.dtype
    if made is not None:
        features, dtype = features_of(made), np.dtype(np.float64)
        check_no_twins(features, label)
        reader = replace(reader, options=known_options(made, source))
    rows = Unread(
        engine=engine,
        reader=reader,
        runs=runs,
        partitions=tuple(f"{file}" for file in X.files),
        starts=starts,
        names=names,
        known=made,
        width=len(names if features is None else features),
        dtype=dtype,
        ids=given,
        numbered=numbered,
        suspects=_suspects(features) if unsaid else (),
        owner=X.owner,
    )
    length = n if numbered else None
    unknown = np.empty(0, object)  # who the samples are is found out with their rows
    view = View(unknown, rows, name, features, length, X.file or None)
    return replace(view, columns=columns, source=source)


def _surveyed(
    engine: BucketEngine, reader: Reader, files: Sequence[str]
) -> tuple[list[Facts], Facts]:
    """Return what is known of all files, and of the first with rows: others have to be alike."""
    facts: list[Facts] = engine.each(Survey(**vars(reader)), files)
    at = next((i for i, one in enumerate(facts) if not one.is_empty), 0)
    for file, of_file in zip(files, facts, strict=True):
        same_columns(of_file, facts[at], file, files[at])
        _check_ids(of_file, file)
    return facts, facts[at]


def _codes(
    engine: BucketEngine, reader: Reader, coded: frozenset[str], runs: list[tuple[Run, ...]]
) -> dict[str, Codes]:
    """Return what columns that are not numbers hold, over all partitions."""
    found: dict[str, Codes] = {}
    if coded:
        options = replace(reader.options, columns=tuple(sorted(coded)), drop=())
        for more in engine.each(Levels(reader.ids, options), runs):
            joined(found, more)
    return found


def _learned(
    names: Sequence[str],
    codes: dict[str, Codes],
    options: ReadOptions,
    dropped: Sequence[str],
    label: str,
) -> tuple[Column, ...] | None:
    """Return what becomes of columns, if not all of them are numbers that are taken."""
    if not codes and not dropped:
        return None
    columns, why = learn(names, codes, options, dropped, label)
    tell_left_out(why, label, options.strict)
    if not any(column.features for column in columns):
        raise ValueError(f"{label}: no column is a feature. Leave the view out.")
    return columns


def _check_ids(facts: Facts, file: str) -> None:
    if not facts.is_empty and facts.id_kind not in ("", "texts", "whole numbers"):
        raise FileError(
            f"{file}: the ids are {facts.id_kind}. Ids are ints or strings; convert them, and drop "
            "rows without an id."
        )


def _suspects(features: tuple[str, ...] | None) -> tuple[int, ...]:
    """Return the features that are called as ids are."""
    return tuple(j for j, name in enumerate(features or ()) if is_called_id(name, first=j == 0))
