"""Files become views: a path goes in, matrices or batches of rows come out.

The table of formats is here; one module per family of formats is imported when a file asks for it.
Nothing is ever unpickled. A package adds a format for everybody who installs it through the entry
point group ``viewfold.formats``.
"""

from __future__ import annotations

import glob
import importlib
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from viewfold._util.file import FILE_OPTIONS, File, ReadOptions, is_address, path_and_options, plain
from viewfold._util.types import Array, Matrix, PathLike
from viewfold.data.arrays import Batches, Spool
from viewfold.data.columnar import same_columns
from viewfold.data.fetch import STDIN, Named, addresses, fetched, file_of, standard_input
from viewfold.data.guard import PACKED
from viewfold.data.source import Batch, FileError, FileView, Table, natural, reading

__all__ = ["File", "FileError", "FileView", "formats", "name_of", "read", "register"]

GROUP = "viewfold.formats"
Reader: TypeAlias = Callable[[str, str | None], FileView | Mapping[str, FileView]]
AnyReader = TypeVar("AnyReader", bound=Reader)


@dataclass(frozen=True)
class Format:
    """A file format."""

    suffixes: tuple[str, ...]
    # ``reader(path, ids)`` returns the views of a file. A built-in one is named "module:function",
    # takes `ReadOptions`, too, and may return an opened `Table`.
    reader: Reader | str
    table: bool = False  # a folder may hold several parts of one view
    text: bool = False  # a file may be compressed as a whole, with one more ending that says so
    keeps_names: bool = False  # a file's only view keeps the name that it has in the file
    options: tuple[str, ...] = ()  # the fields of `File` that say something about it

    def open(self, file: str, ids: str | None, options: ReadOptions) -> Any:
        """Call the reader; whatever it raises names the file."""
        for name in FILE_OPTIONS:
            value = getattr(options, name)
            if value is not None and name not in self.options:
                value = list(value) if name == "sheet" else value
                raise FileError(
                    f"{file}: {name}={value!r} says nothing about {self.suffixes[0]} files. "
                    "Leave it out."
                )
        file = fetched(file)
        with reading(file, f"a {self.suffixes[0]} file"):
            if not isinstance(self.reader, str):
                return self.reader(file, ids)
            module, _, name = self.reader.partition(":")
            read = getattr(importlib.import_module(f"viewfold.data.{module}"), name)
            return read(file, ids, options)

    def views(self, file: str, ids: str | None, options: ReadOptions) -> dict[str, FileView]:
        """Return the views of a file by name; its only view may have none."""
        found = self.open(file, ids, options)
        found = {"": found} if isinstance(found, FileView) else found
        if not isinstance(found, Mapping) or not all(
            isinstance(view, FileView) for view in found.values()
        ):
            raise TypeError(
                f"{file}: the reader of {', '.join(self.suffixes)} returned a "
                f"{type(found).__name__}. It should return a viewfold.data.FileView, or a dict of "
                "them by name."
            )
        if len(found) == 1 and not self.keeps_names:
            return {"": next(iter(found.values()))}
        return dict(found)


_ANNDATA = ("layer", "use_rep")
_EXCEL = ("sheet", "decimal", "thousands", "day_first")
_BUILT_IN = (
    Format(
        (".csv", ".tsv", ".tab"),
        "text:open_delimited",
        table=True,
        text=True,
        options=("encoding", "decimal", "thousands", "day_first"),
    ),
    Format((".parquet", ".pq"), "columnar:open_parquet", table=True),
    Format((".jsonl", ".ndjson"), "text:open_json_lines", table=True, text=True),
    Format((".npy", ".npz"), "matrices:read_numpy"),
    Format((".mat",), "matrices:read_matlab"),
    Format((".xlsx",), "excel:read_excel", keeps_names=True, options=_EXCEL),
    Format((".h5ad",), "hdf5:read_anndata", options=_ANNDATA),
    Format((".h5mu",), "hdf5:read_anndata", keeps_names=True, options=_ANNDATA),
    Format((".mtx",), "matrices:read_matrix_market", text=True),
)
_known: dict[str, Format] = {suffix: form for form in _BUILT_IN for suffix in form.suffixes}


