"""At home in scikit-learn."""

import inspect
import pydoc
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from viewfold import FCMVC, ViewFold, as_view

ANOTHER_VIEW = "a second partial_fit folds another view, which has features of its own"
NO_CLASSIFIER = "whoever has predict_proba and takes sparse matrices is taken for a classifier"
EXPECTED_TO_FAIL = {
    "check_estimator_sparse_array": NO_CLASSIFIER,
    "check_estimator_sparse_matrix": NO_CLASSIFIER,
    "check_n_features_in_after_fitting": ANOTHER_VIEW,
    "check_estimators_partial_fit_n_features": ANOTHER_VIEW,
}
ESTIMATORS = [FCMVC(3, n_init=1), ViewFold(3, n_init=1)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda _: EXPECTED_TO_FAIL)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("check", list(EXPECTED_TO_FAIL))
def test_checks_that_fail_for_one_method_pass_without_it(estimator: Any, check: str) -> None:
    class OneView(type(estimator)):
        partial_fit = predict_proba = property()

    name = type(estimator).__name__
    getattr(estimator_checks, check)(name, OneView(estimator.n_clusters))


def test_one_view_has_its_features_in_the_usual_attributes() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=list("abc"))
    model = FCMVC(2).fit(frame)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    model.partial_fit(frame.rename(columns=str.upper), view="upper")
    assert not hasattr(model, "n_features_in_")
    assert [view.features for view in model.views_] == [("a", "b", "c"), ("A", "B", "C")]
    assert not hasattr(FCMVC(2), "views_")


def test_a_known_view_with_other_features_is_refused_at_predict() -> None:
    rng = np.random.default_rng(0)
    labs = pd.DataFrame(rng.normal(size=(20, 3)), columns=["age", "iron", "zinc"])
    model = FCMVC(2, random_state=0).partial_fit(labs, view="labs")
    model.partial_fit(rng.normal(size=(20, 5)), view="scan")
    before = model.to_frame()
    for X, view, message in [
        (labs.add_prefix("my "), "labs", "it has no column of this view"),
        (rng.normal(size=(4, 4)), "scan", "'scan': X has 4 features, but FCMVC is expecting 5"),
        (np.vstack([np.ones(5), np.full(5, np.nan)]), "scan", "NaN in all of row 1"),
        (labs, None, "Pass view=, one of ['labs', 'scan']"),
        (labs, "lab", "no view 'lab'; the model has folded ['labs', 'scan']"),
        (labs, 2, "no view 2"),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            model.predict(X, view=view)
    pd.testing.assert_frame_equal(model.to_frame(), before)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(labs.to_numpy(), view=0)


def test_single_view_predict_equals_labels() -> None:
    X = np.random.default_rng(0).normal(size=(300, 6))
    model = FCMVC(3, random_state=0)
    assert np.array_equal(model.fit_predict(X), model.predict(X))
    assert np.allclose(clone(model).fit_transform(X), model.transform(X))


def test_output_can_be_a_dataframe() -> None:
    X = np.random.default_rng(0).normal(size=(30, 6))
    model = FCMVC(3, random_state=0).set_output(transform="pandas").fit(X)
    assert list(model.transform(X).columns) == ["fcmvc0", "fcmvc1", "fcmvc2"]
    assert np.array_equal(model.predict(X), model.labels_)


def test_a_view_keeps_the_name_it_has() -> None:
    view = as_view(np.random.default_rng(0).normal(size=(9, 2)), name="labs")
    assert [v.name for v in FCMVC(2).partial_fit(view).partial_fit(view, view="b").views_] == [
        "labs",
        "b",
    ]
    assert FCMVC(2).fit([view]).views_[0].name == "labs"


def test_wrong_parameters_are_named_at_fit() -> None:
    X = np.ones((5, 2))
    for params in ({"n_clusters": 0}, {"solver": "fast"}, {"scale": "tfidf"}, {"max_iter": 0}):
        with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter of FCMVC"):
            FCMVC(**params).fit(X)


def test_fewer_samples_than_clusters_at_the_first_fold() -> None:
    model = FCMVC(5)
    with pytest.raises(ValueError, match=r"'view0' has 4 samples .* fewer than n_clusters=5"):
        model.partial_fit(np.ones((4, 6)))
    assert not hasattr(model, "labels_")


def test_to_frame_has_every_sample() -> None:
    rng = np.random.default_rng(0)
    model = FCMVC(2, random_state=0)
    model.partial_fit(rng.normal(size=(20, 3)), ids=[f"p{i}" for i in range(20)])
    model.partial_fit(rng.normal(size=(20, 3)), ids=[f"p{i}" for i in range(10, 30)])
    frame = model.to_frame()
    assert list(frame.index) == [f"p{i}" for i in range(30)]
    assert frame.index.name == "id"
    assert list(frame["views_seen"]) == [1] * 10 + [2] * 10 + [1] * 10
    assert frame["confidence"].between(0, 1).all()
    assert np.array_equal(frame["cluster"], model.labels_)


@pytest.mark.parametrize("estimator", [ViewFold, FCMVC])
def test_help_has_no_page_about_each_argument_and_routing_works(estimator: type) -> None:
    page = pydoc.plain(pydoc.render_doc(estimator))
    assert "partial_fit(self" in page
    assert "_request(" not in page
    model = estimator(2)
    assert not [name for name in dir(model) if name.startswith("set_") and "request" in name]
    with sklearn.config_context(enable_metadata_routing=True):
        assert model.set_fit_request(ids=True).get_metadata_routing().fit.requests["ids"] is True


@pytest.mark.parametrize("estimator", [ViewFold, FCMVC])
def test_docstrings_tell_what_else_there_is_and_what_it_costs(estimator: type) -> None:
    said = inspect.getdoc(estimator)
    assert "See Also\n--------" in said
    assert "takes time of order" in said
    assert "Memory beyond the view" in " ".join(said.split())
