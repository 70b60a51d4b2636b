"""Matrices with their names beside them, lists in columns, folders of data sets, lazy frames."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anndata
import mudata
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.io
from io_files import FRAME, IDS, X, dense, write_h5mu
from scipy import sparse
from ugly_files import GENES, with_lists, write_tenx

from viewfold import ViewFold, as_view, as_views
from viewfold.data import files as io
from viewfold.data import guard
from viewfold.data.files import File

# ---- matrices with barcodes and features --------------------------------------------------------


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("given", ["folder", "file", "prefix"])
def test_a_matrix_beside_its_barcodes_has_cells_in_columns(
    packed: bool, given: str, tmp_path: Path
) -> None:
    prefix = "GSM1_" if given == "prefix" else ""
    folder = write_tenx(tmp_path / "pbmc", prefix, packed)
    file = folder / f"{prefix}matrix.mtx{'.gz' * packed}"
    view = as_view(folder if given == "folder" else file)
    assert view.name == ("pbmc" if given == "folder" else f"{prefix}matrix")
    assert list(view.ids) == IDS
    assert view.features == GENES
    assert sparse.issparse(view.rows.X)
    assert np.array_equal(dense(view), X)


def test_types_of_features_are_views(tmp_path: Path) -> None:
    kinds = ["Gene Expression", "Antibody Capture", "Gene Expression"]
    rna, adt = as_views(write_tenx(tmp_path / "cite", types=kinds))
    assert (rna.name, rna.features) == ("Gene Expression", ("CD3E", "CD4"))
    assert (adt.name, adt.features) == ("Antibody Capture", ("CD8A",))
    assert np.array_equal(dense(rna), X[:, [0, 2]])


def test_cells_in_rows_and_old_files_of_genes_are_read_too(tmp_path: Path) -> None:
    folder = write_tenx(tmp_path / "old", packed=False)
    (folder / "features.tsv").unlink()
    (folder / "genes.tsv").write_text("g1\tCD4\ng2\tCD4\ng3\tCD8A\n")
    scipy.io.mmwrite(folder / "matrix.mtx", sparse.coo_array(X))
    view = as_view(folder)
    assert view.features == ("CD4 (g1)", "CD4 (g2)", "CD8A")
    assert np.array_equal(dense(view), X)


def test_names_that_do_not_fit_the_matrix_are_refused(tmp_path: Path) -> None:
    folder = write_tenx(tmp_path / "a", packed=False)
    with pytest.raises(ValueError, match=r"barcodes are the ids\. Leave ids='id' out"):
        as_view(folder, ids="id")
    (folder / "barcodes.tsv").write_text("ann\nbob\n")
    with pytest.raises(ValueError, match="3 × 4 numbers, but 3 features and 2 barcodes"):
        as_view(folder)
    (folder / "barcodes.tsv").write_text("ann\n\nbob\ndan\n")
    with pytest.raises(ValueError, match=r"barcodes\.tsv, line 2: there is no name"):
        as_view(folder)
    (folder / "barcodes.tsv").unlink()
    with pytest.raises(ValueError, match=r"there is no barcodes\.tsv beside it"):
        as_view(folder)


def test_names_that_unpack_to_too_much_are_refused(tmp_path: Path, monkeypatch) -> None:
    folder = write_tenx(tmp_path / "a")
    (folder / "barcodes.tsv.gz").write_bytes(gzip.compress(b"a\n" * 20_000))
    monkeypatch.setattr(guard, "HARMLESS", 2**20)
    with pytest.raises(ValueError, match=r"barcodes\.tsv\.gz: its names would take .* of memory"):
        as_view(folder)


# ---- lists --------------------------------------------------------------------------------------


def write_parquet(path: Path, table: pa.Table) -> None:
    pyarrow.parquet.write_table(table, path)


WRITERS: dict[str, Callable[[Path, pa.Table], Any]] = {
    "a.parquet": write_parquet,
}
LISTS = {
    "list": pa.list_(pa.float64()),
    "large": pa.large_list(pa.float64()),
    "fixed": pa.list_(pa.float64(), 3),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", LISTS)
def test_lists_become_columns(kind: str, name: str, tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / name
    WRITERS[name](path, with_lists(LISTS[kind]))
    for size in (2**30, 1):  # by rows, and by columns
        monkeypatch.setattr("viewfold.data.columnar._SECTION_BYTES", size)
        view = as_view(path, ids="id")
        assert view.features == ("age", "emb_0", "emb_1", "emb_2")
        assert np.array_equal(dense(view), np.column_stack([np.arange(4.0), X]))
    holes = [None, *X.tolist()[1:]]
    WRITERS[name](path, with_lists(LISTS[kind], holes).drop_columns("age"))
    assert list(as_view(path, ids="id").ids) == IDS[1:]


@pytest.mark.parametrize("name", WRITERS)
def test_lists_of_different_lengths_are_refused_with_the_row(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path, with_lists(LISTS["list"], [[1, 2], [3, 4], [5], [6, 7]]))
    said = f"{name}, row 2, column 'emb': a list of 1 numbers, others have 2"
    with pytest.raises(ValueError, match=re.escape(said)):
        as_view(path, ids="id")
    WRITERS[name](path, with_lists(LISTS["list"], [[]] * 4))
    with pytest.raises(ValueError, match="column 'emb' holds no numbers, but empty lists"):
        as_view(path, ids="id")
    table = with_lists(LISTS["list"])
    WRITERS[name](path, table.append_column("emb_1", pa.array(np.ones(4))))
    with pytest.raises(ValueError, match="2 columns are called 'emb_1'"):
        as_view(path, ids="id")


def test_single_precision_lists_stay_single_and_long_ones_are_asked_for(
    tmp_path: Path, monkeypatch
) -> None:
    table = with_lists(pa.list_(pa.float32())).drop_columns("age")
    write_parquet(tmp_path / "a.parquet", table)
    assert as_view(tmp_path / "a.parquet", ids="id").rows.dtype == np.float32
    wide = pa.table({"emb": pa.array([np.zeros(2**20)] * 2, pa.list_(pa.float32(), 2**20))})
    write_parquet(tmp_path / "a.parquet", wide)
    with pytest.raises(ValueError, match=r"features of column 'emb' would take 1\.05 GB of memory"):
        io.read(tmp_path / "a.parquet")


# ---- AnnData and polars -------------------------------------------------------------------------


@pytest.fixture
def cells() -> anndata.AnnData:
    held = anndata.AnnData(pd.DataFrame(X, index=IDS, columns=list(GENES)))
    held.layers["counts"] = sparse.csr_array(2 * X)
    held.obsm["X_pca"] = X[:, :2]
    held.obsm["scores"] = pd.DataFrame({"s": X[:, 0]}, index=IDS)
    return held


def test_layers_and_representations_are_taken_instead_of_x(cells, tmp_path: Path) -> None:
    cells.write_h5ad(tmp_path / "a.h5ad")
    for held in (cells, tmp_path / "a.h5ad"):
        for asked, features, rows in (
            ({"layer": "counts"}, GENES, 2 * X),
            ({"use_rep": "X_pca"}, ("X_pca_0", "X_pca_1"), X[:, :2]),
            ({"use_rep": "scores"}, ("s",), X[:, :1]),
        ):
            view = as_view(held, **asked)
            assert view.features == features
            assert list(view.ids) == IDS
            assert np.array_equal(dense(view), rows)
        with pytest.raises(ValueError, match=r"has no layer 'raw'\. It has 'counts'"):
            as_view(held, layer="raw")
        with pytest.raises(ValueError, match=r"no representation 'X_umap'.*'X_pca', 'scores'"):
            as_view(held, use_rep="X_umap")
    for held in (cells, tmp_path / "a.h5ad"):
        model = ViewFold(2, random_state=0).partial_fit(held, view="pca", use_rep="X_pca")
        assert model.views_[0].n_features == 2
        assert ViewFold(2, random_state=0).fit(held, layer="counts").views_[0].n_features == 3
    file = File(tmp_path / "a.h5ad", layer="counts")
    assert np.array_equal(dense(as_view(file)), 2 * X)
    with pytest.raises(
        ValueError, match="layer='a' names a part of an AnnData, but X is a ndarray"
    ):
        as_view(X, layer="a")


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_modalities_without_the_layer_are_left_out(tmp_path: Path) -> None:
    write_h5mu(tmp_path / "a.h5mu")
    held = mudata.read_h5mu(tmp_path / "a.h5mu")
    held["rna"].layers["counts"] = 2 * X
    held.write(tmp_path / "a.h5mu")
    with pytest.warns(UserWarning, match=r"'adt' \(no layer 'counts'\) left out.*'rna'"):
        (view,) = as_views(File(tmp_path / "a.h5mu", layer="counts"))
    assert view.name == "rna"
    assert np.array_equal(dense(view), 2 * X)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_backed_cells_are_read_in_blocks(form: Any, cells, tmp_path: Path, monkeypatch) -> None:
    cells.X = form(X)
    cells.write_h5ad(tmp_path / "a.h5ad")
    monkeypatch.setattr("viewfold.data.source.BATCH_BYTES", 1)
    monkeypatch.setattr("viewfold.data.arrays.batch_rows", lambda _: 3)
    backed = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
    view = as_view(backed)
    assert list(view.ids) == IDS
    assert np.array_equal(dense(view), X)
    if form is np.asarray:
        assert isinstance(view.rows.X, np.memmap)  # it was never in memory as a whole


def test_lazy_frames_are_views(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"id": [f"p{i}" for i in range(60)], "a": rng.normal(size=60)})
    frame = frame.with_columns(b=pl.col("a") ** 2)
    lazy = frame.lazy().filter(pl.col("b") >= 0)
    assert np.array_equal(dense(as_view(lazy, ids="id")), frame.drop("id").to_numpy())
    assert isinstance(as_view(lazy, ids="id").rows.X, np.memmap)
    held = ViewFold(3, random_state=0).fit([frame, frame], ids="id")
    model = ViewFold(3, random_state=0).fit([lazy, lazy], ids="id")
    assert np.array_equal(model.labels_, held.labels_)
    found = model.predict_frame(lazy, ids="id", view="view0")
    pd.testing.assert_frame_equal(found, held.predict_frame(frame, ids="id", view="view0"))
    monkeypatch.delattr(pl.LazyFrame, "collect_batches", raising=False)  # an older polars
    assert as_view(pl.DataFrame(FRAME).lazy(), ids="id").shape == (4, 3)
