"""Moments of a view: what updates, forgetting, privacy and files do to them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from explained import N, farthest, planted, told_by
from store_models import bits, changed

import viewfold
from viewfold import StateFileError, ViewFold
from viewfold._util.constants import FEWEST

VIEWS, Y = planted()
IDS = VIEWS["labs"].index


@pytest.fixture
def model() -> ViewFold:
    return ViewFold(4, n_init=2, random_state=0).fit(VIEWS)


def moments(model: ViewFold, view: str = "labs"):
    return next(record.moments for record in model.views_ if record.name == view)


# -- more rows of a known view


def test_rows_that_come_later_count_as_those_that_came_first() -> None:
    model = ViewFold(4, n_init=2, random_state=0)
    half = np.arange(N) < 80
    # The first rows are another population: means of one part would be wrong for all.
    labs = VIEWS["labs"] + 60 * half[:, None]
    for name, X in ((n, labs if n == "labs" else X) for n, X in VIEWS.items()):
        model.partial_fit(X[half], view=name)
    for name, X in ((n, labs if n == "labs" else X) for n, X in VIEWS.items()):
        model.partial_fit(X[~half], view=name)
    told = model.features(view="labs", cluster=0, top=None).set_index("feature")
    assert np.allclose(told["overall_mean"], labs.mean()[told.index])
    spread = moments(model).spread
    assert np.allclose(spread, labs.std(ddof=0), rtol=1e-3)
    assert farthest(model, "labs", labs) < 0.4
    assert farthest(model, "scan", VIEWS["scan"]) < 0.25


def test_corrections_take_the_place_of_what_was_there(model: ViewFold) -> None:
    labs = VIEWS["labs"].copy()
    labs.iloc[:60] += 100
    model.partial_fit(labs.iloc[:60], view="labs")
    assert model.delivery_.n_corrected == 60
    told = model.features(view="labs", cluster=0, top=None).set_index("feature")
    assert np.allclose(told["overall_mean"], labs.mean()[told.index], atol=3)  # 25 more than before


def test_of_fewer_than_ten_rows_nothing_is_learned(model: ViewFold) -> None:
    before = moments(model)
    model.partial_fit(VIEWS["labs"].iloc[:9] + 1000, view="labs")
    model.extend(VIEWS["labs"].iloc[:9].rename("new {}".format) + 1000, view="labs")
    assert bits(moments(model)) == bits(before)
    model.extend(VIEWS["labs"].iloc[:10].rename("more {}".format) + 1000, view="labs")
    assert (moments(model).mean > before.mean + 30).all()


def test_a_view_of_fewer_than_ten_samples_leaves_no_moments_until_it_has_more() -> None:
    model = ViewFold(4, n_init=2, random_state=0).fit({"labs": VIEWS["labs"]})
    model.partial_fit(VIEWS["scan"].iloc[:9], view="scan")
    assert moments(model, "scan") is None
    with pytest.warns(UserWarning, match="'scan' has fewer than ten samples"):
        assert set(model.features()["view"]) == {"labs"}
    with pytest.raises(ValueError, match=r"Nothing can be explained\. View 'scan' has fewer"):
        model.loadings("scan")
    model.partial_fit(VIEWS["scan"].iloc[9:], view="scan")
    assert farthest(model, "scan", VIEWS["scan"].iloc[9:]) < 0.3


# -- forgetting and privacy


def test_forgetting_samples_leaves_explanations(model: ViewFold) -> None:
    # Most of two clusters: what is left has other principal directions.
    gone = np.concatenate([np.flatnonzero(y == Y)[15:] for y in (0, 1)])
    model.forget(IDS[gone])
    left = model.to_frame()["cluster"]
    for name, X in VIEWS.items():
        z = (X - X.mean()) / X.std(ddof=0)  # of all: moments are what they were
        true, told = z.loc[left.index].groupby(left).mean(), told_by(model, name)
        apart = (told - told.mean()) - (true - true.mean())[told.columns]
        assert np.abs(apart).to_numpy().max() < 0.5  # without a step along, more than 2


@pytest.mark.parametrize("n", [12, 45, 150])
def test_rank_is_at_most_a_tenth_of_the_samples(n: int) -> None:
    model = ViewFold(3, n_init=2, random_state=0).fit(
        {name: X.iloc[:n] for name, X in VIEWS.items()}
    )
    for record in model.views_:
        assert record.moments.directions.shape[0] <= n // FEWEST
        rank = np.linalg.matrix_rank(record.moments.coefficients)
        assert rank <= n // FEWEST


def test_no_coefficient_belongs_to_a_cluster_of_fewer_than_ten_samples() -> None:
    scan = VIEWS["scan"].assign(mark=0.0)
    scan.iloc[:9, -1] = 50.0  # nine samples far from all others are a cluster
    model = ViewFold(5, n_init=2, random_state=0).fit({"scan": scan})
    small = np.bincount(model.labels_, minlength=5) < FEWEST
    assert small.sum() == 1
    of_clusters = moments(model, "scan").coefficients[model.embedding_.shape[1] :]
    assert of_clusters.any(axis=1).tolist() == (~small).tolist()


def test_private_models_keep_no_moments(model: ViewFold, tmp_path: Path) -> None:
    private = ViewFold(4, n_init=2, random_state=0, keep_encoders=False).fit(VIEWS)
    with pytest.raises(ValueError, match=r"private \(keep_encoders=False\): it has no moments"):
        private.features()
    path = tmp_path / "a.vf"
    model.save(path)
    with viewfold.edit(path) as edited:  # from now on, also in the state to return to
        edited.set_params(keep_encoders=False)
        edited.partial_fit(VIEWS["scan"], view="again")
    assert all(record.moments is None for record in viewfold.load(path).views_)
    assert all(record.moments is None for record in viewfold.undo(path).views_)


# -- files


def test_moments_come_back_from_a_file_to_the_last_bit(model: ViewFold, tmp_path: Path) -> None:
    model.save(tmp_path / "a.vf")
    again = viewfold.load(tmp_path / "a.vf")
    assert bits(moments(again)) == bits(moments(model))
    assert again.features().equals(model.features())


def test_a_folder_of_buckets_tells_the_same(model: ViewFold, tmp_path: Path) -> None:
    model.save(tmp_path / "a.vf")
    viewfold.convert(tmp_path / "a.vf", tmp_path / "a.vfd", n_buckets=6)
    there = viewfold.load(tmp_path / "a.vfd")
    assert bits(moments(there)) == bits(moments(model))
    found, told = (m.features(top=3).round(6) for m in (there, model))
    assert found.equals(told)
    assert there.explain("p3").next_cluster == model.explain("p3").next_cluster


def test_undo_brings_back_the_moments_of_then(model: ViewFold, tmp_path: Path) -> None:
    path = tmp_path / "a.vf"
    model.save(path)
    with viewfold.edit(path) as edited:
        edited.recluster(2)
    assert len(viewfold.load(path).features(top=1)) == 2
    assert viewfold.undo(path).features().equals(model.features())


def test_a_view_that_came_in_small_pieces_says_that_it_can_tell_nothing() -> None:
    model, labs = ViewFold(3, n_init=2, random_state=0), VIEWS["labs"]
    model.partial_fit(labs.iloc[:8], view="labs").partial_fit(labs.iloc[8:17], view="labs")
    model.partial_fit(labs.iloc[17:40], view="labs")
    (record,) = model._state.views
    assert record.encoder is not None
    with pytest.raises(ValueError, match="View 'labs' came fewer than ten samples at a time"):
        model.features()
    more = np.random.default_rng(0).normal(size=(len(model.ids_), 4))
    model.partial_fit(more, ids=model.ids_, view="more")
    with pytest.warns(UserWarning, match="'labs' came fewer than ten samples at a time"):
        assert set(model.features()["view"]) == {"more"}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("coefficients", lambda A: A[1:]),
        ("directions", lambda A: A[:, 1:]),
        ("spread", lambda A: A * np.nan),
        ("mean", lambda A: A.astype(np.int64)),
    ],
)
def test_moments_that_do_not_fit_are_refused(model, tmp_path, name: str, change) -> None:
    path = tmp_path / "a.vf"
    state = model._state
    wrong = replace(moments(model), **{name: change(getattr(moments(model), name))})
    first = replace(state.views[0], moments=wrong)
    clusters = model._judged.clusters  # or they would be made of these moments
    model._state = replace(state, views=(first, *state.views[1:]), clusters=clusters)
    model.save(path)
    with pytest.raises(StateFileError, match=f"moments.{name} .*in the moments of view 'labs'"):
        viewfold.load(path)


def test_a_changed_array_is_found(model: ViewFold, tmp_path: Path) -> None:
    model.save(tmp_path / "a.vf")
    statement = "UPDATE arrays SET by_column = NOT by_column WHERE name = 'moments/1/directions'"
    with pytest.raises(StateFileError, match="changed by another program"):
        viewfold.load(changed(tmp_path / "a.vf", statement))
