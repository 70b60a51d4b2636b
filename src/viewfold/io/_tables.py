"""What all tables have in common: features that are numbers, and perhaps a column of ids.

A table is opened (its columns are looked at) before it is read (in batches, in the file's order),
so that a file of gigabytes with the wrong columns fails at once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewfold._option import helped_by, option
from viewfold._types import Array
from viewfold.ids import MISSING
from viewfold.io._asked import asked_now
from viewfold.io._columns import Codes, codes_of, is_codable
from viewfold.io._source import Batch, FileError, as_object, some
from viewfold.io._spool import Spool

BATCH_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Table:
    """An opened table.

    Parameters
    ----------
    features : tuple of str or None
        Names of the columns other than the ids; None if the file has no names.
    dtype : dtype
        float32 if all features are single precision, else float64.
    batches : callable
        ``batches(spool)`` gives the rows; see `viewfold.io._spool.Batches`.
    codes : dict of str to Codes
        What the numbers of columns that hold none stand for, as far as rows were read.
    dropped : tuple of str
        Columns that are not read because the user said so.
    written : dict of str to str
        How it is written, where that had to be found out: encoding, delimiter, decimal sign.
    sizes : tuple of int, or None
        How many rows are in each part of the file that can be read by itself, if there are any.
    id_kind : str
        What the column of ids holds, where the file says so.
    nothing : frozenset of str
        Columns without a type, as no cell has a value.
    """

    features: tuple[str, ...] | None
    dtype: np.dtype[Any]
    batches: Callable[[Spool], Iterator[Batch]]
    codes: dict[str, Codes] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    written: Mapping[str, str] = field(default_factory=dict)
    sizes: tuple[int, ...] | None = None
    id_kind: str = ""
    nothing: frozenset[str] = frozenset()


def check_names(file: str, names: Sequence[str], ids: str | None) -> None:
    """Refuse columns that cannot be told apart, and an id column that is not there."""
    name, times = Counter(names).most_common(1)[0]
    if times > 1 and not name:
        raise FileError(
            f"{file}: {times} columns have no name. Name them, or remove what stands above the "
            "names."
        )
    if times > 1:
        raise FileError(f"{file}: {times} columns are called {name!r}. Give each its own name.")
    if ids is not None and ids not in names:
        raise FileError(f"{file}: there is no column {ids!r}. Its columns: {some(names)}.")
    if "" in names and ids != "":
        where = names.index("")
        why = " (pandas writes its index so)" if where == 0 else ""
        said = (
            f"{file}: column {where} has no name{why}. Name it, remove it, or say "
            f"{option('ids', '')} if it holds the ids."
        )
        raise helped_by(FileError(said), ids="")
    if not set(names) - {ids}:
        raise FileError(f"{file}: there is no column but the ids. Leave the view out.")


def check_numbers(file: str, others: Mapping[str, str], ids: str | None) -> None:
    """Refuse columns that are not numbers, given with what they hold instead."""
    if not others:
        return
    first, found = next(iter(others.items()))
    if len(others) > 1:
        what, advice = f"columns {some(others)} hold no numbers", "Drop or encode them"
        advice += "." if ids is not None else f", and name the ids with {option('ids')}."
    else:
        what, advice = f"column {first!r} holds no numbers", "Drop or encode it"
        advice += "." if ids is not None else f", or say {option('ids', first)} if it is the ids."
    raise helped_by(FileError(f"{file}: {what} ({found}). {advice}"), drop=list(others))


def arrow_features(file: str, columns: Sequence[str], widths: Mapping[str, int]) -> tuple[str, ...]:
    """Return the features' names: a list of numbers has one for each of them."""
    names = [
        name
        for column in columns
        for name in (
            [f"{column}_{j}" for j in range(widths[column])] if column in widths else [column]
        )
    ]
    check_names(file, names, None)
    return tuple(names)


def arrow_columns(
    file: str, schema: pa.Schema, ids: str | None, widths: Mapping[str, int]
) -> tuple[tuple[str, ...], dict[str, Codes]]:
    """Check the columns of an Arrow schema; return those to read, and codes for some."""
    check_names(file, schema.names, ids)
    index = _pandas_index(schema)
    if ids is None and index:
        said = (
            f"{file}: column {index[0]!r} is an index that pandas wrote. Say "
            f"{option('ids', index[0])} if it holds the ids, or write the file without it."
        )
        raise helped_by(FileError(said), ids=index[0])
    asked = asked_now()
    wanted = asked.wanted([name for name in schema.names if name != ids], file)
    kinds = {name: schema.field(name).type for name in wanted if name not in widths}
    coded = [n for n, kind in kinds.items() if asked.is_coded(n) or not _is_number(kind)]
    others = {n: str(kinds[n]) for n in coded if not (_is_number(kinds[n]) or is_codable(kinds[n]))}
    check_numbers(file, others, ids)
    return wanted, codes_of(coded, file)


def list_columns(schema: pa.Schema, ids: str | None) -> dict[str, int | None]:
    """Return the columns of lists of numbers, with the length that the schema tells, if it does."""
    kinds = {field.name: field.type for field in schema if field.name != ids}
    return {
        name: kind.list_size if pa.types.is_fixed_size_list(kind) else None
        for name, kind in kinds.items()
        if _is_list(kind) and _is_number(kind.value_type)
    }


def first_length(column: Any) -> int | None:
    """Return the length of the first list of a column; None if there is none."""
    lengths = pc.list_value_length(column).drop_null()
    return int(lengths[0].as_py()) if len(lengths) else None


