"""Rows that come later are read as their view was: empty markers, layers, columns of sheets."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from crafted_files import craft, forge
from pandas.testing import assert_frame_equal
from test_cli import Run, run  # noqa: F401
from ugly_files import write_workbook

import viewfold
from viewfold import ViewFold
from viewfold.data.files import File
from viewfold.errors import DamagedFileError

N = 30


def labs(marker: str, rows: int = N) -> pd.DataFrame:
    """Numbers as texts and wards; the last sample lacks every cell."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows, 3)).round(3).astype(str), columns=list("abc"))
    frame["ward"] = rng.choice(["ICU", "ER"], rows)
    frame.iloc[-1] = marker
    frame.insert(0, "id", [f"p{i}" for i in range(rows)])
    return frame


def stored(model: ViewFold, folder: Path) -> ViewFold:
    model.save(folder / "m.vf")
    return viewfold.load(folder / "m.vf")


def test_empty_markers_of_a_view_are_those_of_its_later_rows(tmp_path: Path) -> None:
    path, other = tmp_path / "labs.csv", tmp_path / "other.csv"
    labs("x").to_csv(path, index=False)
    labs("NA").to_csv(other, index=False)
    model = ViewFold(2, n_init=2, random_state=0).partial_fit(path, ids="id", empty_markers=["x"])
    for one in (model, stored(model, tmp_path)):
        assert one.predict(labs("")[:5].drop(columns="id")).size == 5
        with pytest.raises(ValueError, match="NaN in all of row 29"):
            one.predict(path, ids="id")
        # What was no marker then is none now.
        with pytest.raises(ValueError, match="'NA' is not a number"):
            one.predict(other, ids="id")


def test_empty_markers_are_remembered_by_a_state_file(run: Run) -> None:  # noqa: F811
    labs("x").to_csv("labs.csv", index=False)
    assert run("add s.vf labs.csv --id id --clusters 2 --empty-markers x")[0] == 0
    new = labs("x").iloc[:5].replace({"ward": {"ER": "x"}})
    new["id"] = [f"new{i}" for i in range(5)]
    new.to_csv("labs2.csv", index=False)
    code, out, said = run("predict s.vf labs2.csv --id id")
    assert code == 0, said
    assert "not known" not in said  # a level that is not known would be told
    assert len(out.splitlines()) == 6


def test_columns_of_a_sheet_are_read_as_they_were(tmp_path: Path) -> None:
    """Zip codes are categories in one sheet, and numbers to whoever looks at the other alone."""
    rng = np.random.default_rng(0)
    rows = [[f"p{i}", float(rng.normal()), int(rng.choice([10115, 20095]))] for i in range(N)]
    write_workbook(
        tmp_path / "a.xlsx", labs=[["id", "iron", "zip"], *rows], scan=[["id", "x", "y"], *rows]
    )
    model = ViewFold(2, n_init=2, random_state=0)
    book = tmp_path / "a.xlsx"
    model.partial_fit(File(book, sheet="labs"), ids="id", view="labs", categories=["zip"])
    model.partial_fit(File(book, sheet="scan"), ids="id", view="scan")
    found = stored(model, tmp_path).predict_frame(book, ids="id")
    assert found.index.tolist() == [row[0] for row in rows]


def cells(seed: int = 0) -> Any:
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(seed)
    made = anndata.AnnData(np.full((N, 4), 7.0))
    made.obs_names = [f"c{i}" for i in range(N)]
    made.layers["counts"] = rng.normal(size=(N, 4))
    made.obsm["X_pca"] = rng.normal(size=(N, 2))
    return made


