"""What to read, and how: a path with options (`File`), and all options of reading (`ReadOptions`).

This module imports nothing heavy: the command line needs it before a command runs.
"""

from __future__ import annotations

import codecs
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, get_args

from viewfold._util.messages import format_names

if TYPE_CHECKING:
    from viewfold._util.types import Kind

SPACES = " \u00a0\u202f\u2009"  # as programs write them between thousands
SEPARATORS = ",.'’_" + SPACES
WEB = re.compile(r"https?://", re.I)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+(://|::)", re.I)

# What is written where there is no value, unless `empty_markers` says otherwise.
_MARKERS = """
. - -- ? NA N/A n/a na n.a. N.A. NaN nan -nan -NaN None none NONE NULL null Null NaT <NA> #N/A #NA
1.#IND 1.#QNAN -1.#IND -1.#QNAN
"""
EMPTY_MARKERS = frozenset(["", " ", "  ", "   ", "#N/A N/A", *_MARKERS.split()])

# What rows of zeros are: samples that the view lacks, by the rule of `as_view`, or samples.
EmptyRows: TypeAlias = Literal["absent", "keep"]
# What is done with a NaN in a row that has other values.
MissingCells: TypeAlias = Literal["accept", "error"]
Names: TypeAlias = Sequence[str] | str
Categories: TypeAlias = Names | Mapping[str, Sequence[str] | None]
Function = TypeVar("Function", bound=Callable[..., Any])


class ReadKeywords(TypedDict, total=False):
    """The keywords of `as_view` that say how to read, for type checkers; see `ReadOptions.of`."""

    empty_rows: EmptyRows
    missing_cells: MissingCells
    columns: Names | Mapping[str, Names] | None
    drop: Names | Mapping[str, Names]
    categories: Categories | Mapping[str, Categories]
    batch: str | Mapping[str, str] | None
    empty_markers: Iterable[str | float] | None
    strict: bool
    layer: str | None
    use_rep: str | None
    as_is: bool


@dataclass(frozen=True)
class ReadOptions:
    """How to read a view; `viewfold.as_view` and `viewfold.data.File` say what the options mean.

    Public functions make one of their keywords (`of`) and hand it on; a reader gets it as an
    argument. `kinds` says what the columns of a known view are, `remembered` how it was read, and
    `views` how to read those views of a file that are known. `by_view` holds `columns` and `drop`
    that are given for each view. `rename` has the new name of a column of a known view, by the name
    that the view knows, and `cleaning` how its columns are written (`data.cleaning.Form`).
    """

    empty_rows: EmptyRows = "absent"
    missing_cells: MissingCells = "accept"
    columns: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    categories: Mapping[str, Any] = field(default_factory=dict, hash=False)
    batch: str | None = None
    empty_markers: tuple[str, ...] | None = None
    strict: bool = False
    layer: str | None = None
    use_rep: str | None = None
    sheet: tuple[str, ...] | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    day_first: bool | None = None
    as_is: bool = False
    cleaning: Mapping[str, str] = field(default_factory=dict, hash=False)
    kinds: Mapping[str, Kind] = field(default_factory=dict, hash=False)
    remembered: ReadOptions | None = None
    views: Mapping[str, ReadOptions] = field(default_factory=dict, hash=False)
    by_view: Mapping[str, Mapping[str, Names]] = field(default_factory=dict, hash=False)
    rename: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.empty_rows not in get_args(EmptyRows):
            raise ValueError(f"empty_rows must be 'absent' or 'keep', got {self.empty_rows!r}.")
        if self.missing_cells not in get_args(MissingCells):
            raise ValueError(
                f"missing_cells must be 'accept' or 'error', got {self.missing_cells!r}."
            )
        if self.encoding is not None:
            _check_encoding(self.encoding)
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal={self.decimal!r}: expected '.' or ','.")
        if self.thousands is not None and self.thousands not in list(SEPARATORS):
            raise ValueError(f"thousands={self.thousands!r}: expected one of , . ' _ or a space.")
        if self.thousands is not None and self.thousands == self.decimal:
            raise ValueError(
                f"decimal={self.decimal!r} and thousands={self.thousands!r} are "
                "the same sign. Choose another one for one of them."
            )
        if self.layer is not None and self.use_rep is not None:
            raise ValueError(
                f"layer={self.layer!r} and use_rep={self.use_rep!r} both say "
                "what to take instead of X. Choose one."
            )

    @classmethod
    def of(cls, **said: Unpack[ReadKeywords]) -> ReadOptions:
        """Return what a user says with keywords, in whatever form."""
        given: dict[str, Any] = dict(said)
        names = [
            name for name in ("columns", "drop", "batch") if isinstance(given.get(name), Mapping)
        ]
        by_view = {name: given.pop(name) for name in names}
        markers = given.pop("empty_markers", None)
        if markers is not None:
            markers = [markers] if isinstance(markers, str) else markers
            given["empty_markers"] = tuple(sorted({"", *map(str, markers)}))
        for name in given.keys() & {"columns", "drop", "categories", "batch"}:
            given[name] = _as_said(name, given[name])
        given["strict"], given["as_is"] = bool(given.get("strict")), bool(given.get("as_is"))
        return cls(by_view=by_view, **given)

    def for_view(self, name: str, names: Sequence[str]) -> ReadOptions:
        """Return what is said about one of several views, whose names are given."""
        several = len(names) > 1
        own: dict[str, Any] = {}
        for key in ("columns", "drop", "categories", "batch"):
            given = self.by_view.get(key, getattr(self, key))
            if not given or (not several and key not in self.by_view):
                continue
            by_view = isinstance(given, Mapping) and None not in given.values()
            if not by_view or not set(given) <= set(names):
                raise ValueError(
                    f"{key}=… is said of columns of one view, but there are several. "
                    f"Pass {{view: …}} with names out of {list(names)}, or one view at a time."
                    if several
                    else f"{key}=… is given for the views {format_names(given)}, but this one is "
                    f"{name!r}."
                )
            own[key] = _as_said(key, given.get(name))
        return replace(self, by_view={}, **own) if own or self.by_view else self

    def in_file(self, name: str) -> ReadOptions:
        if name in self.views:
            return self.views[name].with_file(self)
        own = {key: _as_said(key, by[name]) for key, by in self.by_view.items() if name in by}
        return replace(self, **own) if own else self

    def with_file(self, file: ReadOptions) -> ReadOptions:
        """Return the same with what a `File` says; a keyword counts more than that."""
        said = {name: value for name in FILE_OPTIONS if (value := getattr(file, name)) is not None}
        if self.layer is not None or self.use_rep is not None:
            said = {name: value for name, value in said.items() if name not in _PARTS}
        return replace(self, **said) if said else self

    def given(self) -> dict[str, Any]:
        """Return the options that are not what they are if nobody says anything."""
        default = ReadOptions()
        held = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in held.items() if value != getattr(default, name)}

    def to_remember(self) -> ReadOptions | None:
        """Return what rows that come later have to know; None if there is nothing."""
        layer, use_rep = self.part
        kept = ReadOptions(
            batch=self.batch,
            empty_markers=self.empty_markers,
            layer=layer,
            use_rep=use_rep,
            rename=self.rename,
            as_is=self.as_is,
            cleaning=self.cleaning,
        )
        return None if kept == ReadOptions() else kept

    @property
    def part(self) -> tuple[str | None, str | None]:
        """The layer or the entry of obsm to take of an AnnData: as said, or as it was before."""
        nothing_said = self.layer is None and self.use_rep is None
        source = self.remembered if nothing_said and self.remembered is not None else self
        return source.layer, source.use_rep

    @property
    def markers(self) -> frozenset[str]:
        return EMPTY_MARKERS if self.empty_markers is None else frozenset(self.empty_markers)

    @property
    def names_columns(self) -> bool:
        return bool(self.columns is not None or self.drop or self.categories or self.batch)

    def wanted(
        self, names: Sequence[str], label: str, error: type[ValueError] = ValueError
    ) -> tuple[str, ...]:
        """Return the names of the columns to read, in the order of the table."""
        if self.kinds:  # of a known view, other columns are not read; a list gives numbered ones
            known = dict(zip(names, self.known_names(names, label, error), strict=True))
            kinds = ((one, self.kinds.get(known[one], self.kinds.get(f"{one}_0"))) for one in names)
            wanted = tuple(name for name, kind in kinds if kind not in (None, "out"))
            if not wanted:
                raise nothing_in_common(label, names, self.kinds, error)
            return wanted
        there = set(names)
        batch = () if self.batch is None else (self.batch,)
        named = {key: getattr(self, key) or () for key in ("columns", "drop", "categories")}
        for key, columns in (named | {"batch": batch}).items():
            unknown = [column for column in columns if column not in there]
            if unknown:
                raise error(
                    f"{label}: there is no column {unknown[0]!r}, which {key}=… names. Its "
                    f"columns: {format_names(names)}."
                )
        taken = (there if self.columns is None else {*self.columns, *batch}) - set(self.drop)
        wanted = tuple(name for name in names if name in taken)
        if not wanted:
            raise error(f"{label}: no column is left. Take another one, or leave the view out.")
        return wanted

    def known_names(
        self, names: Iterable[str], label: str, error: type[ValueError] = ValueError
    ) -> tuple[str, ...]:
        """Return the names of columns by which the view knows them, if they have new ones."""
        known = {new: old for old, new in self.rename.items()}
        found = tuple(known.get(name, name) for name in names)
        if self.rename and len(set(found)) < len(found):
            new = next(name for name in names if name in known and found.count(known[name]) > 1)
            raise error(
                f"{label}: there are columns {known[new]!r} and {new!r}, which is the new name of "
                f"{known[new]!r} (rename). Give one of them."
            )
        return found

    def kind_of(self, name: str) -> Kind | None:
        """Return what a column is, if that is said."""
        known = next((old for old, new in self.rename.items() if new == name), name)
        coded = name in self.categories or name == self.batch
        return "category" if coded else self.kinds.get(known)

    def is_coded(self, name: str) -> bool:
        """Whether cells are to be read as texts, whatever they look like."""
        return self.kind_of(name) in ("category", "date")