def arrow_dtype(
    schema: pa.Schema, columns: Sequence[str], codes: Mapping[str, Codes]
) -> np.dtype[Any]:
    """Return what the rows come as."""
    kinds = [schema.field(name).type for name in columns]
    kinds = [kind.value_type if _is_list(kind) else kind for kind in kinds]
    kinds = [kind for kind in kinds if not pa.types.is_null(kind)] or kinds
    single = not codes and all(
        pa.types.is_float32(kind) or pa.types.is_float16(kind) for kind in kinds
    )
    return np.dtype(np.float32 if single else np.float64)


def arrow_batch(
    file: str,
    batch: Any,
    columns: Sequence[str],
    dtype: np.dtype[Any],
    ids: str | None,
    row: int,
    codes: Mapping[str, Codes],
    widths: Mapping[str, int] = MappingProxyType({}),
) -> Batch:
    """Return ids and matrix of an Arrow record batch, whose first row is number `row`."""
    rows = np.empty((batch.num_rows, sum(widths.get(name, 1) for name in columns)), dtype)
    at = 0
    for name in columns:
        column = batch.column(batch.schema.get_field_index(name))
        end = at + widths.get(name, 1)
        if name in widths:
            rows[:, at:end] = _lists(file, name, column, widths[name], row)
        elif name in codes:
            rows[:, at] = codes[name](column)
        else:
            rows[:, at] = column.to_numpy(zero_copy_only=False)
        at = end
    if ids is None:
        return None, rows
    return _arrow_ids(file, batch.column(batch.schema.get_field_index(ids)), row), rows


def _lists(file: str, name: str, column: Any, width: int, row: int) -> Array:
    """Return lists of numbers as a matrix; a list that is missing is a row of NaN."""
    lengths = pc.list_value_length(column)
    at = pc.index(pc.fill_null(pc.not_equal(lengths, width), False), True).as_py()
    if at >= 0:
        raise FileError(
            f"{file}, row {row + at}, column {name!r}: a list of {lengths[at].as_py()} numbers, "
            f"others have {width}. Lists of one column need one length."
        )
    values = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    if not column.null_count:
        return np.asarray(values)
    out = np.full((len(column), width), np.nan)
    out[column.is_valid().to_numpy(zero_copy_only=False)] = values
    return out


def ids_of_text(texts: Any) -> Array:
    """Return ids that were read as text: ints if every one is written as ints are, else texts.

    ``7`` and ``-12`` are ints; ``007``, ``+7``, ``7.0`` and what exceeds 64 bits are texts.
    As ints and their texts are one to one, a reader of batches can change its mind later on.
    """
    try:
        numbers = texts.cast(pa.int64())
        if numbers.cast(pa.string()).equals(texts):
            return np.asarray(numbers.to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        pass
    return as_object(texts.to_pylist())


def check_present(
    file: str, column: Any, row: int, place: Callable[[int], str] = "row {}".format
) -> None:
    """Refuse rows without an id; the column's first row is number `row`."""
    gone = column.is_null()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        bare = pc.utf8_lower(pc.utf8_trim_whitespace(column))
        gone = pc.or_kleene(gone, pc.is_in(bare, value_set=pa.array(sorted(MISSING), bare.type)))
    at = pc.index(gone, True).as_py()
    if at >= 0:
        raise no_id(file, place(row + at), column[at].as_py())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        at = pc.index(pc.match_substring(column, "\ufeff"), True).as_py()
        if at >= 0:
            raise FileError(
                f"{file}, {place(row + at)}: the id {column[at].as_py()!r} holds an invisible "
                "mark, which stands between files that were put together. Remove it."
            )


def no_id(file: str, place: str, written: Any) -> FileError:
    """Return the error about a row without an id, or with a word that stands for none."""
    found = f"the id {written!r} says that there is none" if written else "there is no id"
    return FileError(f"{file}, {place}: {found}. Fill it in or drop the row.")


def batch_rows(n_columns: int) -> int:
    """Return how many rows fit a batch."""
    return max(64, BATCH_BYTES // (8 * n_columns))


def _arrow_ids(file: str, column: Any, row: int) -> Array:
    check_present(file, column, row)
    if pa.types.is_integer(column.type):
        top = pc.max(column).as_py()
        if top is not None and top >= 2**63:
            raise FileError(f"{file}: the id {top} has more than 63 bits. Write such ids as texts.")
        # A copy, as a view would keep Arrow's memory from being used again.
        return np.array(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return as_object(column.to_pylist())


def kind_of_ids(kind: Any) -> str:
    """Return what ids of an Arrow type are."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    texts = ("is_string", "is_large_string", "is_string_view")
    if any(hasattr(pa.types, test) and getattr(pa.types, test)(kind) for test in texts):
        return "texts"
    return "whole numbers" if pa.types.is_integer(kind) else str(kind)


def _is_list(kind: Any) -> bool:
    tests = ("is_list", "is_large_list", "is_fixed_size_list")
    return any(getattr(pa.types, test)(kind) for test in tests)


def _is_number(kind: Any) -> bool:
    tests = ("is_integer", "is_floating", "is_decimal", "is_boolean", "is_null")
    return any(getattr(pa.types, test)(kind) for test in tests)


def _pandas_index(schema: pa.Schema) -> list[str]:
    """Return the columns that pandas wrote for an index that somebody had set."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        return [name for name in index if isinstance(name, str) and name in schema.names]
    except (KeyError, TypeError, ValueError):
        return []
