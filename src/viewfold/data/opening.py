"""Everything users hold becomes a `View` (`as_view`, `as_views`), or an error that says why not."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from scipy import sparse

from viewfold._util.arguments import suggests_arguments, warn_user, which_view
from viewfold._util.file import ReadKeywords, ReadOptions, path_and_options, takes_reading
from viewfold._util.types import IdsLike, ViewLike, ViewsLike, as_python
from viewfold.data.cells import tell_of_cells, without_absent
from viewfold.data.cleaning import without_identical
from viewfold.data.dask_spark import ID, is_dask, write_to_files
from viewfold.data.features import (
    as_features,
    check_same,
    with_new_names,
)
from viewfold.data.files import FileView, name_of, read_file, read_parts
from viewfold.data.id_columns import check_no_ids, check_no_new_ids
from viewfold.data.ids import (
    as_ids,
    check_characters,
    tell_of_totals,
)
from viewfold.data.partitions import open_partitions
from viewfold.data.parts import (
    Parts,
    check_part,
    is_path,
    source_kind,
    split_file,
    split_object,
)
from viewfold.data.view import Column, View, features_of, invented_name, tell_columns, view_label
from viewfold.rows import BucketEngine, Rows, current_engine

MOST_TOLD = 8  # cleanings that a line names


@suggests_arguments
@takes_reading
def as_view(
    X: ViewLike,
    *,
    ids: IdsLike = None,
    name: str | None = None,
    **reading: Unpack[ReadKeywords],
) -> View:
    """Make a `View` of anything that holds one row per sample.

    Parameters
    ----------
    X : array-like, sparse matrix, DataFrame, AnnData, memmap, path or iterator
        A DataFrame of any library that narwhals reads (the index of a pandas DataFrame holds the
        ids, unless it is the default one), a polars LazyFrame, a dense or sparse array, an AnnData,
        backed or not (``obs_names`` are the ids), a NumPy memmap, the path of a file (see
        `viewfold.data.read`) or those of several tables, a dask DataFrame or array, a Spark
        DataFrame (with `ids`), or an iterator of row batches, each of them one of the above. What
        is lazy, mapped or backed, and tables, may be larger than memory. Rows of NaN are absent
        samples.
    ids : array-like, str or False, optional
        One int or str per row, or the name of the column that holds them. Without any, samples
        are known by their row number, unless a column looks as if it held ids, which is an error.
        False says that none does, and that an index is no ids either.
    name : str, optional
        What to call the view, instead of ``labs`` from ``labs.csv``; of several, the one to take.
    layer, use_rep : str, optional
        Of an AnnData: the layer, or the entry of ``obsm``, to take instead of ``X``.
    empty_rows : {"absent", "keep"}, default="absent"
        What rows of zeros are. "absent": in a view without negative values they are samples that
        the view lacks, with a warning, if they outnumber the rows that have fewer than ten values
        other than zero. "keep": they are samples like any other.
    missing_cells : {"accept", "error"}, default="accept"
        What a NaN in a row with other values is: a missing cell (see docs/views.md), or an error.
    columns, drop : list of str, optional
        Of a table: the columns to take, or to leave out.
    categories : list of str, or dict, optional
        Of a table: columns that are categories, whatever they look like; a dict has their levels.
        Unasked, text with few levels is one. A category gives an indicator for each level
        (``ward=ICU``), a date days since the view's first, and sine and cosine of month and weekday
        if they vary. A missing category is a missing cell of all its indicators.
    batch : str, optional
        Of a table: the column that says which batch (site, machine, run) a row is from. `ViewFold`
        removes what batches differ by; see docs/views.md for what that costs.
    empty_markers : list of str, optional
        What stands for a missing cell in text, instead of ``NA``, ``-``, ``?`` and the like.
    strict : bool, default=False
        Whether a column that would be left out, such as free text, is an error.
    as_is : bool, default=False
        Of a file: whether nothing is cleaned; see docs/files.md.

    Returns
    -------
    View

    See Also
    --------
    as_views : Several views at once.
    inspect_views : What would be understood, and which options would help.

    Examples
    --------
    >>> from viewfold import as_view
    >>> as_view([[1.0, 2.0], [3.0, 4.0]], ids=["ann", "bob"], name="labs")
    View('labs', 2 samples × 2 features, float64)
    """
    return read_view(X, ids, name, ReadOptions.of(**reading))


def read_view(X: Any, ids: Any, name: str | None, options: ReadOptions) -> View:
    view = open_view(X, ids=ids, name=name, options=options)
    checked = without_absent(view, options.empty_rows, options.missing_cells)
    return checked if view.checked else tell_of_cells(checked)


def open_view(
    X: Any,
    *,
    ids: Any = None,
    name: str | None = None,
    options: ReadOptions,
    known: tuple[Column, ...] | None = None,
) -> View:
    """Do what `as_view` does, without the check of the cells.

    `known` says what the columns of a known view are: rows get the features that it has.
    """
    if name is not None and not isinstance(name, str):
        kind = type(name).__name__
        raise TypeError(f"The name of a view is a text, got {as_python(name)!r} ({kind}).")
    check_characters([name or ""], "The name of a view")
    X, options = path_and_options(X, options)
    if options.layer is not None or options.use_rep is not None:
        check_part(X, options)
    kind = source_kind(X)
    if kind == "view":
        label = view_label(name or X.name)
        if ids is not None and ids is not False:
            raise ValueError(f"{label} is a View and has its ids already.")
        if options.names_columns:
            raise ValueError(f"{label} is a View: its columns are chosen already.")
        view = _with_known_names(X, options, label)
        if known is not None and view.columns is not None:
            check_same(known, view.columns, label)
        return replace(view, name=name, invented=False) if name else view
    if kind == "path":
        path, X = os.fspath(X), open_path(X, ids, options)
        if isinstance(X, dict):
            X = X[list(X)[which_view(list(X), name, f"{path} holds")]]
    elif isinstance(X, list | tuple) and X and all(map(is_path, X)):
        X = read_parts(X, ids if isinstance(ids, str) else None, options)
    elif kind in ("dask", "spark"):
        X = write_to_files(X, ids, view_label(name), options)
    is_file = isinstance(X, FileView)
    name = name or (X.name if is_file else None) or None
    if options.by_view:
        options = options.for_view(name or "", [name or ""])
    if is_file and X.id_column == ID and ids is not False:
        ids = None
    elif ids is not None and is_dask(ids):
        ids = np.asarray(ids.compute())
    engine = current_engine()
    if is_file and X.files and isinstance(engine, BucketEngine):
        try:
            return open_partitions(X, ids, name, options, known, engine)
        except BaseException:
            if X.owner is not None:
                X.owner.cleanup()
            raise
    file = X.file or None if is_file else None
    label = view_label(name, file)
    take_apart = split_file if is_file else split_object
    parts = take_apart(X, None if ids is False else ids, label, options)
    if ids is None and parts.ids is None and parts.names is not None:
        if options.kinds:
            check_no_new_ids(options, (*parts.names, *parts.dropped), label)
        else:
            check_no_ids(parts, label, is_file=is_file)
    view = make_view(parts, None if ids is False else parts.ids, name, file, options, known)
    kept = options
    if is_file:
        tell_cleaned(X)
        kept = replace(options, cleaning={**options.cleaning, **X.cleaning})
    elif kind != "anndata":
        kept = replace(options, layer=None, use_rep=None, remembered=None)
    return replace(view, source=kept.to_remember())


def _with_known_names(view: View, options: ReadOptions, label: str) -> View:
    """Return rows of a known view under its names of columns; say which are missing or new."""
    if not options.kinds or view.features is None:
        return view
    held = view.columns or tuple(Column(name, "number") for name in view.features)
    names = options.known_names([column.name for column in held], label)
    tell_columns(options.kinds, names, label, strict=options.strict)
    held = tuple(replace(one, name=name) for one, name in zip(held, names, strict=True))
    columns = None if view.columns is None else held
    source = with_new_names(view.source, options)
    return replace(view, features=features_of(held), columns=columns, source=source)


def make_view(
    parts: Parts,
    ids: Any,
    name: str | None,
    file: str | None,
    options: ReadOptions,
    known: tuple[Column, ...] | None = None,
) -> View:
    """Make a view of its parts and its ids; its cells are not checked yet."""
    label = view_label(name, file)
    n, d = parts.rows.shape
    if n == 0 or d == 0:
        raise ValueError(
            f"{label} is empty: found array with {n} sample(s) and {d} feature(s)"
            f" (shape={parts.rows.shape}) while a minimum of 1 is required. Leave "
            "the view out."
        )
    if ids is not None and file is not None and not options.as_is:
        keep = without_identical(ids, parts.rows) if len(ids) == n else None
        if keep is not None:
            warn_user(f"{label}: {n - len(keep):,} rows are there twice, and count once.")
            ids = np.asarray(ids, dtype=object)[keep].tolist()
            parts, n = parts._replace(rows=parts.rows[keep]), len(keep)
    matrix, features, columns = parts.rows, parts.names, None
    if parts.codes or parts.dropped or options.kinds or known is not None:
        matrix, features, columns = as_features(parts, options, known, label)
    check_characters(features or (), f"{label}: the column")
    length = n if ids is None else None
    ids = np.arange(n) if ids is None else as_ids(ids, n, label)
    if known is None and length is None:
        tell_of_totals(ids, label)
    return View(ids, Rows(matrix), name, features, length, file, columns=columns)


def tell_cleaned(view: FileView) -> None:
    """Say what was done to a file before it was read."""
    if view.cleaned:
        shown = "; ".join(view.cleaned[:MOST_TOLD])
        more = f"; … ({len(view.cleaned)} in all)" if len(view.cleaned) > MOST_TOLD else ""
        warn_user(f"{view.file}: cleaned: {shown}{more}. as_is=True reads it as it is written.")


@suggests_arguments
@takes_reading
def as_views(
    X: ViewsLike,
    *,
    ids: IdsLike | Sequence[IdsLike] | Mapping[str, IdsLike] = None,
    **reading: Unpack[ReadKeywords],
) -> list[View]:
    """Make a list of `View` of one view, a list or tuple of views, a dict of them or a MuData.

    Parameters
    ----------
    X : object
        Anything `as_view` takes, a list or a dict (its keys are the names) of such things, a
        MuData (each modality is a view), or the path of a file of several views (``.npz``,
        ``.mat``, ``.h5mu``).
    ids : array-like, str, False, list or dict, optional
        For one view, its ids; for several, the name of the column that all of them have, or a
        list or dict with the ids of each. False: samples are known by their row number.
    batch : str or dict, optional
        Of a table: the column that says which batch a row is from; see `as_view`.
    empty_rows, missing_cells, columns, drop, categories, empty_markers, strict, layer, use_rep
        See `as_view`. `columns`, `drop` and `categories` of several views are dicts by view.
    as_is : bool, default=False
        See `as_view`.

    Returns
    -------
    list of View

    See Also
    --------
    as_view : One view, and all that it may be.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import as_views
    >>> as_views({"labs": np.ones((3, 2)), "scan": np.ones((2, 5))}, ids={"scan": [1, 2]})
    [View('labs', 3 samples × 2 features, float64), View('scan', 2 samples × 5 features, float64)]
    """
    return read_views(X, ids, ReadOptions.of(**reading))


def read_views(X: Any, ids: Any, options: ReadOptions) -> list[View]:
    X, options = path_and_options(X, options)
    if is_path(X):
        X = open_path(X, ids, options)
    by_name = named_views(X)
    if by_name is not None:
        names, held = list(by_name), list(by_name.values())
        own: list[str | None] = [*names]
    elif (of_list := listed_views(X)) is not None:
        own = [own_name(view) for view in of_list]
        names, held = [], of_list
        for i, name in enumerate(own):
            names.append(name or invented_name({*filter(None, own), *names}, i))
    else:
        own = [own_name(X)]
        view = read_view(X, ids, own[0] or invented_name((), 0), options)
        return [replace(view, invented=not own[0])]
    if not held:
        raise ValueError("There is no view: got an empty collection. Give at least one.")
    ids_of = ids_of_each(ids, names)
    views = [
        read_view(view, ids_of[i], name, options.for_view(name, names))
        for i, (name, view) in enumerate(zip(names, held, strict=True))
    ]
    return [replace(view, invented=not own[i]) for i, view in enumerate(views)]


def open_path(X: Any, ids: Any, options: ReadOptions) -> Any:
    """Read a path, once: the FileView of its only view, or all of them by name.

    What Dask or Spark has is one view. Whatever is none of these is returned as it is.
    """
    kind = source_kind(X)
    if kind in ("dask", "spark"):
        return write_to_files(X, ids, view_label(None), options)
    if kind != "path":
        return X
    views = read_file(X, ids if isinstance(ids, str) else None, options)
    return views if len(views) > 1 else next(iter(views.values()))


def own_name(X: Any) -> str | None:
    """Return what a view is called if nobody names it: a file's view is called like the file."""
    if is_path(X):
        return name_of(X)
    if isinstance(X, View):
        return None if X.invented else X.name
    return X.name if isinstance(X, FileView) else None


