"""FMR, PMSC, AMGL, LMVSC, NEMO and FMCNOF, and what all baselines share."""

from __future__ import annotations

from typing import Any

import baselines_contract as contract
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from viewfold.baselines import AMGL, FMCNOF, FMR, LMVSC, NEMO, PMSC

METHODS = [
    FMR(3, n_components=20, random_state=0),
    *(m(3, random_state=0) for m in (PMSC, AMGL, LMVSC, FMCNOF, NEMO)),
]
COMPLETE = [m for m in METHODS if not m.incomplete]
every = pytest.mark.parametrize("model", METHODS, ids=lambda m: type(m).__name__)
complete = pytest.mark.parametrize("model", COMPLETE, ids=lambda m: type(m).__name__)


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(METHODS)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@every
def test_clusters_far_apart_are_found(model: Any) -> None:
    contract.recovers_clusters(model)


@every
def test_same_seed_same_result(model: Any) -> None:
    contract.is_deterministic(model)


@every
def test_sparse_views_are_taken(model: Any) -> None:
    contract.takes_sparse_views(model)


@every
def test_parameters_and_grid_are_sound(model: Any) -> None:
    contract.has_sound_parameters(model)


@every
def test_the_docstring_says_it_all(model: Any) -> None:
    contract.has_documentation(model)


@complete
def test_missing_samples_are_refused_by_methods_for_complete_views(model: Any) -> None:
    contract.refuses_missing_samples(model)


def test_amgl_objective_never_rises() -> None:
    contract.has_monotone_objective(AMGL(3, random_state=0))
