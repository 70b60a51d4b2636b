"""Tables as Arrow holds them, from Parquet and Arrow files: typed columns become ids and rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewfold._util.file import ReadOptions
from viewfold._util.messages import with_suggestion
from viewfold._util.types import Array
from viewfold.data._budget import Budget
from viewfold.data._tables import check_names, check_numbers, check_present, no_id
from viewfold.data.codes import Cells, Codes, codes_of
from viewfold.data.source import Batch, FileError, as_object


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
    file: str,
    schema: pa.Schema,
    ids: str | None,
    widths: Mapping[str, int],
    options: ReadOptions,
) -> tuple[tuple[str, ...], dict[str, Codes]]:
    """Check the columns of an Arrow schema; return those to read, and codes for some."""
    check_names(file, schema.names, ids)
    index = _pandas_index(schema)
    if ids is None and index:
        said = (
            f"{file}: column {index[0]!r} is an index that pandas wrote. Say "
            f"ids={index[0]!r} if it holds the ids, or write the file without it."
        )
        raise with_suggestion(FileError(said), ids=index[0])
    wanted = options.wanted([name for name in schema.names if name != ids], file, FileError)
    kinds = {name: schema.field(name).type for name in wanted if name not in widths}
    coded = [n for n, kind in kinds.items() if options.is_coded(n) or not _is_number(kind)]
    known = [n for n in coded if _is_number(kinds[n]) or _is_codable(kinds[n])]
    others = {n: str(kinds[n]) for n in coded if n not in known}
    check_numbers(file, others, ids)
    return wanted, codes_of(coded, file, options)


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
            rows[:, at] = _coded(column, codes[name])
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


def _coded(column: Any, codes: Codes) -> Array:
    """Return numbers for the cells of a column that holds something else."""
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    declared = pa.types.is_dictionary(column.type)
    # Texts are not written out for each row: a long one in many rows would take gigabytes.
    if declared and _is_date(column.type.value_type):
        column = column.dictionary_decode()
    if _is_date(column.type):
        if codes.kind == "date" or (codes.kind is None and not declared):
            moments = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
            floats = moments.cast(pa.float64(), safe=False).fill_null(np.nan)
            return codes(Cells.of_moments(floats.to_numpy(zero_copy_only=False)))
        column = column.cast(pa.string())
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    distinct = Cells.of(coded.dictionary.to_pylist())
    at = coded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return codes(Cells(distinct.texts, np.append(distinct.at, -1)[at], declared))


def _arrow_ids(file: str, column: Any, row: int) -> Array:
    if pa.types.is_dictionary(column.type):
        if _is_text(column.type.value_type):
            lengths = pc.binary_length(column.dictionary).cast(pa.int64())
            Budget(file).hold(pc.sum(lengths.take(column.indices)).as_py() or 0, "its ids")
        column = column.dictionary_decode()
    if column.null_count:
        raise no_id(file, f"row {row + pc.index(column.is_null(), True).as_py()}", None)
    if pa.types.is_integer(column.type):
        top = pc.max(column).as_py()
        if top is not None and top >= 2**63:
            raise FileError(f"{file}: the id {top} has more than 63 bits. Write such ids as texts.")
        # A copy, as a view would keep Arrow's memory from being used again.
        return np.array(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        check_present(file, column.to_pylist(), row)
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return as_object(column.to_pylist())


def kind_of_ids(kind: Any) -> str:
    """Return what ids of an Arrow type are."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if _is_text(kind):
        return "texts"
    return "whole numbers" if pa.types.is_integer(kind) else str(kind)


def _is_text(kind: Any) -> bool:
    tests = ("is_string", "is_large_string", "is_string_view")
    return any(getattr(pa.types, test, _no)(kind) for test in tests)


def text_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that hold texts, each written out in its row."""
    return [field.name for field in schema if _is_text(field.type)]


def _is_list(kind: Any) -> bool:
    tests = ("is_list", "is_large_list", "is_fixed_size_list")
    return any(getattr(pa.types, test)(kind) for test in tests)


def _is_number(kind: Any) -> bool:
    tests = ("is_integer", "is_floating", "is_decimal", "is_boolean", "is_null")
    return any(getattr(pa.types, test)(kind) for test in tests)


def _is_codable(kind: Any) -> bool:
    """Whether a column of this type can be given numbers."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    names = ["string", "large_string", "string_view", "boolean", "integer", "floating", "null"]
    tests = [getattr(pa.types, f"is_{name}", _no) for name in names]
    return _is_date(kind) or any(test(kind) for test in tests)


def _is_date(kind: Any) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _no(_: Any) -> bool:
    return False


def _pandas_index(schema: pa.Schema) -> list[str]:
    """Return the columns that pandas wrote for an index that somebody had set."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        return [name for name in index if isinstance(name, str) and name in schema.names]
    except (KeyError, TypeError, ValueError):
        return []
