"""Tables and arrays of Dask and Spark, which write them to Parquet files, partition by partition.

Nothing is moved between partitions, the order of rows is that of the partitions, and the number of
rows is checked.
"""

from __future__ import annotations

import importlib
import os
import re
import tempfile
from dataclasses import replace
from glob import escape, glob
from typing import Any

import numpy as np
import pandas as pd

from viewfold._util.file import ReadOptions
from viewfold._util.messages import format_names, with_suggestion
from viewfold.data.fetch import Named
from viewfold.data.files import FileView, read_parts
from viewfold.data.source import natural
from viewfold.rows import BucketEngine, current_engine
from viewfold.rows.bucket_files import filesystem, is_remote, remove

ID = "__viewfold_id__"  # the column of ids in files that are written here


class _Room:
    """A folder of an engine, where all its workers can write."""

    def __init__(self, engine: BucketEngine) -> None:
        self.name, self._owner = engine.room()

    def cleanup(self) -> None:
        remove(self.name)


def is_dask(X: Any) -> bool:
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "compute")


def write_to_files(X: Any, ids: Any, label: str, options: ReadOptions) -> FileView:
    """Let Dask or Spark write its rows to files, and open these."""
    engine = current_engine()
    folder: Any = (
        _Room(engine)
        if isinstance(engine, BucketEngine)
        else tempfile.TemporaryDirectory(prefix="viewfold-", ignore_cleanup_errors=True)
    )
    write = _write_dask if is_dask(X) else _write_spark
    try:
        return write(X, ids, label, options, folder)
    except BaseException:  # an error keeps its frames, and whatever they hold
        folder.cleanup()
        raise


def _write_dask(X: Any, ids: Any, label: str, options: ReadOptions, folder: Any) -> FileView:
    dask = importlib.import_module("dask")
    if hasattr(X, "chunks"):
        if options.names_columns or isinstance(ids, str):
            raise ValueError(f"{label} is an array: it has no columns that could be named.")
        # Blocks of rows, each with all columns.
        X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
        parts, named, column = list(X.to_delayed().ravel()), False, None
    else:
        column = _id_column(X, ids, label)
        parts = X.to_delayed()
        named = all(isinstance(name, str) for name in X.columns)
    own_ids = [None] * len(parts)
    if is_dask(ids):
        own_ids = list(np.ravel(ids.to_delayed()))
        if len(own_ids) != len(parts):
            raise ValueError(
                f"The ids are in {len(own_ids)} partitions, and the rows in {len(parts)}. Give "
                "both the same."
            )
    has_id_column = column == ID or is_dask(ids)
    write = dask.delayed(_write, pure=False)
    files = [Named(f"{folder.name}/part.{i}.parquet", f"partition {i}") for i in range(len(parts))]
    counts = dask.compute(
        *(
            write(part, of_part, str(file), column == ID)
            for part, of_part, file in zip(parts, own_ids, files, strict=True)
        )
    )
    there = _parquet_files(folder.name)
    gone = [file for file in files if os.path.basename(file) not in there]
    if gone:
        raise _not_shared(label, f"{gone[0]}", folder.name)
    view = read_parts(files, ID if has_id_column else column, options, folder)
    _check_rows(view, sum(counts), label, folder.name)
    return view if named else replace(view, features=None)


def _id_column(X: Any, ids: Any, label: str) -> str | None:
    """Return the column that holds the ids of a dask DataFrame; `ID` if that is its index."""
    if isinstance(ids, str):
        _check_named(X, ids, label)
        return ids
    if ids is not None:
        return None
    index = X._meta.index
    counted = isinstance(index, pd.RangeIndex) or type(index).__name__ == "RangeIndex"
    unset = index.dtype.kind in "iu" and index.name is None and not X.known_divisions
    if counted or unset:
        said = (
            f"{label}: nobody set the index of this dask DataFrame, and it may begin anew in each "
            "partition: it tells no samples apart. Name the column that holds the ids "
            "(ids=…), or say ids=False if samples are known by their row "
            "number, in the order of the partitions."
        )
        raise with_suggestion(ValueError(said), ids=False)
    return ID


def _check_named(X: Any, ids: str, label: str) -> None:
    if ids not in X.columns:
        raise ValueError(
            f"{label} has no id column {ids!r}. Its columns: {format_names(X.columns, 5)}."
        )


def _write(part: Any, ids: Any, path: str, index: bool) -> int:
    import pyarrow as pa
    import pyarrow.parquet

    if hasattr(part, "columns"):
        part = part.to_pandas() if hasattr(part, "to_pandas") else part
        known = part.index if index else ids
        held = part.set_axis([str(name) for name in part.columns], axis=1)
        table = pa.Table.from_pandas(held.reset_index(drop=True), preserve_index=False)
    else:
        if not isinstance(part, np.ndarray):
            raise TypeError(
                f"A chunk is a {type(part).__name__}, not a NumPy array. Convert the chunks first: "
                "X.map_blocks(…)."
            )
        known = ids
        table = pa.table({str(j): part[:, j] for j in range(part.shape[1])})
    if known is not None:
        if len(known) != table.num_rows:
            raise ValueError(f"There are {table.num_rows} rows and {len(known)} ids in one part.")
        try:
            table = table.append_column(ID, pa.array(np.asarray(known)))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise ValueError(
                "Some ids are whole numbers and others are texts. In partitions, all samples need "
                "ids of one kind: write all of them as texts."
            ) from None
    plain = {"compression": "none", "use_dictionary": False}
    if not is_remote(path):
        pyarrow.parquet.write_table(table, path, **plain)
    else:
        fs, inside = filesystem(path)
        with fs.open(inside, "wb") as stream:
            pyarrow.parquet.write_table(table, stream, **plain)
    return int(table.num_rows)


def _write_spark(X: Any, ids: Any, label: str, options: ReadOptions, folder: Any) -> FileView:
    sql = importlib.import_module("pyspark.sql")
    if not isinstance(ids, str):
        raise ValueError(
            f"{label}: the rows of a Spark DataFrame have no order and no index. Name the column "
            "that holds the ids: ids=…"
        )
    _check_named(X, ids, label)
    counted = sql.Observation()
    path = f"{folder.name}/rows"
    address = path if is_remote(path) else f"file://{os.path.abspath(path)}"
    seen = X.observe(counted, sql.functions.count(sql.functions.lit(1)).alias("n"))
    seen.write.parquet(address)
    named = []
    for file in sorted(_parquet_files(path), key=natural):
        number = re.match(r"part-(\d+)", file)
        named.append(Named(f"{path}/{file}", f"partition {int(number[1]) if number else 0}"))
    if not named:
        raise _not_shared(label, "a partition", folder.name)
    view = read_parts(named, ids, options, folder)
    _check_rows(view, int(counted.get["n"]), label, folder.name)
    return view


def _parquet_files(path: str) -> list[str]:
    """Return the names of the files in a folder."""
    if is_remote(path):
        fs, inside = filesystem(path)
        found = fs.glob(f"{inside}/*.parquet")
    else:
        found = glob(f"{escape(path)}/*.parquet")
    return list(map(os.path.basename, found))


def _check_rows(view: FileView, n: int, label: str, folder: str) -> None:
    from viewfold.data.columnar import n_rows

    found = sum(map(n_rows, view.files))
    if found != n:
        raise _not_shared(label, f"{n - found:,} of {n:,} rows", folder)


def _not_shared(label: str, what: str, folder: str) -> OSError:
    return OSError(
        f"{label}: {what} cannot be found where workers were to write it ({folder}). The folder "
        "has to be one that this program and all workers share: give the engine such a one."
    )