def nothing_in_common(
    label: str, names: Iterable[str], known: Iterable[str], error: type[ValueError] = ValueError
) -> ValueError:
    """Return the error about a table without any column of the view that it is to belong to."""
    names = tuple(names)
    made = error(
        f"{label}: it has no column of this view. The view was folded with {format_names(known)}; "
        f"this table has {format_names(names)}. Is it the wrong table, or the wrong view? If its "
        "columns have new names, give them: rename={'old': 'new'}."
    )
    made.columns = names  # type: ignore[attr-defined]  # of which view they are, others know
    return made


# The options of a `File`; the others are keywords of `as_view`.
FILE_OPTIONS = ("sheet", "encoding", "decimal", "thousands", "day_first", "layer", "use_rep")
_PARTS = ("layer", "use_rep")


def _as_said(key: str, given: Any) -> Any:
    """Return columns that a user names with an option, in whatever form, as it is kept."""
    if key == "categories" and isinstance(given, Mapping):
        return dict(given)
    if key == "batch":
        if given is not None and not isinstance(given, str):
            raise TypeError(
                f"{key}=… takes the name of a column (a text), got {type(given).__name__}."
            )
        return given
    if given is None:
        return {"columns": None, "drop": (), "categories": {}}[key]
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"{key}=… takes names of columns (texts), got {list(names)!r}.")
    return dict.fromkeys(names) if key == "categories" else names


