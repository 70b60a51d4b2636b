"""Rows of several known views at once: lists, dicts, files; columns in any order."""

import io
import re
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import pytest
from conftest import Data
from scipy import sparse
from test_cli import Run, files, run, state  # noqa: F401
from ugly_files import write_workbook

import viewfold
from viewfold import ViewFold, as_view
from viewfold.estimators.known import align_columns
from viewfold.rows import Rows, block_bytes

NEW = {"labs": ["ann", "bob", "cleo"], "scan": ["cleo", "dan", "bob"]}


def frames(data: Data) -> dict[str, pd.DataFrame]:
    """Three new samples of each of two views, two of them in both."""
    found = {}
    for name, ids in NEW.items():
        X = data.views[name][: len(ids)].copy()
        names = [f"{name}_{j}" for j in range(X.shape[1])]
        found[name] = pd.DataFrame(X, index=pd.Index(ids, name="patient"), columns=names)
    return found


@pytest.fixture(scope="module")
def model(data: Data) -> ViewFold:
    model = ViewFold(4, random_state=0)
    for name in NEW:
        X, ids = data.parts()[name]
        frame = pd.DataFrame(X, index=ids, columns=[f"{name}_{j}" for j in range(X.shape[1])])
        model.partial_fit(frame, view=name)
    return model


def test_samples_get_what_the_views_they_are_in_tell_together(model: ViewFold, data: Data) -> None:
    new = frames(data)
    alone = {name: model.transform(rows, view=name) for name, rows in new.items()}
    found = model.predict_frame(new)
    assert found.index.tolist() == ["ann", "bob", "cleo", "dan"]
    together = model.transform(new)
    assert np.allclose(together[0], alone["labs"][0])
    assert np.allclose(together[3], alone["scan"][1])
    assert np.allclose(together[1], (alone["labs"][1] + alone["scan"][2]) / 2)
    one = model.predict_frame(new["labs"], view="labs")
    assert np.allclose(found.loc["ann"], one.loc["ann"])
    assert np.array_equal(model.predict(new), found["cluster"])


def test_lists_dicts_mudata_and_files_give_the_same(
    model: ViewFold, data: Data, tmp_path: Path
) -> None:
    new = frames(data)
    expected = model.predict_frame(new)
    for name, rows in new.items():
        rows.to_csv(tmp_path / f"{name}.csv")
    plain = {name: rows.reset_index(drop=True) for name, rows in new.items()}
    paths = [tmp_path / "scan.csv", tmp_path / "labs.csv"]
    asked: list[tuple[Any, Any]] = [
        (list(new.values()), None),
        (tuple(as_view(new[name], name=name) for name in ("labs", "scan")), None),
        ({name: rows.reset_index() for name, rows in new.items()}, "patient"),
        ([rows.reset_index() for rows in new.values()], ["patient", "patient"]),
        (plain, NEW),
        (list(plain.values()), list(NEW.values())),
        ([new["labs"], paths[0]], [None, "patient"]),
        (paths[::-1], "patient"),
    ]
    for X, ids in asked:
        pd.testing.assert_frame_equal(model.predict_frame(X, ids=ids), expected)
        assert np.array_equal(model.predict(X, ids=ids), expected["cluster"])
    by_name = model.predict_frame(paths, ids="patient")  # files know their views by name
    pd.testing.assert_frame_equal(by_name.loc[expected.index], expected)


def test_mudata_and_files_of_several_views_are_predicted_as_they_are_folded(
    model: ViewFold, data: Data, tmp_path: Path
) -> None:
    mudata = pytest.importorskip("mudata")
    new = frames(data)
    expected = model.predict_frame(new)
    cells = mudata.MuData({name: anndata.AnnData(rows) for name, rows in new.items()})
    pd.testing.assert_frame_equal(model.predict_frame(cells), expected)
    cells.write(tmp_path / "new.h5mu")
    pd.testing.assert_frame_equal(model.predict_frame(tmp_path / "new.h5mu"), expected)
    tables = {
        n: [list(r.reset_index()), *r.reset_index().to_numpy().tolist()] for n, r in new.items()
    }
    write_workbook(tmp_path / "new.xlsx", **tables)
    found = model.predict_frame([tmp_path / "new.xlsx"], ids="patient")
    assert np.allclose(found, expected)


