"""JSON lines: one object per sample, its keys are the columns.

The file is read twice: which keys there are is known at the end only. A key that a line lacks is
a missing value.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from math import isinf
from typing import Any

import numpy as np

from viewfold._util.file import ReadOptions
from viewfold.data._budget import LONGEST_LINE, Budget, Unpacked
from viewfold.data._tables import (
    Table,
    batch_rows,
    check_names,
    check_numbers,
    ids_of_text,
    no_id,
    without,
)
from viewfold.data.codes import Cells, Codes, codes_of
from viewfold.data.ids import MISSING
from viewfold.data.source import Batch, FileError, reading, too_large


def open_table(file: str, ids: str | None, options: ReadOptions) -> Table:
    """Look at all lines of a file."""
    keys: dict[str, None] = {}
    texts, others = set[str](), dict[str, str]()
    lines = 0
    with reading(file, "JSON lines"):
        for line, record in _records(file):
            lines += 1
            keys |= dict.fromkeys(record)
            for key, value in record.items():
                if isinstance(value, str):
                    texts.add(key)
                elif key != ids and not (value is None or isinstance(value, int | float)):
                    others.setdefault(key, f"line {line} holds {str(value)[:40]!r}")
    if not keys:
        raise FileError(f"{file}: the file is empty. Leave the view out.")
    check_names(file, list(keys), ids)
    features = options.wanted([key for key in keys if key != ids], file, FileError)
    taken = set(features)
    check_numbers(file, {key: what for key, what in others.items() if key in taken}, ids)
    coded = [key for key in features if key in texts or options.is_coded(key)]
    codes = codes_of(coded, file, options)
    Budget(file).spool(8 * lines * len(features), f"{lines:,} lines × {len(features):,} keys")
    dtype = np.dtype(np.float64)
    dropped = without(keys, (*features, ids))
    return Table(features, dtype, lambda _: _batches(file, features, ids, codes), codes, dropped)


def _records(file: str) -> Iterator[tuple[int, dict[str, Any]]]:
    with Unpacked(file, LONGEST_LINE) as stream:
        for number, line in enumerate(io.BufferedReader(stream, 2**20), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(
                    line, object_pairs_hook=_once, parse_float=_float, parse_int=_int
                )
            except _TooLargeError as error:
                place = f"{file}, line {number}"
                raise too_large(place, str(error), "write null") from None
            except _TwiceError as error:
                raise FileError(
                    f"{file}, line {number}: the key {str(error)!r} stands there twice. Keep one."
                ) from None
            except (ValueError, RecursionError) as error:
                raise FileError(
                    f"{file}, line {number}: not JSON ({str(error)[:100]}). Write one object per "
                    "line, in UTF-8."
                ) from error
            if not isinstance(record, dict):
                raise FileError(
                    f"{file}, line {number}: a {type(record).__name__}, not an object. Write "
                    '{"column": value, …} on each line.'
                )
            yield number, record


class _TooLargeError(Exception):
    """A number that float64 cannot hold, as it is written."""


def _float(text: str) -> float:
    value = float(text)
    if isinf(value):
        raise _TooLargeError(text)
    return value


def _int(text: str) -> int:
    if len(text) > 308:  # Python refuses thousands of digits, and float64 more than 308
        _float(text)
    return int(text)


class _TwiceError(Exception):
    """A key that an object has twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys are all different: Python would keep the last of two."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return found


def _batches(
    file: str, features: tuple[str, ...], ids: str | None, codes: dict[str, Codes]
) -> Iterator[Batch]:
    most = batch_rows(len(features))
    known: list[str] = []
    rows: list[list[Any]] = []
    with reading(file, "JSON lines"):
        for line, record in _records(file):
            if ids is not None:
                known.append(_id(file, line, record.get(ids)))
            rows.append([record.get(key) for key in features])
            if len(rows) == most:
                yield _batch(known, rows, ids, features, codes)
                known, rows = [], []
        if rows:
            yield _batch(known, rows, ids, features, codes)


def _batch(
    known: list[str],
    rows: list[list[Any]],
    ids: str | None,
    features: tuple[str, ...],
    codes: dict[str, Codes],
) -> Batch:
    found = None if ids is None else ids_of_text(known)
    if not codes:
        return found, np.array(rows, dtype=np.float64)
    columns = zip(features, zip(*rows, strict=True), strict=True)
    numbers = [
        codes[name](Cells.of(cells)) if name in codes else np.array(cells, dtype=np.float64)
        for name, cells in columns
    ]
    return found, np.column_stack(numbers)


def _id(file: str, line: int, value: Any) -> str:
    if value is None or (isinstance(value, str) and value.strip().lower() in MISSING):
        raise no_id(file, f"line {line}", value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise FileError(
            f"{file}, line {line}: the id {value!r} is a {type(value).__name__}. Ids are ints or "
            "strings."
        )
    return str(value)