def takes_reading(function: Function) -> Function:
    """Show the keywords of reading in the signature of a function that takes them as ``**reading``.

    So help, editors and the reference list them, and a wrong one is named with its near misses.
    """
    signature = inspect.signature(function)
    *own, _ = signature.parameters.values()
    defaults = ReadOptions()
    for name, annotation in ReadKeywords.__annotations__.items():
        default = () if name == "categories" else getattr(defaults, name)
        kind = inspect.Parameter.KEYWORD_ONLY
        own.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
    function.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
    return function


@dataclass(frozen=True, init=False)
class File(os.PathLike[str]):
    r"""A file, and how to read it where that cannot be told from the file.

    Parameters
    ----------
    path : str or path-like
        A file, folder, pattern or address; see `viewfold.data.read`. ``"-"`` is standard input.
    sheet : str or list of str, optional
        The sheets to read of an Excel file; all of them otherwise.
    encoding : str, optional
        Of text: any that Python knows, such as ``"cp1252"``.
    decimal : {".", ","}, optional
        The decimal sign in text.
    thousands : str, optional
        What separates thousands in text, such as ``","``, ``"."`` or ``" "``.
    day_first : bool, optional
        Whether 03/04/2024 is the third of April, where no cell of the column tells.
    layer : str, optional
        The layer of an AnnData or MuData to take instead of ``X``.
    use_rep : str, optional
        The entry of ``obsm`` to take instead of ``X``, such as ``"X_pca"``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from viewfold import as_view
    >>> from viewfold.data import File
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labs.csv")
    ...     _ = path.write_text("id;Größe;Wert\n7;1.250,5;115,499\n", encoding="cp1252")
    ...     labs = as_view(
    ...         File(path, encoding="cp1252", decimal=",", thousands="."), ids="id"
    ...     )
    >>> labs.features, labs.rows.X.tolist()
    (('Größe', 'Wert'), [[1250.5, 115.499]])
    """

    path: str | os.PathLike[str]
    options: ReadOptions

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        sheet: str | Sequence[str] | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        day_first: bool | None = None,
        layer: str | None = None,
        use_rep: str | None = None,
    ) -> None:
        sheets = (sheet,) if isinstance(sheet, str) else None if sheet is None else tuple(sheet)
        options = ReadOptions(
            sheet=sheets,
            encoding=encoding,
            decimal=decimal,
            thousands=thousands,
            day_first=day_first,
            layer=layer,
            use_rep=use_rep,
        )
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "options", options)

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return plain(os.fspath(self.path))


def file_with(X: str | os.PathLike[str], **said: Any) -> File:
    """Return a path as a `File` that says this, and what it says already."""
    if not isinstance(X, File):
        return File(X, **said)
    return File(X.path, **{**X.options.given(), **said})


def path_and_options(X: Any, options: ReadOptions) -> tuple[Any, ReadOptions]:
    """Return a path without what a `File` says about it, and the options with that."""
    return (X.path, options.with_file(X.options)) if isinstance(X, File) else (X, options)


def is_address(path: str) -> bool:
    return _ADDRESS.match(path) is not None


def plain(address: str) -> str:
    """Return an address without what is not for everybody's eyes: a query, a password."""
    if not is_address(address):
        return address
    address = re.sub(r"://[^/@]*@", "://", address)
    return re.split(r"[?#]", address)[0] if WEB.match(address) else address


def _check_encoding(name: str) -> None:
    try:
        text = codecs.lookup(name)
        codecs.decode(b"", text.name).encode("utf-8")
    except (LookupError, AttributeError, TypeError, ValueError):
        raise ValueError(
            f"encoding={name!r}: there is no such encoding of text. Try utf-8, cp1252, "
            "latin-1 or utf-16."
        ) from None
