"""The words of all signatures."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Matrix: TypeAlias = Any  # Array, np.memmap or scipy.sparse.csr_array
