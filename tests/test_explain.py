"""Clusters are explained by features of views that are gone, as the raw data would."""

import warnings

import numpy as np
import pandas as pd
import pytest
from explained import N, effects_of, farthest, planted, told_by
from scipy import sparse

from viewfold import FCMVC, ViewFold
from viewfold.rows import DiskEngine, using

VIEWS, Y = planted()


def folded(model, **views: pd.DataFrame):
    for name, X in views.items():
        model.partial_fit(X, view=name)
    return model


@pytest.fixture(scope="module")
def model():
    return folded(ViewFold(4, random_state=0), **VIEWS)


def test_effects_are_those_of_the_raw_data(model) -> None:
    assert all(farthest(model, name, X) < 0.05 for name, X in VIEWS.items())


def test_means_are_in_the_units_of_the_user(model) -> None:
    told = model.features(view="labs", cluster=2, top=None).set_index("feature")
    mine = VIEWS["labs"][model.to_frame()["cluster"] == 2]
    assert np.allclose(told["mean"], mine.mean()[told.index], atol=1)  # one unit is 20
    assert np.allclose(told["overall_mean"], VIEWS["labs"].mean()[told.index])
    spread = VIEWS["labs"].std(ddof=0)[told.index]
    assert np.allclose((told["mean"] - told["overall_mean"]) / spread, told["effect"])


def test_the_strongest_come_first_whatever_their_view(model) -> None:
    table = model.features(top=7)
    columns = ["cluster", "view", "feature", "mean", "overall_mean", "effect", "rank"]
    assert table.columns.tolist() == columns
    assert table["rank"].tolist() == [*range(1, 8)] * 4
    true = pd.concat([effects_of(X, model.to_frame()["cluster"]).T.abs() for X in VIEWS.values()])
    for c in range(4):
        mine = table[table["cluster"] == c]
        assert mine["effect"].abs().is_monotonic_decreasing
        assert len(set(mine["feature"]) & set(true[c].nlargest(7).index)) >= 6
    assert table["view"].nunique() == 3


def test_ten_more_views_leave_what_the_first_tells(model) -> None:
    more = folded(ViewFold(4, random_state=0), **VIEWS)
    rng = np.random.default_rng(1)
    for i in range(10):
        noise = rng.normal(size=(N, 12)) + 2.5 * rng.normal(size=(4, 12))[Y]
        more.partial_fit(pd.DataFrame(noise, VIEWS["labs"].index), view=f"more{i}")
    assert farthest(more, "labs", VIEWS["labs"]) < 0.15


def test_another_number_of_clusters_is_explained_without_the_views() -> None:
    model = folded(ViewFold(4, random_state=0), **VIEWS).recluster(2)
    assert all(farthest(model, name, X) < 0.25 for name, X in VIEWS.items())
    assert sorted(model.features()["cluster"].unique()) == [0, 1]


@pytest.mark.parametrize("shares", [(0.7, 0.7, 0.7), (1.0, 0.3, 0.5)])
def test_samples_that_lack_a_view_do_not_blur_it(shares: tuple[float, ...]) -> None:
    rng = np.random.default_rng(2)
    views = {
        name: X[rng.random(N) < share]
        for (name, X), share in zip(VIEWS.items(), shares, strict=True)
    }
    model = folded(ViewFold(4, random_state=0), **views)
    assert all(farthest(model, name, X) < 0.15 for name, X in views.items())


def test_missing_cells_are_left_out_of_means() -> None:
    gaps = np.random.default_rng(3).random((N, 9)) < 0.3
    views = {**VIEWS, "labs": VIEWS["labs"].mask(gaps)}
    model = folded(ViewFold(4, random_state=0), **views)
    told = model.features(view="labs", cluster=0, top=None).set_index("feature")
    assert np.allclose(told["overall_mean"], views["labs"].mean()[told.index])
    # As if cells were zero or the mean, effects would be smaller by a third.
    assert farthest(model, "labs", views["labs"]) < 0.15
    model.recluster(2)  # what was regressed on the consensus tells these, not means of clusters
    told = told_by(model, "labs")
    true = effects_of(views["labs"], model.to_frame()["cluster"])[told.columns]
    assert (told * true).to_numpy().sum() > 0.9 * (true**2).to_numpy().sum()


def test_a_feature_that_fewer_than_ten_samples_have_is_not_told() -> None:
    labs = VIEWS["labs"].copy()
    labs.iloc[9:, 0] = np.nan
    labs["same"] = 3.0
    model = folded(ViewFold(4, random_state=0), labs=labs)
    told = set(model.features(view="labs", top=None)["feature"])
    assert told == set(labs.columns[1:-1])


def test_single_cells_of_a_cluster_are_not_told() -> None:
    model = folded(ViewFold(4, random_state=0), **VIEWS)
    mine = model.to_frame()["cluster"] == 1
    labs = VIEWS["labs"].copy()
    labs.loc[mine, "labs_0"] = np.nan
    one = labs.index[mine][0]
    labs.loc[one, "labs_0"] = 1e5
    again = folded(ViewFold(4, random_state=0), **{**VIEWS, "labs": labs})
    told = again.features(view="labs", top=None).set_index("feature").loc["labs_0"]
    assert told["mean"].max() < 5e3  # a tenth of the cell would be 1e4


def planted_words() -> np.ndarray:
    """Counts of 400 words; of every forty, one is a cluster's own."""
    of_cluster = 0.8 * np.eye(4, 400)[Y] + 0.3 * (np.arange(400) % 40 == Y[:, None])
    return np.random.default_rng(4).poisson(0.02 + of_cluster)