def test_the_only_view_needs_no_name(data: Data, tmp_path: Path) -> None:
    rows = frames(data)["labs"]
    rows.to_csv(tmp_path / "new.csv")
    X = data.views["labs"]
    model = ViewFold(4, random_state=0).partial_fit(
        pd.DataFrame(X, columns=list(rows)), view="labs"
    )
    expected = model.predict(rows)
    for new in (tmp_path / "new.csv", [tmp_path / "new.csv"], {"labs": tmp_path / "new.csv"}):
        assert np.array_equal(model.predict(new, ids="patient"), expected)


@pytest.mark.parametrize(
    ("X", "ids", "message"),
    [
        (lambda new: [new["labs"]], None, "1 views in the list, but 2 are known"),
        (lambda new: ["other.csv", "scan.csv"], None, "There is no view 'other'"),
        (lambda new: {"labs": new["labs"], "lab": new["labs"]}, None, "There is no view 'lab'"),
        (
            lambda new: [as_view(new["labs"], name="labs")] * 2,
            None,
            "View 'labs' is given twice",
        ),
        (
            lambda new: new,
            {"labs": [1, 2, 3]},
            "View 'scan' has ids that are texts, others have whole numbers",
        ),
    ],
)
def test_what_cannot_be_told_is_refused(
    X: Any,
    ids: Any,
    message: str,
    model: ViewFold,
    data: Data,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("other", "scan"):
        frames(data)["scan"].to_csv(f"{name}.csv")
    with pytest.raises(ValueError, match=re.escape(message)):
        model.predict(X(frames(data)), ids=ids)


# ---- columns in any order -----------------------------------------------------------------------

HOLDERS = {
    "pandas": lambda frame, _: frame,
    "csv": lambda frame, path: frame.to_csv(path / "new.csv") or path / "new.csv",
    "parquet": lambda frame, path: (
        frame.reset_index().to_parquet(path / "new.parquet", index=False) or path / "new.parquet"
    ),
    "View": lambda frame, _: as_view(frame, name="labs"),
    "AnnData": lambda frame, _: anndata.AnnData(frame),
    "sparse": lambda frame, _: anndata.AnnData(
        sparse.csr_matrix(frame.to_numpy()), frame[[]], pd.DataFrame(index=list(frame))
    ),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_columns_in_another_order_are_put_in_order_by_name(
    holder: str, model: ViewFold, data: Data, tmp_path: Path
) -> None:
    rows = frames(data)["labs"]
    other = rows[list(rows)[::-1]]
    ids = "patient" if holder in ("csv", "parquet") else None
    held = HOLDERS[holder](other, tmp_path)
    assert np.allclose(
        model.transform(held, ids=ids, view="labs"), model.transform(rows, view="labs")
    )
    longer = viewfold.load(saved(model, tmp_path)).extend(held, ids=ids, view="labs")
    expected = viewfold.load(saved(model, tmp_path)).extend(rows, view="labs")
    assert np.allclose(longer.embedding_[-3:], expected.embedding_[-3:])


def saved(model: ViewFold, folder: Path) -> Path:
    model.save(folder / "m.vf")
    return folder / "m.vf"


def test_columns_are_put_in_order_block_by_block(tmp_path: Path) -> None:
    X = np.memmap(tmp_path / "x", np.float32, "w+", shape=(100, 4))
    X[:] = np.arange(400).reshape(100, 4)
    view = as_view(pd.DataFrame(np.ones((100, 4)), columns=list("abcd")))
    rows = Rows(X, present=np.arange(1, 100), columns=np.array([3, 1, 0, 2]))
    with block_bytes(160):
        blocks = [block for _, block in rows.blocks()]
    assert len(blocks) == 10
    assert np.array_equal(np.vstack(blocks), X[1:][:, [3, 1, 0, 2]])
    assert np.array_equal(rows.take(np.array([7, 2])), X[[8, 3]][:, [3, 1, 0, 2]])
    record = ViewFold(2).fit(pd.DataFrame(np.eye(12)[:, :4], columns=list("dbac"))).views_[0]
    ordered = align_columns(view, record, "ViewFold")
    assert ordered.rows.X is view.rows.X
    assert ordered.features == ("d", "b", "a", "c")


@pytest.mark.parametrize("holder", ["pandas", "sparse"])
def test_errors_name_the_column_wherever_it_stands(
    holder: str, model: ViewFold, data: Data, tmp_path: Path
) -> None:
    rows = frames(data)["labs"]
    rows.loc["bob", "labs_3"] = np.inf
    held = HOLDERS[holder](rows[list(rows)[::-1]], tmp_path)
    with pytest.raises(ValueError, match=r"inf in row 1 \(id 'bob'\), column 'labs_3'"):
        model.predict(held, view="labs")


def test_names_that_occur_twice_cannot_be_put_in_order() -> None:
    rng = np.random.default_rng(0)
    cells = anndata.AnnData(rng.normal(size=(20, 3)))
    cells.obs_names = [f"c{i}" for i in range(20)]
    cells.var_names = ["a", "b", "a"]
    model = ViewFold(2, random_state=0).fit(cells)
    assert model.predict(cells).size == 20
    with pytest.raises(ValueError, match="names of features occur twice"):
        model.predict(cells[:, [1, 0, 2]])


# ---- the command line ---------------------------------------------------------------------------


def table(out: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(out), index_col="id")


def test_several_files_are_predicted_together(
    run: Run,  # noqa: F811
    state: Path,  # noqa: F811
    data: Data,
    tmp_path: Path,
) -> None:
    new, model = frames(data), viewfold.load(state)
    expected = model.predict_frame(new)
    (tmp_path / "new").mkdir()
    for name, rows in new.items():
        rows[list(rows)[::-1]].to_csv(f"new/{name}.csv")
        rows.to_csv(f"{name}_new.csv", sep=";", decimal=",")
    for line in (
        "new/labs.csv new/scan.csv",
        "labs_new.csv scan_new.csv --view labs --view scan --decimal ,",
    ):
        code, out, said = run(f"predict p.vf {line} --id patient")
        assert code == 0, said
        np.testing.assert_allclose(table(out), expected, atol=1e-6)
    code, out, said = run("predict p.vf new/scan.csv --id patient")  # called like its view
    assert code == 0, said
    assert len(table(out)) == 3
    for line, message in (
        ("labs_new.csv scan_new.csv", "There is no view 'labs_new'"),
        ("labs_new.csv scan_new.csv --view labs", "2 files and 1 times --view"),
        ("labs_new.csv --view labs --view labs", "names a view twice"),
        ("labs_new.csv", "--view"),
    ):
        code, _, said = run(f"predict p.vf {line} --id patient")
        assert code == 1
        assert message in said


def test_add_only_new_knows_a_view_by_the_name_of_its_file(
    run: Run,  # noqa: F811
    state: Path,  # noqa: F811
    data: Data,
    tmp_path: Path,
) -> None:
    (tmp_path / "new").mkdir()
    new = frames(data)["scan"]
    new.to_csv("new/scan.csv")
    code, _, said = run("add p.vf new/scan.csv --id patient --only-new")
    assert code == 0, said
    assert "scan: 3 samples" in said
    assert "3 new" in said
    model = viewfold.load(state)
    with pytest.raises(ValueError, match="extend takes rows of one view"):
        model.extend(frames(data))
    other = new.rename("more {}".format)
    assert model.extend(as_view(other, name="scan")).ids_.size == 166


def test_options_go_to_the_files_that_they_say_something_about(
    run: Run,  # noqa: F811
    state: Path,  # noqa: F811
    data: Data,
) -> None:
    new = frames(data)
    new["labs"].to_csv("labs.csv", sep=";", decimal=",")
    new["scan"].reset_index().to_parquet("scan.parquet", index=False)
    code, out, said = run("predict p.vf labs.csv scan.parquet --id patient --decimal ,")
    assert code == 0, said
    assert len(table(out)) == 4
    code, _, said = run("predict p.vf labs.csv scan.parquet --id patient --layer counts")
    assert code == 1
    assert "says nothing about" in said


def test_sheets_of_a_workbook_are_predicted_together(
    run: Run,  # noqa: F811
    state: Path,  # noqa: F811
    data: Data,
) -> None:
    new = {name: rows.reset_index() for name, rows in frames(data).items()}
    sheets = {name: [list(rows), *rows.to_numpy().tolist()] for name, rows in new.items()}
    expected = viewfold.load(state).predict_frame(frames(data))
    write_workbook(Path("new.xlsx"), **sheets)
    write_workbook(Path("more.xlsx"), **sheets, notes=[["to do", "x"], ["a", 1.0]])
    for line in (
        "new.xlsx",
        "new.xlsx --view labs --view scan",
        "more.xlsx --sheet labs --sheet scan",
    ):
        code, out, said = run(f"predict p.vf {line} --id patient")
        assert code == 0, said
        np.testing.assert_allclose(table(out), expected, atol=1e-6)
