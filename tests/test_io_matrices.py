"""MATLAB, Matrix Market and benchmark sets: matrices, views and classes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
from conftest import SHARED
from io_files import (
    X,
    cell,
    dense,
    write_mat73,
)
from scipy import sparse

from viewfold import as_view
from viewfold.data import files as io
from viewfold.data import matrices

A, B = np.arange(20.0).reshape(4, 5), np.arange(28.0).reshape(4, 7)
GT = np.array([[1], [2], [2], [3]])
LAYOUTS: dict[str, tuple[dict[str, Any], list[np.ndarray], bool]] = {
    "samples in rows": ({"X": [A, B], "Y": GT}, [A, B], True),
    "samples in columns": ({"data": [A.T, B.T], "truelabel": [GT]}, [A, B], True),
    "some of each": ({"X": [A.T, B], "gt": GT.T}, [A, B], True),
    "one matrix in columns": ({"fea": A.T, "gnd": GT}, [A], True),
    "a square one lies as the others": ({"X": [A.T, A[:, :4].T], "gt": GT}, [A, A[:, :4]], True),
    "without classes": ({"X": [A.T, B.T]}, [A, B], False),
    "equal shapes": ({"X": [A, A]}, [A, A], False),
    "separate matrices": ({"fourier": A, "pixel": B, "label": GT, "k": [[3.0]]}, [A, B], True),
    "sparse": ({"X": [sparse.csc_array(A.T), sparse.csc_array(B.T)], "truth": GT}, [A, B], True),
    "one-hot classes": ({"X": [A, B], "Y": np.eye(3)[GT.ravel() - 1]}, [A, B], True),
    "another cell array": ({"X": [A, B], "folds": [A, A], "Y": GT}, [A, B], True),
    "Y is a view": ({"X1": A, "Y": B}, [A, B], False),
}


@pytest.mark.parametrize("version", ["5", "7.3"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_matlab_files(layout: str, version: str, tmp_path: Path) -> None:
    variables, views, labelled = LAYOUTS[layout]
    path = tmp_path / "set.mat"
    if version == "5":
        as_cells = {
            k: cell(*v) if isinstance(v, list) and k != "k" else v for k, v in variables.items()
        }
        scipy.io.savemat(path, as_cells)
    else:
        write_mat73(path, **{k: np.array(v) if k == "k" else v for k, v in variables.items()})
    found, target = io.read_set(path)
    arrays = [f.toarray() if sparse.issparse(f) else f for f in found.values()]
    assert all(np.array_equal(a, b) for a, b in zip(arrays, views, strict=True))
    if labelled:
        start = 0 if layout == "one-hot classes" else 1
        assert target.tolist() == [start, start + 1, start + 1, start + 2]
        assert target.dtype.kind in "iu"
    else:
        assert target is None


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"X": cell(A, B), "Y": [[1], [2]]}, "and 2 classes: there is no number of samples"),
        ({"X": cell(A, A.T)}, "there is no number of samples that all agree on"),
        ({"u": cell(A, B), "v": cell(A, B)}, "several cell arrays could hold the views: 'u', 'v'"),
        ({"note": "hello", "n": 4.0}, "no matrix of numbers among"),
    ],
)
def test_matlab_files_that_say_too_little_are_refused(variables, message, tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "set.mat", variables)
    with pytest.raises(io.FileError, match=re.escape(message)) as error:
        io.read_set(tmp_path / "set.mat")
    assert "set.mat" in str(error.value)


def test_views_and_classes_of_npz(tmp_path: Path) -> None:
    S = sparse.csr_array(X)
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}
    held = {f"view_10_{part}": value for part, value in parts.items()}
    np.savez(
        tmp_path / "a.npz",
        **held,
        view_9=X,
        y=[1, 0, 1, 0],
        n_views=2,
        note="x",
        split=[0, 0, 1, 1],
    )
    views, target = io.read_set(tmp_path / "a.npz")
    assert list(views) == ["view_9", "view_10"]
    assert np.array_equal(views["view_10"].toarray(), X)
    assert target.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
def test_matrix_market_is_read_as_scipy_reads_it(symmetry, field, tmp_path: Path) -> None:
    square = np.array([[0, 2, 3], [2, 0, 0], [3, 0, 0]])
    if symmetry == "skew-symmetric":
        square = np.tril(square) - np.tril(square).T
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(path, sparse.coo_array(square), symmetry=symmetry, field=field)
    assert np.array_equal(dense(as_view(path)), scipy.io.mmread(path).toarray())


def test_indices_of_sparse_matrices_are_looked_at(tmp_path: Path) -> None:
    wild = sparse.csr_array(X)
    wild.indices[0] = 10**6
    parts = {"data": wild.data, "indices": wild.indices, "indptr": wild.indptr, "shape": wild.shape}
    np.savez(tmp_path / "a.npz", **{f"view_0_{part}": value for part, value in parts.items()})
    sparse.save_npz(tmp_path / "b.npz", wild)
    write_mat73(tmp_path / "c.mat", X=[X, sparse.csc_array(X)])
    with h5py.File(tmp_path / "c.mat", "r+") as file:
        file["#refs#/X1/ir"][0] = 10**6
    for name in ("a.npz", "b.npz", "c.mat"):
        with pytest.raises(io.FileError, match=re.escape(name)):
            io.read(tmp_path / name)


def test_the_shared_sets_are_read() -> None:
    path = SHARED / "data" / "bbcsport.npz"
    if not path.exists():
        pytest.skip("the shared data sets are not here")
    views, target = io.read_set(path)
    assert [view.shape for view in views.values()] == [(544, 3183), (544, 3203)]
    assert np.unique(target).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("packed", [False, True])
def test_matlab_5_is_read_as_scipy_reads_it(packed: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cell = np.empty((3, 1), object)
    cell[:, 0] = [rng.normal(size=(5, d)) for d in (2, 3, 4)]
    held = {
        "double": rng.normal(size=(4, 7)),
        "single": rng.normal(size=(3, 5)).astype(np.float32),
        "tensor": rng.normal(size=(2, 3, 4)),
        "empty": np.empty((0, 3)),
        "scalar": 3.0,
        "logical": np.eye(3) > 0,
        "words": sparse.csc_array(rng.poisson(0.3, size=(9, 6)).astype(float)),
        **{kind: rng.integers(0, 99, (3, 2)).astype(kind) for kind in ("int8", "uint16", "int64")},
        "cell": cell,
    }
    others = {"text": "no view", "struct": {"a": 1.0}, "complex": np.ones((2, 2)) * 1j}
    scipy.io.savemat(tmp_path / "a.mat", held | others, do_compression=packed)
    expected, found = (
        scipy.io.loadmat(tmp_path / "a.mat"),
        matrices._variables(str(tmp_path / "a.mat")),
    )
    assert found.keys() == held.keys()
    for name, matrix in found.items():
        if name == "cell":
            assert all(map(np.array_equal, matrix, expected[name][:, 0]))
        elif name == "words":
            assert (matrix != expected[name]).nnz == 0
        else:
            assert matrix.dtype == expected[name].dtype
            np.testing.assert_array_equal(matrix, expected[name])
