"""Dask's tables and arrays are views: their own index holds the ids, or they are refused."""

from __future__ import annotations

import glob
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from partitions import CUTS, N, agree, frame, left_in, on_disk, pieces
from scipy import sparse

from viewfold import ViewFold, as_view, as_views, inspect_views
from viewfold.rows import LocalEngine, using

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")


@pytest.fixture(params=["memory", "buckets"])
def engine(request, tmp_path: Path, monkeypatch):
    """Use each engine; all that is temporary is in a folder of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with using(LocalEngine()) if request.param == "memory" else on_disk() as used:
        yield used


def left(engine) -> list[str]:
    if hasattr(engine, "folder"):
        return left_in(engine)
    return glob.glob(f"{tempfile.gettempdir()}/viewfold-*")


def model_of() -> ViewFold:
    return ViewFold(4, n_init=2, random_state=0, encoder="linear")


def of_parts(table: pd.DataFrame, cuts=CUTS["equal"]):
    return dd.from_map(lambda part: part, pieces(table, cuts), meta=table[:0])


@pytest.mark.parametrize(
    ("cuts", "ids", "engine"),
    [  # every pair of two of the three
        (CUTS["equal"], "texts", "memory"),
        (CUTS["equal"], "numbers", "buckets"),
        (CUTS["empty"], "numbers", "memory"),
        (CUTS["empty"], "texts", "buckets"),
        (CUTS["unequal"], "texts", "memory"),
        (CUTS["unequal"], "numbers", "buckets"),
    ],
    indirect=["engine"],
)
def test_the_index_of_a_dask_frame_holds_the_ids(cuts, ids: str, engine) -> None:
    table = frame(ids)
    table["ward"] = np.where(np.arange(N) % 5 < 2, "ER", "ICU")
    table.iloc[:60, -1] = None  # nothing tells what the first partition holds
    table.iloc[::9, 3] = np.nan
    with using(LocalEngine()):
        expected = model_of().partial_fit(table)
    model = model_of().partial_fit(of_parts(table, cuts))
    agree(model, expected)
    lazy = of_parts(table, cuts)
    assert model.predict(lazy).tolist() == expected.predict(table).tolist()
    assert model.predict_frame(lazy).index.tolist() == table.index.tolist()
    column = of_parts(table.reset_index(names="who"), cuts)
    agree(model_of().fit([column], ids="who"), expected)
    agree(model_of().fit(column.drop(columns="who"), ids=column["who"]), expected)


def test_arrays_of_dask_are_views(engine) -> None:
    table = frame()
    X, names = table.to_numpy(np.float32), table.index.to_numpy(str)
    with using(LocalEngine()):
        expected = model_of().fit(X, ids=names)
    chunked = da.from_array(X, chunks=(70, 5))
    for ids in (names, da.from_array(names, chunks=70)):
        model = model_of().fit(chunked, ids=ids)
        agree(model, expected)
        assert model.embedding_.dtype == expected.embedding_.dtype
        assert model.predict(chunked, ids=ids).tolist() == expected.predict(X).tolist()
    assert model_of().fit(chunked).labels_.tolist() == model_of().fit(X).labels_.tolist()
    assert [view.shape for view in as_views({"a": chunked, "b": chunked[:7]})] == [(N, 12), (7, 12)]
    (found,) = inspect_views(chunked)
    assert found.n_rows == N


def test_an_index_that_nobody_set_is_no_ids(engine) -> None:
    table = frame().reset_index(drop=True)
    whole = dd.from_pandas(table, npartitions=3)
    restarted = dd.from_map(lambda part: part.reset_index(drop=True), pieces(table, (50, 100)))
    counted = table.set_axis(np.arange(N))  # no RangeIndex, but nobody named it either
    unsure = dd.from_map(lambda part: part, pieces(counted, (50, 100)), meta=counted[:0])
    for lazy in (whole, restarted, restarted[restarted.f1 > -9], unsure):
        with pytest.raises(ValueError, match="nobody set the index of this dask DataFrame"):
            as_view(lazy)
        with pytest.raises(ValueError, match="nobody set the index"):
            model_of().fit(lazy)
    assert as_view(restarted, ids=False).length == N
    named = unsure.rename_axis("patient")
    assert as_view(named).length is None
    assert not left(engine)


def test_errors_name_the_partition(engine) -> None:
    table = frame()
    parts = pieces(table, (50, 100))
    parts[1] = parts[1].assign(f3="low")
    lazy = dd.from_map(lambda part: part, parts, meta=table[:0])
    model = model_of().partial_fit(frame(seed=1))
    before, held = model._state, left(engine)
    with pytest.raises(ValueError, match=r"partition 1: other columns.*'f3' holds texts"):
        model.partial_fit(lazy)
    with pytest.raises(ValueError, match="has no id column 'patient'"):
        model.partial_fit(lazy, ids="patient")
    twice = of_parts(pd.concat([table[:60], table[:10]]), (60,))
    with pytest.raises(ValueError, match="duplicate ids") as error:
        model.partial_fit(twice)
    assert left(engine) == held, error  # as long as the error is there, so are its frames
    mixed = da.from_array(np.array([7, "ann", "bob"], object), chunks=3)
    with pytest.raises(ValueError, match="all samples need ids of one kind"):
        model.partial_fit(da.ones((3, 2), chunks=3), ids=mixed)
    with pytest.raises(ValueError, match="240 rows but 5 ids"):
        model.partial_fit(da.from_array(table.to_numpy(), chunks=(9, 12)), ids=list("abcde"))
    with pytest.raises(ValueError, match="no columns that could be named"):
        as_view(da.ones((9, 3)), ids="patient")
    assert model._state is before
    assert left(engine) == held


def test_both_partitions_of_an_id_are_named() -> None:
    table = frame()
    said = "row 0 of partition 0 and row 5 of partition 1"
    with on_disk(), pytest.raises(ValueError, match=said):
        as_view(of_parts(pd.concat([table[:60], table[60:65], table[:1]]), (60,)))


def test_an_error_of_dask_is_passed_on_and_nothing_is_left(engine) -> None:
    def broken(block):
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        as_view(da.ones((9, 3), chunks=3).map_blocks(broken, meta=np.ones((1, 1))))
    thin = da.ones((9, 3), chunks=3).map_blocks(sparse.csr_array)
    with pytest.raises(TypeError, match="A chunk is a csr_array, not a NumPy array"):
        as_view(thin)
    assert not left(engine)


def test_rows_that_workers_wrote_elsewhere_are_missed(engine, monkeypatch) -> None:
    from viewfold.data import dask_spark

    written = dask_spark._write
    monkeypatch.setattr(dask_spark, "_write", lambda *given: written(*given) + 1)
    with pytest.raises(OSError, match=r"3 of 12 rows cannot be found.*all workers share"):
        as_view(da.ones((9, 3), chunks=3))
    monkeypatch.setattr(dask_spark, "_write", lambda part, *_: len(part))
    with pytest.raises(OSError, match=r"partition 0 cannot be found"):
        as_view(da.ones((9, 3), chunks=3))
    assert not left(engine)
