"""What every baseline promises, as functions that take an estimator (not fitted, random_state=0).

The tests of single methods call these with their own estimators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from viewfold.metrics import accuracy
from viewfold_research.baselines import _base


def blobs(
    n: int = 150,
    widths: tuple[int, ...] = (8, 12, 6),
    k: int = 3,
    *,
    apart: float = 6,
    seed: int = 0,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Well-separated clusters, in every view, of features that are not negative."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % k)
    views = []
    for d in widths:
        X = apart * rng.normal(size=(k, d))[y] + rng.normal(size=(n, d))
        views.append(X - X.min(axis=0))
    return views, y


def holes(n: int, n_views: int, share: float = 0.3, seed: int = 0) -> np.ndarray:
    """Who is missing: a share of every view, nobody from all."""
    rng = np.random.default_rng(seed)
    missing = rng.random((n, n_views)) < share
    missing[missing.all(axis=1), rng.integers(n_views)] = False
    return missing


def with_nan(views: list[np.ndarray], missing: np.ndarray) -> list[np.ndarray]:
    return [np.where(missing[:, [v]], np.nan, X) for v, X in enumerate(views)]


def recovers_clusters(model: Any, *, least: float = 0.95, share: float = 0, **kind: Any) -> None:
    """ACC on separated clusters, with all samples or with some missing."""
    views, y = blobs(**kind)
    if share:
        views = with_nan(views, holes(len(y), len(views), share))
    fitted = clone(model).fit(views)
    assert fitted.labels_.shape == y.shape
    assert accuracy(y, fitted.labels_) >= least
    assert fitted.n_iter_ == len(fitted.objective_)
    assert np.isfinite(fitted.objective_).all()


def is_deterministic(model: Any, **kind: Any) -> None:
    """Equal input and seed give equal output; the rows of labels are those of the views."""
    views, _ = blobs(**kind)
    first, second = clone(model).fit(views), clone(model).fit(dict(enumerate(views)))
    for name in ("labels_", "objective_", "embedding_"):
        if hasattr(first, name):
            assert np.array_equal(getattr(first, name), getattr(second, name)), name


def has_monotone_objective(
    model: Any, *, rising: bool = False, slack: float = 1e-9, **kind: Any
) -> None:
    """The objective never rises (never falls), up to `slack` of its size."""
    views, _ = blobs(**({"apart": 1.5} | kind))
    course = clone(model).fit(views).objective_ * (-1 if rising else 1)
    assert len(course) > 1
    assert np.diff(course).max() <= slack * np.abs(course).max()


def refuses_missing_samples(model: Any) -> None:
    """A method for complete views says how many samples which view lacks."""
    views, _ = blobs(60)
    views[1][:7] = np.nan
    with pytest.raises(ValueError, match=r"needs every sample in every view.*\[0, 7, 0\] of 60"):
        clone(model).fit(views)


def ids_equal_nan_rows(model: Any, **kind: Any) -> None:
    """Samples named by ids in some views only are the same as rows of NaN."""
    views, y = blobs(**kind)
    missing = holes(len(y), len(views))
    rows = [np.flatnonzero(~missing[:, v]) for v in range(len(views))]
    ids = [[f"s{i}" for i in at] for at in rows]
    by_row = clone(model).fit(with_nan(views, missing))
    by_id = clone(model).fit([X[at] for X, at in zip(views, rows, strict=True)], ids=ids)
    place = np.array([int(name[1:]) for name in by_id.ids_])
    assert sorted(place) == list(range(len(y)))
    # The rows come in another order, and random numbers meet other rows.
    assert accuracy(by_row.labels_[place], by_id.labels_) >= 0.97


def takes_sparse_views(model: Any, **kind: Any) -> None:
    """Sparse views give what the same numbers give in dense ones."""
    views, _ = blobs(**kind)
    dense = clone(model).fit(views)
    thin = clone(model).fit([sparse.csr_array(X) for X in views])
    assert accuracy(dense.labels_, thin.labels_) == 1


def refuses_negative_features(model: Any) -> None:
    views, _ = blobs(60)
    views[1] -= 1
    with pytest.raises(ValueError, match="view 1 has negative"):
        clone(model).fit(views)


def tells_memory_beforehand(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method with n × n matrices names the bytes and the limit before it computes anything."""
    views, _ = blobs(60)
    need = model._bytes(60, [X.shape[1] for X in views])
    assert need >= 8 * 60**2
    assert model._bytes(120, [1]) >= 3.5 * model._bytes(60, [1])
    monkeypatch.setattr(_base, "memory_limit", lambda: need - 1)
    monkeypatch.setattr(type(model), "_solve", lambda *_: pytest.fail("it has begun"))
    with pytest.raises(MemoryError, match=f"{need:,} bytes, and the limit is {need - 1:,}"):
        clone(model).fit(views)


def has_sound_parameters(model: Any) -> None:
    """Grid and scalings name what there is, and every point of the grid is a valid parameter."""
    names = set(model.get_params())
    assert set(model._parameter_constraints) == names
    assert set(model.grid) <= names
    assert set(model.scalings) <= {"none", "zscore", "unit", "minmax"}
    assert model.scalings[0] == clone(model).scale or "scale" not in names
    for name, values in model.grid.items():
        for value in values:
            clone(model).set_params(**{name: value})._validate_params()
    with pytest.raises(ValueError, match="'n_clusters' parameter"):
        clone(model).set_params(n_clusters=0).fit(blobs(30)[0])


def has_documentation(model: Any) -> None:
    """The docstring has the sections that a reader looks for."""
    text = type(model).__doc__
    for section in ("Parameters\n", "Attributes\n", "References\n", "Examples\n", "Cost:"):
        assert section in text, section
    for name in model.get_params():
        assert text.count(f"\n{name} : ") == 1, name
    for name in ("labels_", "ids_", "objective_", "n_iter_"):
        assert text.count(f"\n{name} : ") == 1, name
