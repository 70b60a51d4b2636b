"""Anything a user holds becomes a `View`: sample ids, a row of numbers for each, and a name.

Everything users hold becomes a `View` here (`as_view`, `as_views`), or an error that says what is
wrong and what to do. Later code sees no file, DataFrame, NaN or duplicate id.
"""

from viewfold.data._look import LARGEST, LARGEST_SINGLE
from viewfold.data.cells import EmptyRows, MissingCells, without_absent
from viewfold.data.column import Column, Source
from viewfold.data.features import asked_of
from viewfold.data.files import (
    File,
    FileError,
    FileView,
    formats,
    name_of,
    read,
    read_set,
    register,
)
from viewfold.data.opening import (
    as_view,
    as_views,
    ids_of_each,
    is_view_like,
    listed_views,
    named_views,
    open_view,
    opened,
    own_name,
)
from viewfold.data.reading import Reading
from viewfold.data.view import View, invented_name

__all__ = [
    "LARGEST",
    "LARGEST_SINGLE",
    "Column",
    "EmptyRows",
    "File",
    "FileError",
    "FileView",
    "MissingCells",
    "Reading",
    "Source",
    "View",
    "as_view",
    "as_views",
    "asked_of",
    "formats",
    "ids_of_each",
    "invented_name",
    "is_view_like",
    "listed_views",
    "name_of",
    "named_views",
    "open_view",
    "opened",
    "own_name",
    "read",
    "read_set",
    "register",
    "without_absent",
]
