"""Numbers that cannot be squared, and features that say nothing: computed right, or told."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import viewfold
from viewfold import FCMVC, ViewFold, missing
from viewfold.metrics import accuracy

KINDS = [ViewFold, FCMVC]
Y = np.repeat(np.arange(3), 40)
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def no_overflow():
    with np.errstate(over="raise", invalid="raise"):
        yield


def rows(d: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(120, d)) + 6 * np.eye(d)[Y]


def with_cell(value: float) -> np.ndarray:
    X = rows()
    X[3, 2] = value
    return X


LARGE = {
    "one cell": with_cell(1e308),
    "everywhere": 1e200 * rows(),
    "sparse": sparse.csr_array(with_cell(-1e200)),
    "frame": pd.DataFrame(with_cell(1e160), columns=list("uvwxyz")),
}


@every_kind
@pytest.mark.parametrize("case", LARGE)
def test_numbers_too_large_to_be_squared_are_refused_by_name(kind, case: str) -> None:
    model = kind(3, random_state=0).partial_fit(rows(4), ids=range(120))
    state = model._state
    column = "'w'" if case == "frame" else "0" if case == "everywhere" else "2"
    message = (
        rf"'labs' contains .*e\+\d\d\d in row \d \(id .*\), column {column}\. .*squared.*divide"
    )
    with pytest.raises(ValueError, match=message):
        model.partial_fit(LARGE[case], ids=range(120), view="labs")
    assert model._state is state
    model.partial_fit(rows(), ids=range(120), view="labs")
    for ask in (model.predict, model.transform):
        with pytest.raises(ValueError, match="squared"):
            ask(with_cell(1e200), view="labs")


@every_kind
@pytest.mark.parametrize("scale", ["zscore", None])
@pytest.mark.parametrize("factor", [1e138, 1e-138, 2.0**-400])
def test_large_and_small_numbers_give_the_answer_of_others(kind, scale, factor: float) -> None:
    plain = kind(3, random_state=0, scale=scale).fit([rows()])
    model = kind(3, random_state=0, scale=scale).fit([factor * rows()])
    assert np.allclose(model.embedding_, plain.embedding_, atol=1e-9)
    assert np.array_equal(model.labels_, plain.labels_)
    assert np.array_equal(model.predict(factor * rows()), plain.labels_)
    assert accuracy(Y, model.labels_) > 0.95


@every_kind
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("factor", [3e37, 1e20, 1e16, 1e-20, 1e-25])
def test_single_precision_is_enough_wherever_it_holds_the_values(kind, form, factor) -> None:
    plain = kind(3, random_state=0).fit([rows()])
    X = form((factor * rows()).astype(np.float32))
    model = kind(3, random_state=0).fit(missing.by_mask([X], np.zeros((120, 1), bool)))
    assert np.allclose(model.embedding_, plain.embedding_, atol=1e-4)
    assert accuracy(plain.labels_, model.labels_) == 1
    assert np.array_equal(model.predict(X), model.labels_)
    later = kind(3, random_state=0).fit([rows(5)]).partial_fit(X)
    assert np.isfinite(later.embedding_).all()
    assert accuracy(Y, later.labels_) > 0.95


@every_kind
@pytest.mark.parametrize("first", [True, False])
def test_features_too_small_to_be_squared_are_told(kind, first: bool) -> None:
    X = pd.DataFrame(rows(), columns=list("uvwxyz"))
    X["v"] *= 1e-200
    model = kind(3, random_state=0, **({"scale": "zscore"} if kind is ViewFold else {}))
    if not first:
        model.fit([rows(5)])
    with pytest.warns(UserWarning, match="the values in column 'v' are too small to be squared"):
        model.partial_fit(X)
    assert np.isfinite(model.embedding_).all()
    with pytest.raises(ValueError, match=r"columns 'u', 'v', 'w'.* are too small to be squared"):
        kind(3).fit([1e-200 * pd.DataFrame(rows(), columns=list("uvwxyz"))])


@pytest.mark.parametrize("scale", ["zscore", None])
def test_fcmvc_says_which_of_its_first_features_are_constant(scale) -> None:
    X = pd.DataFrame(rows(), columns=list("uvwxyz"))
    X["v"] = 7.0
    with pytest.warns(UserWarning, match=r"first 3 features .* Constant among them: column 'v'\."):
        FCMVC(3, scale=scale).fit([X])
    X["u"] = X["w"] = 1.0
    message = r"'view0' .* Constant among them: columns 'u', 'v', 'w'\. Nothing would be left"
    with pytest.raises(ValueError, match=message):
        FCMVC(3, scale=scale).fit([X])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FCMVC(3, scale=scale, random_state=0).fit([X[list("xyzuvw")]])
        ViewFold(3, random_state=0).fit([X])


@every_kind
def test_a_view_whose_samples_are_all_alike_is_refused_at_every_fold(kind) -> None:
    model = kind(3, random_state=0).fit([rows()])
    with pytest.raises(ValueError, match=r"'view1' has no feature that varies .* Leave it out"):
        model.partial_fit(np.full((120, 4), 5.0))
    assert len(model.views_) == 1


@every_kind
def test_large_single_precision_comes_back_from_a_file(kind, tmp_path) -> None:
    X = (1e30 * rows()).astype(np.float32)
    model: Any = kind(3, random_state=0).fit([X])
    model.save(tmp_path / "model.vf")
    assert np.array_equal(viewfold.load(tmp_path / "model.vf").predict(X), model.labels_)
