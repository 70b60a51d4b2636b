"""A view in Parquet files gives what it gives in memory, however its rows are cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from partitions import CUTS, N, agree, few, frame, left_in, on_disk, pieces, written
from sklearn.base import clone

from viewfold import FCMVC, ViewFold, as_view
from viewfold.data import columnar
from viewfold.data import partitions as reading
from viewfold.rows import BucketRows, LocalEngine, using

every_cut = pytest.mark.parametrize("cuts", list(CUTS.values()), ids=list(CUTS))


def folded(estimator, *views):
    for i, view in enumerate(views):
        ids = None if isinstance(view, pd.DataFrame) else "id"
        estimator.partial_fit(view, ids=ids, view=f"view{i}")
    return estimator


@every_cut
@pytest.mark.parametrize(
    ("ids", "estimator"),
    [
        ("texts", ViewFold(4, n_init=2, random_state=0, encoder="linear")),
        ("numbers", FCMVC(4, n_init=2, random_state=0)),
    ],
)
def test_partitions_change_nothing(cuts, ids: str, estimator, tmp_path: Path) -> None:
    first, second = few(frame(ids), cuts), few(frame(ids, seed=1)[40:], cuts)
    first.iloc[[3, 20]] = np.nan  # samples that the view lacks
    second.iloc[::9, 2] = np.nan  # missing cells
    paths = [written(tmp_path / str(i), view, cuts) for i, view in enumerate((first, second))]
    expected = folded(clone(estimator), first, second)
    with on_disk():
        model = folded(clone(estimator), *paths)
        assert isinstance(model._state.embedding, BucketRows)
        agree(model, expected)


@every_cut
def test_columns_that_are_no_numbers_are_understood_over_all_partitions(cuts, tmp_path) -> None:
    table = frame()
    table["ward"] = np.where(np.arange(N) % 40 == 5, "ICU", "ER")  # hardly a part has both levels
    table["when"] = pd.Timestamp("2024-01-30") + pd.to_timedelta(np.arange(N) % 50, "D")
    table["when"] = table["when"].dt.strftime("%Y-%m-%d").where(np.arange(N) % 7 > 0)
    table["note"] = [f"text {i}" for i in range(N)]
    table = few(table[::-1], cuts)
    path = written(tmp_path / "labs", table, cuts)
    with pytest.warns(UserWarning, match="'note'"):
        expected = ViewFold(4, n_init=2, random_state=0).partial_fit(table, view="labs")
    with on_disk():
        with pytest.warns(UserWarning, match="'note'") as told:
            model = ViewFold(4, n_init=2, random_state=0).partial_fit(path, ids="id")
        assert len(told) == 1
        agree(model, expected)
        table["ward"] = "somewhere else"
        later = written(tmp_path / "later", table[:20], (10,))
        with pytest.warns(UserWarning, match="not known: 20 of 'ward'"):
            found = model.predict(later, ids="id", view="labs")
    with pytest.warns(UserWarning, match="not known: 20 of 'ward'"):
        assert found.tolist() == expected.predict(table[:20]).tolist()


def test_what_rows_of_zeros_mean_is_decided_for_the_view_as_a_whole(tmp_path: Path) -> None:
    table = frame().abs() + 1
    table.iloc[:25] = 0.0  # all of them in the first partition
    path = written(tmp_path / "labs", table, (30, 100))
    with pytest.warns(UserWarning, match="25 of 240 rows"):
        expected = as_view(table, name="labs")
    with on_disk() as engine:
        with pytest.warns(UserWarning, match="25 of 240 rows"):
            view = as_view(path, ids="id")
        assert view.n_empty == 25
        assert sorted(engine.collect(view.ids)) == sorted(expected.ids)
        assert as_view(path, ids="id", empty_rows="keep").shape[0] == N
        table.iloc[30:] *= -1.0
        signed = written(tmp_path / "signed", table, (30, 100))
        assert as_view(signed, ids="id").shape[0] == N


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_rows_keep_their_precision(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path / "labs", frame().astype(kind))
    with on_disk() as engine:
        view = as_view(path, ids="id")
        assert view.rows.dtype == view.rows.held == kind
        order = np.argsort(engine.collect(view.partitions.numbers))
        assert np.array_equal(engine.collect(view.rows)[order], frame().astype(kind).to_numpy())
        assert engine.collect(view.ids)[order].tolist() == frame().index.tolist()


def test_a_part_with_its_columns_in_another_order_is_mended(tmp_path: Path) -> None:
    table = frame()
    path = written(tmp_path / "labs", table)
    other = table.iloc[60:120][table.columns[::-1]]
    other.reset_index().to_parquet(path / "part.1.parquet", index=False)
    expected = ViewFold(4, n_init=2, random_state=0).partial_fit(table, view="labs")
    agree(ViewFold(4, n_init=2, random_state=0).partial_fit(path, ids="id"), expected)
    with on_disk():
        agree(ViewFold(4, n_init=2, random_state=0).partial_fit(path, ids="id"), expected)


def test_folders_patterns_and_lists_are_one_view(tmp_path: Path) -> None:
    table = frame()
    folder = written(tmp_path / "labs", table)
    listed = [folder / f"part.{i}.parquet" for i in (2, 0, 1, 3)]
    order = pd.concat([pieces(table, CUTS["equal"])[i] for i in (2, 0, 1, 3)]).index
    for engine in (using(LocalEngine()), on_disk()):
        with engine:
            for X in (folder, str(folder / "*.parquet"), listed):
                model = ViewFold(4, n_init=2, random_state=0).partial_fit(X, ids="id", view="labs")
                assert model.views_[0].n_samples == N
            assert model.predict_frame({"labs": listed}, ids="id").index.tolist() == order.tolist()


def test_files_elsewhere_are_fetched_by_workers(tmp_path: Path, monkeypatch) -> None:
    system = pytest.importorskip("fsspec").filesystem("memory")
    folder = written(tmp_path / "labs", frame())
    try:
        for file in folder.iterdir():
            system.pipe_file(f"/views/labs/{file.name}", file.read_bytes())
        expected = ViewFold(4, n_init=2, random_state=0).partial_fit(frame(), view="labs")
        with on_disk() as engine:
            fetched: list[str] = []
            whole = columnar.fetched
            monkeypatch.setattr(
                columnar, "fetched", lambda file: fetched.append(str(file)) or whole(file)
            )
            model = ViewFold(4, n_init=2, random_state=0)
            model.partial_fit("memory://views/labs/*.parquet", ids="id", view="labs")
            agree(model, expected)
            came = [file for file in fetched if file.startswith("memory://")]
            assert len(came) == len(set(came)) == 4  # each file once
            system.pipe_file("/views/labs/part.1.parquet", b"PAR1 and no more")
            del model
            with pytest.raises(ValueError, match=r"part\.1\.parquet: cannot be read"):
                as_view("memory://views/labs/*.parquet", ids="id")
            assert not left_in(engine)
    finally:
        system.rm("/views", recursive=True)


def test_what_is_held_at_once_is_bounded(tmp_path: Path, monkeypatch) -> None:
    table = frame(features=8)
    (tmp_path / "labs").mkdir()
    path = tmp_path / "labs" / "all.parquet"
    table.reset_index().to_parquet(path, index=False, row_group_size=7)
    assert pq.read_metadata(path).num_row_groups == 35
    expected = as_view(path, ids="id")
    sizes: list[int] = []
    deal = reading.write_buckets

    def noted(path, n_buckets, ids, *rows):
        sizes.append(len(ids))
        return deal(path, n_buckets, ids, *rows)

    monkeypatch.setattr(reading, "write_buckets", noted)
    monkeypatch.setattr("viewfold.data.partitions.PIECE", 20 * 8 * 8)
    with on_disk() as engine:
        view = as_view(path, ids="id")
        assert max(sizes) <= 20
        assert sum(sizes) == N
        assert sorted(engine.collect(view.ids)) == sorted(expected.ids)
        # A single row group is dealt piece by piece as well.
        sizes.clear()
        monkeypatch.setattr(reading, "PIECE", 1)
        monkeypatch.setattr("viewfold.data.source.BATCH_BYTES", 1)
        many = pd.DataFrame(np.random.default_rng(0).normal(size=(6240, 8))).add_prefix("x")
        many.rename_axis("id").reset_index().to_parquet(path, index=False)
        as_view(path, ids="id")
        assert (max(sizes), sum(sizes)) == (64, 6240)