def register(*suffixes: str) -> Callable[[AnyReader], AnyReader]:
    """Let a function read files with certain endings, wherever viewfold takes a path.

    Parameters
    ----------
    *suffixes : str
        The endings, each with its dot.

    Returns
    -------
    callable
        A decorator for ``reader(path, ids)``. `path` is the file and `ids` the column of ids that
        the user named, or None. It returns a `FileView`, or a dict of them by name if a file may
        hold several views. Whatever it raises reaches the user as a `FileError` that names the
        file.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import data
    >>> @data.register(".numbers")
    ... def read_numbers(path, ids):
    ...     return data.FileView(np.loadtxt(path, ndmin=2))
    >>> ".numbers" in data.formats()
    True
    """

    def add(reader: AnyReader) -> AnyReader:
        form = Format(tuple(suffixes), reader)
        for suffix in suffixes:
            if not suffix.startswith(".") or suffix != suffix.lower() or suffix in PACKED:
                raise ValueError(
                    f"{suffix!r} is no ending that a format can have. Write it with a dot and in "
                    "small letters, such as '.xyz'."
                )
            if suffix in _known and not _is_same(_known[suffix].reader, reader):
                raise ValueError(f"Files that end in {suffix} are read by another function.")
        _known.update(dict.fromkeys(suffixes, form))
        return reader

    return add


def _is_same(one: Any, other: Any) -> bool:
    """Whether two functions are one, of a module that was imported again."""
    places = [(f.__module__, f.__qualname__) for f in (one, other) if hasattr(f, "__qualname__")]
    return one is other or (len(places) == 2 and places[0] == places[1])


def formats() -> tuple[str, ...]:
    """Return the file name endings that can be read.

    Examples
    --------
    >>> from viewfold import data
    >>> data.formats()[:4]
    ('.csv', '.tsv', '.tab', '.parquet')
    """
    _load_plugins()
    return tuple(_known)


@cache
def _load_plugins() -> None:
    """Import what other packages add; a broken one is told, and does not stop the others."""
    for plugin in metadata.entry_points(group=GROUP):
        try:
            plugin.load()
        except Exception as error:  # anything may be wrong with somebody else's package
            warnings.warn(
                f"The file format {plugin.name!r} of {plugin.value} cannot be used: {error}",
                stacklevel=2,
            )


def _find(suffix: str) -> Format | None:
    if suffix and suffix not in _known:
        _load_plugins()
    return _known.get(suffix)


def suffix_of(name: str) -> tuple[str, str]:
    """Return the ending that tells a file's format, and that of its compression."""
    stem, last = os.path.splitext(name.lower())
    inner = os.path.splitext(stem)[1]
    if last in PACKED and (form := _find(inner)) and form.text:
        return inner, last
    return (last, "") if _find(last) else ("", "")


def options_of(path: PathLike) -> tuple[str, ...] | None:
    """Return the options of `File` that say something about a file; None if its name does not tell.

    Of a ``.csv`` they are encoding, decimal and thousands, for instance.
    """
    form = _find(suffix_of(os.fspath(path))[0])
    return None if form is None else form.options


# -- reading