def ids_of_each(ids: Any, names: list[str]) -> list[Any]:
    if isinstance(ids, Mapping):
        given = {str(name): of_view for name, of_view in ids.items()}
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise ValueError(f"ids are given for {unknown}, but the views are {names}.")
        return [given.get(name) for name in names]
    if ids is None or ids is False or isinstance(ids, str):
        return [ids] * len(names)
    if not isinstance(ids, Sequence) or len(ids) != len(names):
        raise ValueError(
            f"ids must be a list or dict with the ids of each of the {len(names)} views."
        )
    return list(ids)


def named_views(X: Any) -> dict[str, Any] | None:
    """Return the views of a dict or a MuData by name, None for one view."""
    X = getattr(X, "mod", X)  # of a MuData
    if not isinstance(X, Mapping) or sparse.issparse(X):  # a dok_array is a Mapping
        return None
    names = list(map(str, X))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Two views are named {twice!r}. Give each a name of its own.")
    return dict(zip(names, X.values(), strict=True))


def listed_views(X: Any) -> list[Any] | None:
    """Return the views of a list or tuple of views, None for one view."""
    return list(X) if isinstance(X, list | tuple) and X and _is_one_view(X[0]) else None


def _is_one_view(X: Any) -> bool:
    """Whether a list's first element is a view of its own, rather than a row of numbers."""
    return getattr(X, "ndim", 0) == 2 or source_kind(X) != ""


def is_view_like(X: Any) -> bool:
    """Whether this could be meant as a view, or as several, rather than as a target."""
    if isinstance(getattr(X, "mod", X), Mapping):
        return True
    if isinstance(X, list | tuple):
        first = X[0] if X else ""
        is_row = isinstance(first, list | tuple | np.ndarray)
        return not isinstance(first, str) and (is_row or _is_one_view(first))
    if isinstance(X, np.ndarray):
        return X.ndim > 2 or (X.ndim == 2 and X.shape[1] > 1)
    return sparse.issparse(X) or _is_one_view(X)