def test_at_its_own_fold_a_view_tells_the_very_means_of_clusters() -> None:
    words = pd.DataFrame(planted_words().astype(float), VIEWS["labs"].index)
    words = words.loc[:, words.std() > 0]
    model = folded(ViewFold(4, random_state=0), words=words)
    told = told_by(model, "words").to_numpy()
    assert np.allclose(told, effects_of(words, model.to_frame()["cluster"]), atol=0.01)


def test_words_are_told_in_counts() -> None:
    words = planted_words()
    counts = sparse.csr_array(words.astype(float))
    model = ViewFold(4, random_state=0)
    model.partial_fit(counts, ids=VIEWS["labs"].index, view="words")
    model.partial_fit(VIEWS["labs"], view="labs")
    X = pd.DataFrame(words.astype(float), VIEWS["labs"].index)
    X = X.loc[:, X.std() > 0]
    true, told = effects_of(X, model.to_frame()["cluster"]), told_by(model, "words")
    assert list(told.columns) == list(X.columns)
    for c in true.index:
        strongest = told.loc[c].nlargest(10).index % 40
        assert len(set(strongest)) == 1
        assert strongest[0] == true.loc[c].idxmax()
        assert np.corrcoef(true.loc[c], told.loc[c])[0, 1] > 0.9
    means = model.features(view="words", top=None).set_index(["cluster", "feature"])["mean"]
    assert abs(means[0, 2] - X.loc[model.to_frame()["cluster"] == 0, 2].mean()) < 0.1


def test_levels_of_categories_are_told_as_shares() -> None:
    rng = np.random.default_rng(5)
    ward = np.array(["ER", "ICU", "home", "ward"])[np.where(rng.random(N) < 0.9, Y, 0)]
    labs = VIEWS["labs"].assign(ward=ward)
    model = folded(ViewFold(4, random_state=0), labs=labs)
    told = model.features(view="labs", top=None).set_index(["feature", "cluster"])["mean"]
    share = pd.get_dummies(labs["ward"]).groupby(model.to_frame()["cluster"]).mean()
    for c in range(4):
        assert abs(told["ward=ICU", c] - share.loc[c, "ICU"]) < 0.05


def test_large_offsets_lose_no_effect() -> None:
    stamps = 1.7e9 + VIEWS["scan"] * 60
    model = folded(ViewFold(4, random_state=0), stamps=stamps, scan=VIEWS["scan"])
    assert farthest(model, "stamps", stamps) < 0.05


def test_small_clusters_are_left_out_with_a_reason() -> None:
    # Of the first cluster, seven samples are in the second view.
    few = VIEWS["scan"][(Y != 0) | (np.cumsum(Y == 0) <= 7)]
    model = folded(ViewFold(4, random_state=0), labs=VIEWS["labs"], scan=few)
    of_few = model.to_frame()["cluster"].reindex(few.index).value_counts()
    (small,) = of_few.index[of_few < 10]
    with pytest.warns(UserWarning, match=rf"fewer than ten samples .*'scan': {small}"):
        table = model.features(top=None)
    assert set(table.loc[table["view"] == "scan", "cluster"]) == set(range(4)) - {small}
    with pytest.raises(ValueError, match="fewer than ten samples"):
        model.features(view="scan", cluster=small)
    assert np.isnan(model.variance().loc["scan", small])


@pytest.mark.parametrize("estimator", [ViewFold(4, random_state=0), FCMVC(4, random_state=0)])
def test_buckets_change_nothing_and_only_verbs_are_used(estimator) -> None:
    from sklearn.base import clone

    views, _ = planted(n=1200)
    more = (views["labs"].iloc[:300] + 5, views["scan"].iloc[:12].rename("new {}".format))

    def changed(model):
        model = folded(model, **views).partial_fit(more[0], view="labs")
        return model.extend(more[1], view="scan").recluster(3).forget(["p7"])

    with using(DiskEngine(5)):
        there = changed(clone(estimator))
        tables = [there.features(top=None), there.variance(), there.loadings("scan").abs()]
        why = there.explain("p8", top=None)
    here = changed(clone(estimator))
    expected = [here.features(top=None), here.variance(), here.loadings("scan").abs()]
    key = ["cluster", "view", "feature"]
    for one in (tables, expected):
        one[0] = one[0].set_index(key).sort_index().drop(columns="rank")
    for found, table in zip(tables, expected, strict=True):
        pd.testing.assert_frame_equal(found, table, rtol=1e-3, atol=1e-4)
    pd.testing.assert_frame_equal(why.views, here.explain("p8").views, rtol=1e-3, atol=1e-4)


def test_the_order_of_rows_and_numbers_of_views_do_not_matter(model) -> None:
    mixed = np.random.default_rng(6).permutation(N)
    other = folded(ViewFold(4, random_state=0), **{k: X.iloc[mixed] for k, X in VIEWS.items()})
    same = other.to_frame()["cluster"].reindex(VIEWS["labs"].index)
    pairs = pd.crosstab(same, model.to_frame()["cluster"]).to_numpy()
    assert (pairs > 0).sum() == 4
    for name in VIEWS:
        mine, theirs = told_by(model, name), told_by(other, name)
        assert np.allclose(mine.iloc[pairs.argmax(axis=1)], theirs, atol=1e-3)
    assert model.features(view=0).equals(model.features(view="labs"))


def test_nothing_is_warned_of_where_everything_is_told(model) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.features()
        model.explain("p3")
        model.variance()
