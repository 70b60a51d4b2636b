"""What every baseline promises: clusters, seeds, sparse views, missing samples, documentation."""

from __future__ import annotations

from typing import Any

import baselines_contract as contract
import pytest
from baselines_incomplete import incomplete, named
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from viewfold.metrics import accuracy
from viewfold_research.baselines import (
    AGCIMC,
    AMGL,
    CMVC,
    FMCNOF,
    FMR,
    FPMVS,
    IMG,
    LMVSC,
    MIC,
    NEMO,
    OPIMC,
    OPMC,
    PMSC,
    PVC,
    UEAF,
    MultiNMF,
)

ANOTHER_VIEW = "a second partial_fit folds another view, which has features of its own"
NEGATIVE = {"check_clustering": "its data have negative features, which are refused"}
NOT_APPLICABLE = {
    "FMCNOF": {
        "check_clustering": "samples are standardised over their features: of two, one bit is left"
    },
    "CMVC": {
        "check_n_features_in_after_fitting": ANOTHER_VIEW,
        "check_estimators_partial_fit_n_features": ANOTHER_VIEW,
    },
    "MultiNMF": NEGATIVE,
    "MIC": NEGATIVE,
}
WITH_MISSING = [
    IMG(3, random_state=0),
    MIC(3, n_init=3, max_iter=10, n_steps=50, random_state=0),
    AGCIMC(3, random_state=0),
    UEAF(3, random_state=0),
    PVC(3, random_state=0),
]
METHODS = [
    FMR(3, n_components=20, random_state=0),
    PMSC(3, random_state=0),
    AMGL(3, random_state=0),
    LMVSC(3, random_state=0),
    # The authors' default, the farthest anchors, does not always find clusters that are far apart.
    FMCNOF(3, keep="nearest", random_state=0),
    NEMO(3, random_state=0),
    OPMC(3, n_init=20, random_state=0),
    FPMVS(3, random_state=0),
    CMVC(3, random_state=0),
    OPIMC(3, random_state=0),
    MultiNMF(3, n_init=2, max_iter=5, n_steps=40, random_state=0),
    *WITH_MISSING,
]
every = pytest.mark.parametrize("model", METHODS, ids=named)
every_with_missing = pytest.mark.parametrize("model", WITH_MISSING, ids=named)
every_complete = pytest.mark.parametrize(
    "model", [model for model in METHODS if not model.incomplete], ids=named
)


# What scikit-learn looks at does not depend on how far an optimisation goes.
QUICK: dict[str, dict[str, Any]] = {
    "IMG": {"max_iter": 20},
    "MIC": {"n_init": 1, "max_iter": 5, "n_steps": 20},
    "MultiNMF": {"n_init": 1, "n_steps": 20},
    "PVC": {"max_iter": 5, "max_sweeps": 10},
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [clone(model).set_params(**QUICK.get(named(model), {})) for model in METHODS],
    expected_failed_checks=lambda model: NOT_APPLICABLE.get(named(model), {}),
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@every
def test_clusters_far_apart_are_found(model: Any) -> None:
    contract.recovers_clusters(model)


@every_with_missing
def test_clusters_far_apart_are_found_with_samples_missing(model: Any) -> None:
    views, _, y = incomplete(150, (8, 12, 6))
    assert accuracy(y, clone(model).fit(views).labels_) >= 0.95


@every
def test_same_seed_same_result(model: Any) -> None:
    contract.is_deterministic(model)


@every_with_missing
def test_ids_and_rows_of_nan_mean_the_same(model: Any) -> None:
    contract.ids_equal_nan_rows(model)


@every
def test_sparse_views_are_taken(model: Any) -> None:
    contract.takes_sparse_views(model)


@every
def test_parameters_and_grid_are_sound(model: Any) -> None:
    contract.has_sound_parameters(model)


@every
def test_the_docstring_says_it_all(model: Any) -> None:
    contract.has_documentation(model)


@every_complete
def test_missing_samples_are_refused_by_methods_for_complete_views(model: Any) -> None:
    contract.refuses_missing_samples(model)
