"""A Spark DataFrame is a view; without Java or pyspark this is skipped."""

from __future__ import annotations

import glob
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from partitions import agree, frame, left_in, on_disk

from viewfold import ViewFold, as_view
from viewfold.rows import LocalEngine, using

pyspark = pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """Return a session that all tests here share: it takes seconds to start."""
    from pyspark.sql import SparkSession

    quiet = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in quiet.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def model_of() -> ViewFold:
    return ViewFold(4, n_init=2, random_state=0, encoder="linear")


@pytest.mark.parametrize("engine", ["memory", "buckets"])
def test_a_spark_frame_is_a_view(spark, engine: str, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table = frame()
    expected = model_of().partial_fit(table)
    rows = spark.createDataFrame(table.reset_index()).repartition(3)
    with using(LocalEngine()) if engine == "memory" else on_disk() as used:
        model = model_of().partial_fit(rows, ids="id")
        agree(model, expected)
        told, want = model.predict_frame(rows, ids="id"), expected.predict_frame(table)
        assert told.loc[want.index, "cluster"].tolist() == want["cluster"].tolist()
        del model
        with pytest.raises(ValueError, match=r"have no order and no index\. Name the column"):
            as_view(rows)
        with pytest.raises(ValueError, match="has no id column 'patient'"):
            as_view(rows, ids="patient")
        twice = rows.union(rows.limit(1)).repartition(2)
        with pytest.raises(ValueError, match="duplicate ids"):
            as_view(twice, ids="id")
        left = left_in(used) if engine == "buckets" else glob.glob(f"{tmp_path}/viewfold-*")
        assert not left
