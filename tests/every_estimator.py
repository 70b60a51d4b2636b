"""The estimators that keep every contract, folded view by view, and when two say the same."""

import pickle
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from viewfold import FCMVC, ViewFold

ESTIMATORS = [
    FCMVC(4, n_init=3, random_state=0),
    FCMVC(4, n_init=3, random_state=0, solver="direct", z_step="exact"),
    ViewFold(4, n_init=3, random_state=0),
    ViewFold(4, n_init=3, random_state=0, encoder="linear"),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)


def folded(estimator: Any, parts: dict[str, tuple[Any, Any]]) -> Any:
    model = clone(estimator)
    for name, (X, ids) in parts.items():
        model.partial_fit(X, ids=ids, view=name)
    return model


MADE: dict[tuple[str, int], Any] = {}


def folded_once(estimator: Any, data: Any, n_views: int = 3) -> Any:
    """Return a model of the first views of `data`, the same for every test that asks for it.

    It is a copy, whose state is shared: whatever is called puts another in its place.
    """
    made = str(estimator), n_views
    if made not in MADE:
        MADE[made] = folded(estimator, dict(list(data.parts().items())[:n_views]))
    return copy(MADE[made])


def snapshot(model: Any) -> bytes:
    """Everything about a model but the times in its log, and fingerprints, whose key is drawn."""
    log = tuple(replace(event, time=None) for event in model._state.log)
    plain = replace(model._state, log=log, key=0, fingerprints=None)
    return pickle.dumps((plain, model.get_params()))


def same(a: Any, b: Any, atol: float = 1e-9) -> bool:
    """Whether two models say the same of every sample, and of every pair of samples.

    Where several directions matter equally, round-off may turn them into each other: rows then
    have other entries, but the same products with each other.
    """
    first, second = (np.argsort(model.ids_) for model in (a, b))
    rows, others = a.embedding_[first], b.embedding_[second]
    return (
        np.array_equal(a.ids_[first], b.ids_[second])
        and np.array_equal(a.labels_[first], b.labels_[second])
        and np.allclose(rows @ rows.T, others @ others.T, rtol=0, atol=atol)
    )