@pytest.mark.parametrize("part", [{"layer": "counts"}, {"use_rep": "X_pca"}], ids=str)
def test_an_anndata_is_predicted_from_what_was_folded(part: Any, tmp_path: Path) -> None:
    adata = cells()
    adata.write_h5ad(tmp_path / "rna.h5ad")
    model = ViewFold(2, n_init=2, random_state=0).partial_fit(adata, view="rna", **part)
    rows = adata.layers["counts"] if "layer" in part else adata.obsm["X_pca"]
    with pytest.warns(UserWarning, match="valid feature names"):
        expected = model.predict(rows)  # an array is taken as it is
    assert len(set(expected)) == 2
    for one in (model, stored(model, tmp_path)):
        for X in (adata, tmp_path / "rna.h5ad", File(tmp_path / "rna.h5ad", **part)):
            assert np.array_equal(one.predict_frame(X)["cluster"], expected)
    folded = ViewFold(2, n_init=2, random_state=0).partial_fit(File(tmp_path / "rna.h5ad", **part))
    assert np.array_equal(folded.predict(adata), expected)
    del adata.layers["counts"], adata.obsm["X_pca"]
    with pytest.raises(
        ValueError, match=f"has no (layer|representation) {next(iter(part.values()))!r}"
    ):
        model.predict(adata)


def test_each_modality_is_predicted_from_its_own_layer(tmp_path: Path) -> None:
    mudata = pytest.importorskip("mudata")
    made = mudata.MuData({"rna": cells(1), "adt": cells(2)})
    made.write(tmp_path / "both.h5mu")
    model = ViewFold(2, n_init=2, random_state=0)
    model.partial_fit(made["rna"], view="rna", layer="counts")
    model.partial_fit(made["adt"], view="adt", use_rep="X_pca")
    expected = model.predict_frame(made)
    with_arrays = model.predict_frame(
        {"rna": made["rna"].layers["counts"], "adt": made["adt"].obsm["X_pca"]},
        ids=dict.fromkeys(("rna", "adt"), made.obs_names),
    )
    assert_frame_equal(with_arrays, expected, check_names=False)
    assert_frame_equal(model.predict_frame(tmp_path / "both.h5mu"), expected)


def test_a_private_state_does_not_tell_how_views_were_read(tmp_path: Path) -> None:
    model = ViewFold(2, n_init=2, random_state=0, keep_encoders=False)
    model.partial_fit(cells(), view="rna", layer="counts")
    assert [record.source for record in model.views_] == [None]


# ---- damaged files ------------------------------------------------------------------------------

DAMAGE = {
    "a kind that is not known": ("columns/1/kinds", "from_hex(repeat('09', octet_length(data)))"),
    "negative widths": ("columns/1/widths", "from_hex(repeat('FF', octet_length(data)))"),
    "letters that are none": ("columns/1/letters", "from_hex(repeat('7F', octet_length(data)))"),
    "lengths of other texts": ("columns/1/lengths", "from_hex(repeat('01', octet_length(data)))"),
    "counts of other texts": ("source/1/counts", "from_hex(repeat('00', octet_length(data)))"),
    "many markers": ("source/1/counts", "from_hex(repeat('7F', octet_length(data)))"),
}


@pytest.mark.parametrize(
    "name", [*DAMAGE, "no kinds", "no first", "kinds that are no whole numbers"]
)
def test_damaged_columns_are_told_in_plain_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labs("x").to_csv(tmp_path / "labs.csv", index=False)
    model = ViewFold(2, n_init=2, random_state=0)
    model.partial_fit(tmp_path / "labs.csv", ids="id", empty_markers=["x"])
    path = tmp_path / "m.vf"
    model.save(path)
    forge(monkeypatch)
    if name in DAMAGE:
        array, data = DAMAGE[name]
        craft(path, f"UPDATE arrays SET data = {data} WHERE name = '{array}'")
    elif name.startswith("no "):
        craft(path, f"DELETE FROM arrays WHERE name = 'columns/1/{name[3:]}'")
    else:
        craft(path, "UPDATE arrays SET dtype = 'float32' WHERE name = 'columns/1/kinds'")
    with pytest.raises(DamagedFileError, match=r"of a view|a view was read") as told:
        viewfold.load(path)
    assert "Error" not in str(told.value)
