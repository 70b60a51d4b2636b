"""The types of all signatures: what users may pass (…Like), and what viewfold computes with.

Libraries other than NumPy are imported for type checkers only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    from narwhals.typing import IntoDataFrame
    from numpy.typing import ArrayLike
    from scipy import sparse

Array: TypeAlias = NDArray[Any]
# The rows of a view: an ndarray, a memmap or a csr_array. SciPy has no types, so this is no union:
# mypy would refuse each method that only two of the three have.
Matrix: TypeAlias = Any
# Sample ids, each once: whole numbers (int64), or objects that are int or str.
Ids: TypeAlias = NDArray[Any]
PathLike: TypeAlias = str | os.PathLike[str]


def as_python(value: Any) -> Any:
    """Return a NumPy scalar as a Python value: a message shows ``3``, not ``np.int64(3)``."""
    return value.item() if isinstance(value, np.generic) else value


class HoldsRows(Protocol):
    """A `viewfold.View`, or what `viewfold.data.read` returns for a file."""

    @property
    def rows(self) -> Any: ...

    @property
    def ids(self) -> Any: ...


class HoldsCells(Protocol):
    """An AnnData: ``X`` with a row for each of ``obs_names``."""

    X: Any

    @property
    def obs_names(self) -> Any: ...

    @property
    def var_names(self) -> Any: ...


class HoldsModalities(Protocol):
    """A MuData: an AnnData for each modality."""

    @property
    def mod(self) -> Mapping[str, Any]: ...


# One view: an array, a sparse matrix, a DataFrame, an AnnData, a `View`, a path, or an iterator
# of batches of rows.
ViewLike: TypeAlias = (
    "ArrayLike | sparse.sparray | sparse.spmatrix | IntoDataFrame | HoldsCells | HoldsRows "
    "| PathLike | Iterator[Any]"
)
# One view, or several: in a list, in a dict by name, in a MuData, or in a file.
ViewsLike: TypeAlias = "ViewLike | Sequence[ViewLike] | Mapping[str, ViewLike] | HoldsModalities"
# One id per row, the name of the column that holds them (a str), False (rows are known by their
# number), or None: whatever the rows bring along.
IdsLike: TypeAlias = (
    "Sequence[int] | Sequence[str] | NDArray[Any] | pd.Index | pd.Series | Literal[False] | None"
)
# The ids of one view, or those of each of several.
IdsOfViews: TypeAlias = "IdsLike | Sequence[IdsLike] | Mapping[str, IdsLike]"
# What a column of a table is; "out" is one that is left out.
Kind: TypeAlias = Literal["number", "category", "date", "out"]
# What scikit-learn calls random_state.
Seed: TypeAlias = "int | np.random.RandomState | None"
