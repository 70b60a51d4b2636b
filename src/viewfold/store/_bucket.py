"""One bucket of a ``.vfd`` folder, as a Parquet file: written, checked and read where it is needed.

These are tasks for the workers of an engine, and what their rows are made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from viewfold._util.types import Array
from viewfold.errors import UnreadableError
from viewfold.rows.bucket_files import (
    BucketRows,
    Part,
    PartitionFiles,
    Stored,
    bucket_of,
    former_bucket_of,
    store,
    whole,
    write_buckets,
)
from viewfold.store import digests
from viewfold.store._check import DOUBLE, Expected, checked, differ, row_problems
from viewfold.store._samples import samples_table
from viewfold.store.folder import Folder, reading
from viewfold.store.manifest import Bucket
from viewfold.store.tables import CHANGED, COLUMNS

if TYPE_CHECKING:
    from viewfold.state.clusters import Clusters

TYPES: dict[str, tuple[pa.DataType, ...]] = {
    "id": (pa.int64(), pa.string()),
    "label": (pa.int32(),),
    "confidence": (pa.float32(),),
    "added": (pa.int32(),),
    "fingerprints": (pa.int32(),),
    "views_seen": (pa.bool_(),),
    "history": (pa.int32(),),
    "embedding": (pa.float32(), pa.float64()),
}
"""What columns hold; those of rows are lists of one length of it."""

SINGLE = ("id", "label", "confidence", "added")

Kind = tuple[str, tuple[int, ...]]
"""The type of the numbers in a row, and its shape."""


def packed(table: pa.Table) -> pa.Buffer:
    """Return a table as Parquet: a kind of compression that costs next to nothing to undo."""
    sink = pa.BufferOutputStream()
    small = [name for name in table.column_names if name in SINGLE]
    parquet.write_table(
        table, sink, compression="lz4", use_dictionary=False, write_statistics=small
    )
    return sink.getvalue()


def columns_of(folder: Folder, file: str, bucket: Bucket, names: Sequence[str]) -> pa.Table:
    """Read some columns of a file of samples, if it has the rows that it should have."""
    with folder.open(file) as source:
        opened = parquet.ParquetFile(source, pre_buffer=False)
        if opened.metadata.num_rows != bucket.rows:
            raise UnreadableError(
                f"it has {opened.metadata.num_rows} rows and should have {bucket.rows}"
            )
        schema = opened.schema_arrow
        for name in names:
            _check_type(schema, name)
        table = opened.read(columns=list(names), use_threads=False)
    table.validate(full=True)  # compiled code trusts offsets, and a damaged file may hold any
    if len(table) != bucket.rows:
        raise UnreadableError(f"it has {len(table)} rows and should have {bucket.rows}")
    return table


def _check_type(schema: pa.Schema, name: str) -> None:
    if name not in schema.names:
        raise UnreadableError(f"it has no column {name!r}")
    kind = schema.field(name).type
    if name not in SINGLE and pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    if kind not in TYPES[name]:
        raise UnreadableError(f"its column {name!r} does not have the documented type")


def as_array(table: pa.Table, name: str) -> Array:
    """Return a column as an array."""
    column = table[name].combine_chunks()
    width: tuple[int, ...] = ()
    if pa.types.is_fixed_size_list(column.type):
        width, column = (column.type.list_size,), column.flatten()
    if column.null_count:
        raise UnreadableError(f"samples have no {name!r}")
    found: Array = column.to_numpy(zero_copy_only=False).reshape(-1, *width)
    return found


@dataclass(frozen=True)
class Column:
    """What a column holds of one bucket: rows that are read when they are needed."""

    folder: Folder
    file: str
    bucket: Bucket
    name: str

    @property
    def n(self) -> int:
        """How many rows."""
        return self.bucket.rows

    def open(self) -> Array:
        """Read them."""
        with reading(self.folder, self.file):
            return as_array(columns_of(self.folder, self.file, self.bucket, [self.name]), self.name)


@dataclass(frozen=True)
class WriteBucket:
    """Write the samples of a bucket."""

    folder: Folder
    generation: str
    clusters: Clusters

    def __call__(self, item: tuple[int, tuple[Part, ...]]) -> Bucket:
        number, parts = item
        table = samples_table(self.clusters, *(whole(part.open()) for part in parts))
        data = packed(table.to_arrow())
        made = Bucket(number, len(table), data.size, digests.of_columns(table.columns))
        self.folder.write(f"{self.generation}/{made.file}", memoryview(data))
        return made


@dataclass(frozen=True)
class CheckBucket:
    """Read a bucket, check all of it, and say what its columns are.

    It also says whether samples belong into other buckets now, as viewfold 0.1 had another rule.
    With `room`, its part of the embedding is left there as plain bytes: unpacking a list of numbers
    takes several times as long as reading it, and a fold reads the embedding several times.
    """

    folder: Folder
    generation: str
    n_buckets: int
    expected: Expected
    room: str | None = None

    def __call__(self, bucket: Bucket) -> tuple[dict[str, Kind], Stored | None, bool]:
        file = f"{self.generation}/{bucket.file}"
        with reading(self.folder, file):
            table = columns_of(self.folder, file, bucket, list(TYPES))
            every = {name: as_array(table, name) for name in table.column_names}
            check_digests(every, bucket, whole=True)
            for _ in checked([every], self.expected.n_views, self.expected.n_steps):
                pass
            rows = {name: every[name] for name in COLUMNS}
            named = {COLUMNS[name]: array for name, array in rows.items() if name != "fingerprints"}
            for problem in row_problems(self.expected, **named):
                raise UnreadableError(problem)
            elsewhere = bool(np.any(bucket_of(rows["id"], self.n_buckets) != bucket.bucket))
            if elsewhere and np.any(former_bucket_of(rows["id"], self.n_buckets) != bucket.bucket):
                raise UnreadableError(f"it has samples of other buckets than {bucket.bucket}")
        left = None
        if self.room is not None:
            left = store(f"{self.room}/{bucket.bucket}", rows["embedding"])
        kinds = {name: (array.dtype.name, array.shape[1:]) for name, array in rows.items()}
        return kinds, left, elsewhere


def refuse_doubles(item: tuple[int, tuple[Part, ...]]) -> None:
    """Refuse a bucket in which a sample is twice."""
    ids = whole(item[1][0].open())
    if not differ(ids):
        raise UnreadableError(DOUBLE)


@dataclass(frozen=True)
class DealBucket:
    """Put the samples of a bucket into others, of which there is another number."""

    path: str
    n_buckets: int

    def __call__(self, item: tuple[int, tuple[Part, ...]]) -> PartitionFiles:
        number, parts = item
        ids, *rows = (whole(part.open()) for part in parts)
        return write_buckets(f"{self.path}/{number}", self.n_buckets, ids, *rows)


def check_digests(columns: Mapping[str, Array], bucket: Bucket, *, whole: bool = False) -> None:
    """Compare columns with their digests."""
    found = digests.of_columns(columns)
    if not found.items() <= bucket.digests.items() or (whole and found != bucket.digests):
        raise UnreadableError(CHANGED)


def as_rows(
    folder: Folder,
    generation: str,
    buckets: Sequence[Bucket],
    kinds: Mapping[str, Kind],
    engine: Any,
) -> dict[str, BucketRows]:
    """Return all columns that a state is made of, by their names in the file."""
    made = {}
    for name, (kind, tail) in kinds.items():
        held = np.dtype(kind)
        nothing = Stored("", "text" if held.kind == "O" else "dense", held.name, tail, 0, 0)
        parts: list[Part] = [nothing] * engine.n_buckets
        for one in buckets:
            parts[one.bucket] = Column(folder, f"{generation}/{one.file}", one, name)
        many = sum(one.rows for one in buckets) * int(np.prod(tail, dtype=np.int64))
        made[name] = BucketRows(tuple(parts), held, tuple(tail), engine, stored=many)
    return made
