"""Files become views: a path goes in, matrices or batches of rows come out.

One small module per family of formats; `as_view`, `as_views` and everything built on them take
paths and come here. Nothing is ever unpickled.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from viewfold._util.file import File, ReadOptions, path_and_options, plain
from viewfold._util.types import Array, Matrix, PathLike
from viewfold.data._locate import locate, name_of
from viewfold.data._parquet_parts import Facts, same_columns
from viewfold.data._spool import Batches, Spool
from viewfold.data.fetch import fetched
from viewfold.data.readers import Format, find, formats, register, suffix_of
from viewfold.data.source import Batch, FileError, FileView

__all__ = ["File", "FileError", "FileView", "formats", "name_of", "read", "read_set", "register"]


def read(path: PathLike, *, ids: str | None = None) -> dict[str, FileView]:
    r"""Read the views of a file.

    Tables (CSV, TSV, Parquet, Arrow, Feather, JSON lines) hold one view. They come in batches of
    rows, in the order of the file, and may be larger than memory; a folder or a pattern of such
    files is one table. ``.xlsx``, ``.npz``, ``.mat`` and ``.h5mu`` may hold several views: all
    sheets or matrices of numbers, whatever they are called; a warning says what else there is.
    (`read_set` tells the classes of a benchmark file from its views.)

    Nothing but the file is read: links, external storage and virtual datasets of HDF5 are refused.
    What it claims to hold, or unpacks to, has to fit the memory (or disk) that is free, and be at
    most 500 times the file if it is more than 256 MB. The environment variable
    ``VIEWFOLD_MEMORY`` (``20G``, for instance) takes the place of both limits of memory, and
    allows that much disk.

    Parameters
    ----------
    path : str or path-like
        A file, a folder, a pattern such as ``"labs/*.parquet"``, an address that fsspec opens
        (``"s3://…"``), ``"-"`` for standard input, or a `File` with options for one of them.
    ids : str, optional
        The column that holds the sample ids (of ``obs``, for AnnData and MuData, which have their
        ``obs_names`` otherwise). In CSV and JSON lines they are ints if every one of them is
        written as an int is (``7``, not ``007`` or ``7.0``), else text.

    Returns
    -------
    dict of str to FileView
        The views by name. A file's only view is called like the file.

    Raises
    ------
    FileError
        A ValueError that names file, line or row, column and remedy.
    FileNotFoundError, PermissionError
        If there is no such file, or it may not be read.
    ImportError
        If the format needs an extra; the message says which.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from viewfold.data.files import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labs.csv")
    ...     _ = path.write_text("patient,iron,age\n007,1.5,40\n008,,51\n")
    ...     labs = read(path, ids="patient")["labs"]
    ...     for known, rows in labs.rows:
    ...         print(labs.features, known, rows.tolist())
    ('iron', 'age') ['007' '008'] [[1.5, 40.0], [nan, 51.0]]
    """
    return read_views(path, ids, ReadOptions())


def read_views(path: PathLike, ids: str | None, options: ReadOptions) -> dict[str, FileView]:
    """Read the views of a file as the options say, and a `File`."""
    path, options = path_and_options(path, options)
    files, form = locate(path)
    name, file = name_of(path), plain(os.fspath(path))
    if form.table:
        return {name: _table(files, form, ids, name, file, options.for_view(name, [name]))}
    found = {key or name: view for key, view in form.views(files[0], ids, options).items()}
    return {key: replace(view, name=key, file=file) for key, view in found.items()}


def read_parts(
    paths: Sequence[PathLike], ids: str | None, options: ReadOptions, owner: Any = None
) -> FileView:
    """Read several tables of one format as one view, in the given order.

    Parameters
    ----------
    paths : sequence of str or path-like
        Files, folders or patterns; see `read`.
    ids : str or None
        The column that holds the sample ids.
    options : ReadOptions
        How to read them.
    owner : object, optional
        Removes the files, if they were made for a while.

    Returns
    -------
    FileView
    """
    found = [locate(path) for path in paths]
    files = [file for of_path, _ in found for file in of_path]
    form = found[0][1]
    for of_path, other in found:
        if other is not form or not other.table:
            raise FileError(
                f"{of_path[0]}: files that are one view are tables of one format. Give other "
                "views one at a time."
            )
    return replace(_table(files, form, ids, "", "", options), owner=owner)


def read_set(path: PathLike) -> tuple[dict[str, Matrix], Array | None]:
    """Read a benchmark file: its views and, if it has them, the true classes.

    Parameters
    ----------
    path : str or path-like
        An ``.npz`` or ``.mat`` file. Views of a ``.mat`` file may have their samples in rows or in
        columns, whichever the views and the classes agree on.

    Returns
    -------
    views : dict of str to ndarray or csr_array
        Samples in rows.
    target : ndarray of shape (n_samples,), or None
        The classes, as the file numbers them.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from viewfold.data.files import read_set
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "toy.npz")
    ...     np.savez(path, pixels=np.ones((3, 4)), words=np.ones((3, 2)), y=[0, 1, 1])
    ...     views, target = read_set(path)
    >>> list(views), target
    (['pixels', 'words'], array([0, 1, 1]))
    """
    files, form = locate(path)
    if suffix_of(files[0])[0] not in (".npz", ".mat"):
        raise FileError(f"{os.fspath(path)}: expected an .npz or .mat file with views and classes.")
    views, target = form.function("read_set")(fetched(files[0]))
    if len(views) == 1:
        views = {name_of(path): next(iter(views.values()))}
    return views, target


def options_of(path: PathLike) -> tuple[str, ...] | None:
    """Return the options of `File` that say something about a file; None if its name does not tell.

    Examples
    --------
    >>> from viewfold.data.files import options_of
    >>> options_of("labs.csv"), options_of("cells.h5ad")
    (('encoding', 'decimal', 'thousands'), ('layer', 'use_rep'))
    """
    form = find(suffix_of(os.fspath(path))[0])
    return None if form is None else form.options


def _table(
    files: list[str], form: Format, ids: str | None, name: str, whole: str, options: ReadOptions
) -> FileView:
    """Open the first file now, so that wrong columns are told at once, and chain the others."""
    # Of a file without rows it is not known what its columns hold.
    tables = ((i, form.open(file, ids, options)) for i, file in enumerate(files))
    at, first = next(((i, one) for i, one in tables if not Facts.of(one).is_empty), (-1, None))
    if first is None:
        raise FileError(f"{whole}: there are columns, but no rows. Leave the view out.")
    # Columns that are read as texts in the first file are so in all.
    coded = {**dict.fromkeys(first.codes), **options.categories}
    as_first = replace(options, categories=coded)

    def batches(spool: Spool) -> Iterator[Batch]:
        rows = 0
        for i, file in enumerate(files):
            table = first if i == at else form.open(file, ids, as_first)
            order = same_columns(Facts.of(table), Facts.of(first), file, files[at])
            # One number for a level in all files; a column may begin without any value.
            first.codes.update({**table.codes, **first.codes})
            table.codes.update(first.codes)
            for known, block in table.batches(spool):
                rows += len(block)
                yield known, block if order is None else block[:, order]
        if "pyarrow" in sys.modules:
            sys.modules["pyarrow"].default_memory_pool().release_unused()
        if not rows:
            raise FileError(f"{whole}: there are columns, but no rows. Leave the view out.")

    return FileView(
        Batches(batches),
        features=first.features,
        name=name,
        file=whole,
        codes=first.codes,
        dropped=first.dropped,
        written=first.written,
        files=tuple(files) if first.sizes is not None else (),
        id_column=ids,
    )
