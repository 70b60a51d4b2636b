"""Views: sample ids, a matrix with a row for each of them, and a name.

Everything users hold becomes a `View` here (`as_view`, `as_views`), or an error that says what is
wrong and what to do. Later code sees no file, DataFrame, NaN or duplicate id.
"""

from viewfold.view._cells import EmptyRows, MissingCells, without_absent
from viewfold.view._column import Column, Source
from viewfold.view._columns import asked_of
from viewfold.view._look import LARGEST, LARGEST_SINGLE
from viewfold.view._open import (
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
from viewfold.view._reading import Reading
from viewfold.view._view import View, invented_name

__all__ = [
    "LARGEST",
    "LARGEST_SINGLE",
    "Column",
    "EmptyRows",
    "MissingCells",
    "Reading",
    "Source",
    "View",
    "as_view",
    "as_views",
    "asked_of",
    "ids_of_each",
    "invented_name",
    "is_view_like",
    "listed_views",
    "named_views",
    "open_view",
    "opened",
    "own_name",
    "without_absent",
]
