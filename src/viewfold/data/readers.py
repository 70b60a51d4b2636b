"""The file formats that can be read: built in, or added by one decorated function.

A package adds a format for everybody who installs it through the entry point group
``viewfold.formats``. Readers and the libraries they need are imported when a file asks for them.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any, TypeAlias, TypeVar

from viewfold._util.file import FILE_OPTIONS, ReadOptions
from viewfold.data._budget import PACKED
from viewfold.data.fetch import fetched
from viewfold.data.source import FileError, FileView, optional, reading

GROUP = "viewfold.formats"

Reader: TypeAlias = Callable[[str, str | None], FileView | Mapping[str, FileView]]
AnyReader = TypeVar("AnyReader", bound=Reader)


@dataclass(frozen=True)
class Format:
    """A file format.

    Parameters
    ----------
    suffixes : tuple of str
        The endings of its files.
    reader : callable or str
        ``reader(path, ids)`` returns the views of a file. One of viewfold's own is written as
        ``"module:function"``; it takes `ReadOptions`, too, and may return an opened `Table`.
    table : bool
        Whether it is a table, of which a folder may hold several parts.
    text : bool
        Whether a file may be compressed as a whole, with one more ending that says so.
    keeps_names : bool
        Whether a file's only view keeps the name that it has in the file.
    options : tuple of str
        The options of `File` that say something about it.
    needs : str
        The package of the extra ``parquet`` without which its reader cannot be imported.
    """

    suffixes: tuple[str, ...]
    reader: Callable[..., Any] | str
    table: bool = False
    text: bool = False
    keeps_names: bool = False
    options: tuple[str, ...] = ()
    needs: str = ""

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
        if self.needs:
            optional(self.needs, "parquet", file)
        file = fetched(file)
        with reading(file, f"a {self.suffixes[0]} file"):
            return self.function("")(file, ids, *[options] * isinstance(self.reader, str))

    def function(self, name: str) -> Callable[..., Any]:
        """Return the reader, or another function of its module."""
        if not isinstance(self.reader, str):
            return self.reader
        module, _, own = self.reader.partition(":")
        found: Callable[..., Any] = getattr(importlib.import_module(module), name or own)
        return found

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


_BUILT_IN = (
    Format(
        (".csv", ".tsv", ".tab"),
        "viewfold.data._delimited:open_table",
        table=True,
        text=True,
        options=("encoding", "decimal", "thousands"),
    ),
    Format(
        (".parquet", ".pq", ".arrow", ".feather", ".ipc"),
        "viewfold.data._columnar:open_table",
        table=True,
        needs="pyarrow",
    ),
    Format((".jsonl", ".ndjson"), "viewfold.data._lines:open_table", table=True, text=True),
    Format((".npy", ".npz"), "viewfold.data._numpy:read_views"),
    Format((".mat",), "viewfold.data._matlab:read_views"),
    Format((".xlsx",), "viewfold.data._excel:read_views", keeps_names=True, options=("sheet",)),
    Format((".h5ad",), "viewfold.data._bio:read_views", options=("layer", "use_rep")),
    Format(
        (".h5mu",),
        "viewfold.data._bio:read_views",
        keeps_names=True,
        options=("layer", "use_rep"),
    ),
    Format((".mtx",), "viewfold.data._market:read_views", text=True),
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
    ...     return io.FileView(np.loadtxt(path, ndmin=2))
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
            if suffix in _known and not _same(_known[suffix].reader, reader):
                raise ValueError(f"Files that end in {suffix} are read by another function.")
        _known.update(dict.fromkeys(suffixes, form))
        return reader

    return add


def _same(one: Any, other: Any) -> bool:
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


def tables() -> tuple[str, ...]:
    """Return the endings of tables, of which a folder can be one view."""
    return tuple(suffix for suffix, form in _known.items() if form.table)


def find(suffix: str) -> Format | None:
    """Return the format of files with an ending, if there is one."""
    if suffix and suffix not in _known:
        _load_plugins()
    return _known.get(suffix)


def suffix_of(name: str) -> tuple[str, str]:
    """Return the ending that tells a file's format, and that of its compression."""
    stem, last = os.path.splitext(name.lower())
    inner = os.path.splitext(stem)[1]
    form = find(inner) if last in PACKED else None
    if form is not None and form.text:
        return inner, last
    return (last, "") if find(last) else ("", "")


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
