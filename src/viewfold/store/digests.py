"""Digests of tables: whether what was read is what was written.

The large table has one for each column and every other table has one, so that a command can check
what it reads and need not read the rest. They find damage; they do not prove who wrote a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from viewfold._util.table import Table

_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def of_columns(columns: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of each column.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.store.digests import of_columns
    >>> sorted(of_columns({"id": np.array(["ann", "bob"], object), "label": np.array([1, 0])}))
    ['id', 'label int64', 'length of id int32']
    """
    digest = Columns()
    digest.add(columns)
    return digest.found()


class Columns:
    """The digests of columns that come in batches, however the rows are cut into them.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold.store.digests import Columns, of_columns
    >>> rows, digest = np.arange(6.0).reshape(3, 2), Columns()
    >>> digest.add({"embedding": rows[:1]})
    >>> digest.add({"embedding": rows[1:]})
    >>> digest.found() == of_columns({"embedding": rows})
    True
    """

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {}

    def add(self, columns: Mapping[str, Any]) -> None:
        """Take more rows in."""
        for name, column in columns.items():
            if np.ma.is_masked(column):
                raise ValueError(f"samples have no {name!r}")
            if len(column):
                self._add(name, np.ma.getdata(column))

    def found(self) -> dict[str, str]:
        """Return the digests so far; the name of each says what the column is made of."""
        return {name: digest.hexdigest() for name, digest in self._columns.items()}

    def _add(self, name: str, values: Any) -> None:
        if values.dtype == object:
            texts = values.tolist()
            letters = "".join(texts).encode()
            plain = letters.isascii()
            sizes = [len(text) if plain else len(text.encode()) for text in texts]
            self._update(f"length of {name} int32", np.array(sizes, np.int32))
            self._update(name, letters)
        else:
            name = f"{name}[{values.shape[1]}]" if values.ndim == 2 else name
            self._update(f"{name} {values.dtype}", np.ascontiguousarray(values).reshape(-1))

    def _update(self, name: str, content: Any) -> None:
        self._columns.setdefault(name, hashlib.sha256()).update(content)


def of_table(table: Table) -> str:
    """Return the digest of a small table, whose times are whole numbers.

    Which zone a database shows them in depends on where it is opened.
    """
    whole = hashlib.sha256(json.dumps(table.column_names).encode())
    for row in table.rows():
        data = row.pop("data", None) or b""
        whole.update(json.dumps(row).encode())
        whole.update(data)
    return whole.hexdigest()


def of_meta(meta: dict[str, Any]) -> str:
    """Return the digest of what the table ``meta`` says, the digests of all others included."""
    said = {key: value for key, value in meta.items() if key != "digest"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def of_format_1(meta: dict[str, Any], columns: dict[str, str], views: Table, arrays: Table) -> str:
    """Return the one digest that files of format 1 have."""
    said = {key: value for key, value in meta.items() if key != "digest"}
    whole = hashlib.sha256(json.dumps([said, sorted(columns.items())], sort_keys=True).encode())
    for table in (views, arrays):
        for row in table.rows():
            data = row.pop("data", None) or b""
            whole.update(repr(sorted(row.items())).encode())
            whole.update(data)
    return whole.hexdigest()


def time_of(microseconds: int) -> datetime:
    """Return microseconds since 1970, UTC, as a time."""
    return _1970 + timedelta(microseconds=microseconds)


def microseconds_of(time: datetime) -> int:
    """Return a time as a whole number; one without a zone is UTC's."""
    known = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (known - _1970) // timedelta(microseconds=1)
