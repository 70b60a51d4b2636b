"""Files become views: a path goes in, matrices or batches of rows come out.

One small module per family of formats; `as_view`, `as_views` and everything built on them take
paths and come here. Nothing is ever unpickled.
"""

from __future__ import annotations

import glob
import importlib
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from viewfold._types import Array, Matrix, PathLike
from viewfold.io._asked import asked_now, asking
from viewfold.io._registry import Format, find, formats, register, suffix_of, tables
from viewfold.io._source import Batch, FileError, FileView, natural
from viewfold.io._spool import Batches, Spool

__all__ = ["FileError", "FileView", "formats", "name_of", "read", "read_set", "register"]


def read(path: PathLike, *, ids: str | None = None) -> dict[str, FileView]:
    r"""Read the views of a file.

    Tables (CSV, TSV, Parquet, Arrow, Feather, JSON lines) hold one view. They come in batches of
    rows, in the order of the file, and may be larger than memory; a folder or a pattern of such
    files is one table. ``.npz``, ``.mat`` and ``.h5mu`` may hold several views: all matrices of
    numbers, whatever they are called; a warning says what else there is. (`read_set` tells the
    classes of a benchmark file from its views.)

    Nothing but the file is read: links, external storage and virtual datasets of HDF5 are refused.
    What it claims to hold, or unpacks to, has to fit the memory (or disk) that is free, and be at
    most 500 times the file if it is more than 256 MB. The environment variable
    ``VIEWFOLD_MEMORY`` (``20G``, for instance) takes the place of both limits of memory, and
    allows that much disk.

    Parameters
    ----------
    path : str or path-like
        A file, a folder of tables, or a pattern such as ``"labs/*.parquet"``.
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
    >>> from viewfold.io import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labs.csv")
    ...     _ = path.write_text("patient,iron,age\n007,1.5,40\n008,,51\n")
    ...     labs = read(path, ids="patient")["labs"]
    ...     for known, rows in labs.rows:
    ...         print(labs.features, known, rows.tolist())
    ('iron', 'age') ['007' '008'] [[1.5, 40.0], [nan, 51.0]]
    """
    files, form = _locate(path)
    file, name = os.fspath(path), name_of(path)
    if form.table:
        return {name: _table(files, form, ids, name, file)}
    found = {key or name: view for key, view in form.views(files[0], ids).items()}
    return {key: replace(view, name=key, file=file) for key, view in found.items()}


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
    >>> from viewfold.io import read_set
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "toy.npz")
    ...     np.savez(path, pixels=np.ones((3, 4)), words=np.ones((3, 2)), y=[0, 1, 1])
    ...     views, target = read_set(path)
    >>> list(views), target
    (['pixels', 'words'], array([0, 1, 1]))
    """
    files, form = _locate(path)
    if suffix_of(files[0])[0] not in (".npz", ".mat"):
        raise FileError(f"{os.fspath(path)}: expected an .npz or .mat file with views and classes.")
    views, target = form.function("read_set")(files[0])
    if len(views) == 1:
        views = {name_of(path): next(iter(views.values()))}
    return views, target


def name_of(path: PathLike) -> str:
    """Return what a view from this path is called.

    Examples
    --------
    >>> from viewfold.io import name_of
    >>> [name_of(path) for path in ("data/labs.csv.gz", "labs.v2.parquet", "labs/*.parquet")]
    ['labs', 'labs.v2', 'labs']
    """
    given = Path(path)
    name = given.name
    if not os.path.exists(given) and _is_pattern(name):
        name = re.split(r"[*?[]", name)[0].rstrip("-_. ") or given.parent.name
    suffix, packed = suffix_of(name)
    return name[: len(name) - len(suffix + packed)] or name


def _is_pattern(text: str) -> bool:
    return any(mark in text for mark in "*?[")


def _locate(path: PathLike) -> tuple[list[str], Format]:
    """Return the files of a path, in the order they count, and their format."""
    file = os.fspath(path)
    if os.path.isdir(file):
        return _parts(file, [str(part) for part in Path(file).rglob("*")])
    if not os.path.exists(file):
        if _is_pattern(file):
            return _parts(file, glob.glob(file, recursive=True))
        raise FileNotFoundError(f"{file}: there is no such file. Is the path right?")
    form = find(suffix_of(file)[0])
    if form is None:
        raise FileError(
            f"{file}: unknown format. Expected a file name that ends in {', '.join(formats())} "
            "(text also with .gz, .zst or .bz2)."
        )
    return [file], form


def _parts(whole: str, found: list[str]) -> tuple[list[str], Format]:
    """Return the tables among the files of a folder or pattern: all of one format."""
    # Programs leave their own notes behind: _SUCCESS, .part-0.crc
    files = [f for f in found if os.path.isfile(f) and os.path.basename(f)[0] not in "._"]
    kinds = tables()
    parts = sorted((f for f in files if suffix_of(f)[0] in kinds), key=natural)
    if not parts:
        raise FileError(
            f"{whole}: there is no table ({', '.join(kinds)}) here. Give the path of a file, or "
            "of a folder of tables."
        )
    mixed = sorted({suffix_of(f)[0] for f in parts})
    if len(mixed) > 1:
        raise FileError(
            f"{whole}: tables of different formats ({', '.join(mixed)}) are not one view. Choose "
            f"with a pattern, for instance *{mixed[0]}."
        )
    form = find(mixed[0])
    assert form is not None
    return parts, form


def _table(files: list[str], form: Format, ids: str | None, name: str, whole: str) -> FileView:
    """Open the first file now, so that wrong columns are told at once, and chain the others."""
    first, asked = form.open(files[0], ids), asked_now()
    # Columns that are read as texts in the first file are so in all.
    as_first = replace(asked, categories={**dict.fromkeys(first.codes), **asked.categories})

    def batches(spool: Spool) -> Iterator[Batch]:
        rows = 0
        for i, file in enumerate(files):
            table = first
            if i:
                with asking(as_first):
                    table = form.open(file, ids)
            if (table.features, table.dtype, table.codes.keys()) != (
                first.features,
                first.dtype,
                first.codes.keys(),
            ):
                raise FileError(
                    f"{file}: other columns, or columns of other types, than {files[0]}. Files "
                    "that are one view need the same columns in the same order."
                )
            table.codes.update(first.codes)  # one number for a level in all files
            for known, block in table.batches(spool):
                rows += len(block)
                yield known, block
        importlib.import_module("pyarrow").default_memory_pool().release_unused()
        if not rows:
            raise FileError(f"{whole}: there are columns, but no rows. Leave the view out.")

    return FileView(Batches(batches), None, first.features, name, whole, first.codes, first.dropped)
