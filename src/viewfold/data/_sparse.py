"""Sparse matrices from files: compiled code trusts their indices, and a shape costs memory."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from viewfold.data._budget import Budget

_PER_LINE = 240  # bytes for a row or column: its pointer, and a row of thirty numbers in a fold


def as_csr(matrix: Any, file: str) -> sparse.csr_array:
    """Return a sparse matrix as CSR, after a look at its shape and its indices."""
    Budget(file).hold(
        _PER_LINE * sum(matrix.shape), f"a sparse matrix of shape {tuple(matrix.shape)}"
    )
    if matrix.format in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)
    return sparse.csr_array(matrix)
