"""The published program's answers, and the published numbers."""

from pathlib import Path

import numpy as np
import pytest
from conftest import SHARED, golden_files, load, zscore
from sklearn.cluster import KMeans

from viewfold import FCMVC
from viewfold.datasets.missing import by_mask
from viewfold.metrics import evaluate
from viewfold.rows.linalg import unit_rows


def test_golden_files_are_tested_where_they_are_present() -> None:
    if not SHARED.exists():
        pytest.skip("the shared folder is not here")
    assert len(golden_files()) >= 5


@pytest.mark.parametrize("solver", ["auto", "gram", "direct"])
@pytest.mark.parametrize("path", golden_files(), ids=lambda path: path.stem)
def test_consensus_equals_that_of_the_authors_program(path: Path, solver: str) -> None:
    with np.load(path) as golden:
        views, _ = load(path.stem.rpartition("-")[0] if "Fold" not in path.stem else "proteinFold")
        parts = by_mask([zscore(X) for X in views], golden["missing"])
        model = FCMVC(int(golden["n_clusters"]), scale=None, solver=solver, n_init=1).fit(parts)
        expected = golden["Z"][np.argsort(golden["ids"])]
    assert np.abs(model.embedding_[np.argsort(model.ids_)] - expected).max() <= 1e-10


@pytest.mark.parametrize("solver", ["auto", "gram", "direct"])
@pytest.mark.parametrize("answer", ["Z", "Z_complete"])
def test_consensus_equals_that_of_the_authors_program_in_every_clone(
    answer: str, solver: str
) -> None:
    with np.load(Path(__file__).parent / "synthetic-small.npz") as golden:
        views = [golden[f"view_{i}"] for i in range(4)]  # they are standardised
        missing = golden["missing"] & (answer == "Z")
        k, expected = int(golden["n_clusters"]), golden[answer]
    with pytest.warns(UserWarning, match="fewer than n_clusters"):
        model = FCMVC(k, scale=None, solver=solver, n_init=1).fit(by_mask(views, missing))
    assert missing.any() == (answer == "Z")
    assert np.abs(model.embedding_[np.argsort(model.ids_)] - expected).max() <= 1e-10


@pytest.mark.parametrize(
    ("name", "order", "published"),
    [
        ("proteinFold", slice(None), (34.87, 43.48, 40.63, 21.87)),
        ("uci-digit", [1, 2, 0], (85.30, 75.44, 85.30, 73.40)),
    ],
)
def test_published_numbers_are_the_maxima_of_50_runs(
    name: str, order: slice | list[int], published: tuple[float, ...]
) -> None:
    views, y = load(name)
    views = [views[i] for i in order] if isinstance(order, list) else views
    rows = unit_rows(FCMVC(len(np.unique(y)), n_init=1).fit(views).embedding_)
    runs = [
        list(
            evaluate(
                y, KMeans(len(np.unique(y)), n_init=1, random_state=run).fit_predict(rows)
            ).values()
        )
        for run in range(50)
    ]
    best = 100 * np.max(runs, axis=0)
    assert np.abs(best - published).max() <= 1.5, best