def read(path: PathLike, *, ids: str | None = None) -> dict[str, FileView]:
    r"""Read the views of a file.

    Tables (CSV, TSV, Parquet, JSON lines) hold one view. They come in batches of
    rows, in the order of the file, and may be larger than memory; a folder or a pattern of such
    files is one table. ``.xlsx``, ``.npz``, ``.mat`` and ``.h5mu`` may hold several views: all
    sheets or matrices of numbers, whatever they are called; a warning says what else there is.
    (`viewfold.datasets.load` tells the classes of a benchmark file from its views.)

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
        The views by name. A file's only view is named after the file.

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
    return read_file(path, ids, ReadOptions())


def read_file(path: PathLike, ids: str | None, options: ReadOptions) -> dict[str, FileView]:
    """Read the views of a file as the options say, and a `File`."""
    path, options = path_and_options(path, options)
    files, form = _locate(path)
    name, file = name_of(path), plain(os.fspath(path))
    if form.table:
        return {name: _table(files, form, ids, name, file, options.for_view(name, [name]))}
    found = form.views(files[0], ids, options)
    return {key or name: replace(view, name=key or name, file=file) for key, view in found.items()}


def read_parts(
    paths: Sequence[PathLike], ids: str | None, options: ReadOptions, owner: Any = None
) -> FileView:
    """Read several tables of one format as one view, in the given order.

    `owner` removes the files, if they were made for a while.
    """
    found = [_locate(path) for path in paths]
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
    """Read a benchmark file: its views and, if it has them, the classes as the file has them."""
    file = _locate(path)[0][0]
    if suffix_of(file)[0] not in (".npz", ".mat"):
        raise FileError(f"{os.fspath(path)}: expected an .npz or .mat file with views and classes.")
    from viewfold.data import matrices

    views, target = matrices.read_set(fetched(file))
    if len(views) == 1:
        views = {name_of(path): next(iter(views.values()))}
    return views, target


def _table(
    files: list[str], form: Format, ids: str | None, name: str, whole: str, options: ReadOptions
) -> FileView:
    """Open the first file now, so that wrong columns are told at once, and chain the others."""
    # Of a file without rows it is not known what its columns hold.
    opened = ((i, form.open(file, ids, options)) for i, file in enumerate(files))
    found: Iterator[tuple[int, Table]] = ((i, one) for i, one in opened if not one.is_empty)
    at, first = next(found, (-1, None))
    if first is None:
        raise FileError(f"{whole}: there are columns, but no rows. Leave the view out.")
    # Columns that are read as texts in the first file are so in all.
    coded = {**dict.fromkeys(first.codes), **options.categories}
    coded = {name: levels for name, levels in coded.items() if name not in first.cleaning}
    as_first = replace(options, categories=coded, cleaning=first.cleaning)

    def batches(spool: Spool) -> Iterator[Batch]:
        rows = 0
        for i, file in enumerate(files):
            table = first if i == at else form.open(file, ids, as_first)
            order = same_columns(table, first, file, files[at])
            # One number for a level in all files; a column may begin without any value.
            first.codes.update({**table.codes, **first.codes})
            table.codes.update(first.codes)
            for known, block in table.rows.into(spool):
                rows += len(block)
                yield known, block if order is None else block[:, order]
        if not rows:
            raise FileError(f"{whole}: there are columns, but no rows. Leave the view out.")

    parts = tuple(files) if first.sizes is not None else ()
    return replace(first, rows=Batches(batches), name=name, file=whole, files=parts, id_column=ids)


# -- which files a path stands for

_MATRIX = tuple(f"matrix.mtx{packed}" for packed in ("", *PACKED))  # with its names beside it


def name_of(path: PathLike) -> str:
    """Return the name of a view from this path.

    Examples
    --------
    >>> from viewfold.data.files import name_of
    >>> [name_of(path) for path in ("data/labs.csv.gz", "labs.v2.parquet", "labs/*.parquet")]
    ['labs', 'labs.v2', 'labs']
    >>> name_of("s3://bucket/labs.parquet"), name_of("-")
    ('labs', 'stdin')
    """
    file = os.fspath(path)
    if file == STDIN:
        return "stdin"
    given = Path(file_of(file) if is_address(file) else file)
    name = given.name
    if type(file) is Named:  # what its owner calls it, which is no pattern
        name = f"{file}"
    elif not os.path.exists(given) and _is_pattern(name):
        name = re.split(r"[*?[]", name)[0].rstrip("-_. ") or given.parent.name
    suffix, packed = suffix_of(name)
    return name[: len(name) - len(suffix + packed)] or name


def _locate(path: PathLike) -> tuple[list[str], Format]:
    """Return the files of a path, in the order they count, and their format."""
    file = os.fspath(path)
    if file == STDIN:
        return _one(standard_input())
    if is_address(file):
        web = file.lower().startswith("http")
        if not web and (_is_pattern(file) or not suffix_of(file_of(file))[0]):
            found = addresses(file)
            named = [one for one in found if os.path.basename(one) in _MATRIX]
            return _one(named[0]) if named else _parts(plain(file), found)
        return _one(file)
    if os.path.isdir(file):
        named = _real([os.path.join(file, name) for name in _MATRIX])
        if named:
            return _one(named[0])
        return _parts(file, _real([str(part) for part in Path(file).rglob("*")]))
    if not os.path.exists(file):
        if _is_pattern(file):
            return _parts(file, _real(glob.glob(file, recursive=True)))
        raise FileNotFoundError(f"{file}: there is no such file. Is the path right?")
    return _one(file)


def _is_pattern(text: str) -> bool:
    return any(mark in text for mark in "*?[")


def _one(file: str) -> tuple[list[str], Format]:
    form = _find(suffix_of(file_of(file) if is_address(file) else file)[0])
    if form is None:
        raise FileError(
            f"{plain(file)}: unknown format. Expected a file name that ends in "
            f"{', '.join(formats())} (text also with .gz, .zst or .bz2)."
        )
    return [file], form


def _real(found: list[str]) -> list[str]:
    return [file for file in found if os.path.isfile(file)]


def _parts(whole: str, found: list[str]) -> tuple[list[str], Format]:
    """Return the tables among the files of a folder or pattern: all of one format."""
    # Programs leave their own notes behind: _SUCCESS, .part-0.crc
    files = [f for f in found if os.path.basename(f)[0] not in "._"]
    kinds = [suffix for suffix, form in _known.items() if form.table]
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
    return parts, _known[mixed[0]]
