"""`score` needs no classes, compares numbers of clusters, and works in scikit-learn's searches."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import Data
from sklearn.metrics import silhouette_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from viewfold import FCMVC, ViewFold
from viewfold.method.clusters import silhouette
from viewfold.rows import LocalEngine, block_bytes
from viewfold.rows.linalg import unit_rows


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_score_is_the_mean_silhouette_with_squared_distances(kind: type, data: Data) -> None:
    X, new = data.views["labs"][:100], data.views["labs"][100:]
    model = kind(4, random_state=0).fit(X)
    rows = unit_rows(model.transform(new))
    expected = silhouette_score(rows, model.predict(new), metric="sqeuclidean")
    assert model.score(new) == pytest.approx(expected, abs=1e-9)
    assert model.score(new, data.y[100:]) == model.score(new)


def test_blocks_empty_clusters_and_rows_alone_change_nothing() -> None:
    rng = np.random.default_rng(0)
    rows, labels = unit_rows(rng.normal(size=(50, 3))), rng.integers(0, 3, 50)
    labels[labels == 1] = 5
    labels[7] = 6
    expected = silhouette_score(rows, labels, metric="sqeuclidean")
    with block_bytes(100):
        assert silhouette(LocalEngine(), rows, labels, 9) == pytest.approx(expected, abs=1e-12)
    assert silhouette(LocalEngine(), rows, np.zeros(50, int), 9) == 0


def test_a_grid_search_finds_the_number_of_clusters(data: Data) -> None:
    grid = {"n_clusters": [2, 3, 4, 5, 7], "encoder": ["linear", "mix"]}
    search = GridSearchCV(ViewFold(random_state=0, n_init=3), grid, cv=3).fit(data.views["labs"])
    assert search.best_params_["n_clusters"] == 4
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    scores = cross_val_score(search.best_estimator_, data.views["labs"], data.y, cv=3)
    assert scores.min() > 0.5


def test_several_views_are_scored_together(data: Data) -> None:
    model = ViewFold(4, random_state=0).fit(data.views)
    assert model.score(data.views) > 0.5
    with pytest.raises(ValueError, match="Which view is meant"):
        model.score(data.views["labs"])
    assert model.score(data.views["labs"], view="labs") > 0.5
    with pytest.raises(TypeError, match="score ignores its second argument"):
        model.score(data.views["labs"], "labs")
