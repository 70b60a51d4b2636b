"""Why a sample is in its cluster, loadings and shares of variance; what cannot be asked."""

import numpy as np
import pandas as pd
import pytest
from explained import N, planted

from viewfold import ViewFold

VIEWS, Y = planted()


@pytest.fixture(scope="module")
def model() -> ViewFold:
    model = ViewFold(4, random_state=0)
    for name, X in VIEWS.items():
        model.partial_fit(X.iloc[: 200 if name == "ekg" else N], view=name)
    return model


def test_a_sample_is_explained_by_what_tells_its_cluster_from_the_next(model: ViewFold) -> None:
    frame = model.to_frame()
    for sample in ("p3", "p77", "p230"):
        why = model.explain(sample, top=None)
        assert why.cluster == frame.loc[sample, "cluster"]
        assert why.next_cluster not in (None, why.cluster)
        assert why.confidence == pytest.approx(frame.loc[sample, "confidence"])
        assert (why.views["evidence"] > 0).all()
        assert why.views["in_view"].tolist() == model.seen_.loc[sample].tolist()
        for name, of_view in why.features.groupby("view"):
            assert of_view["evidence"].sum() == pytest.approx(why.views.loc[name, "evidence"])
        # What the consensus says of the sample is near what it had.
        labs = why.features[why.features["view"] == "labs"].set_index("feature")
        had = VIEWS["labs"].loc[sample, labs.index]
        assert np.corrcoef(labs["value"], had)[0, 1] > 0.8


def test_evidence_is_one_at_the_mean_of_the_cluster_and_minus_one_at_the_next() -> None:
    views, _ = planted(n=60)
    model = ViewFold(2, random_state=0).fit(views)
    for c in range(2):
        mine = [model.explain(i, top=1) for i in model.ids_[model.labels_ == c]]
        assert {why.next_cluster for why in mine} == {1 - c}
        # Evidence is linear in what is expected of a sample.
        mean = np.mean([why.views["evidence"] for why in mine], axis=0)
        assert np.allclose(mean, 1, atol=0.05)


def test_features_are_named_strongest_first_and_said_in_lines(model: ViewFold) -> None:
    why = model.explain("p3", top=4)
    assert len(why.features) == 4
    assert why.features["evidence"].abs().is_monotonic_decreasing
    lines = str(why).splitlines()
    assert lines[0].startswith(f"p3 is in cluster {why.cluster} (confidence ")
    assert len(lines) == 5
    assert all("speaks for cluster" in line for line in lines[1:])
    assert set(model.explain("p3", view="scan").features["view"]) == {"scan"}


def test_a_sample_between_two_clusters_has_evidence_of_both(model: ViewFold) -> None:
    why = model.explain(model.to_frame()["confidence"].idxmin(), top=None)
    assert (why.features["evidence"] < 0).any()
    assert (why.features["evidence"] > 0).any()


def test_one_cluster_is_compared_with_all_samples() -> None:
    one = ViewFold(1, random_state=0).fit({"labs": VIEWS["labs"]})
    why = one.explain("p3")
    assert why.next_cluster is None
    assert why.views["evidence"].isna().all()  # it is the same as all samples
    assert "next is all samples" in str(why)


def test_loadings_are_correlations_of_features_with_components(model: ViewFold) -> None:
    loadings = model.loadings("labs")
    assert loadings.index.tolist() == VIEWS["labs"].columns.tolist()
    assert loadings.shape == (9, model.embedding_.shape[1])
    B = pd.DataFrame(model.embedding_, model.ids_)
    whole = [np.corrcoef(B[i], VIEWS["labs"].loc[B.index, "labs_2"])[0, 1] for i in range(3)]
    assert np.allclose(loadings.loc["labs_2"].iloc[:3], whole, atol=0.1)


def test_variance_is_what_clusters_and_consensus_explain(model: ViewFold) -> None:
    table = model.variance()
    assert table.columns.tolist() == ["consensus", "clusters", 0, 1, 2, 3]
    labels = model.to_frame()["cluster"]
    for name in ("labs", "scan"):
        X = VIEWS[name]
        z = (X - X.mean()) / X.std(ddof=0)
        groups = z.groupby(labels.reindex(X.index))
        between = (groups.mean() ** 2).mean(axis=1) * groups.size() / N
        assert np.allclose(table.loc[name, [0, 1, 2, 3]], between, atol=0.02)
        assert table.loc[name, "clusters"] == pytest.approx(between.sum(), abs=0.03)
    assert (table["consensus"] >= table["clusters"]).all()
    assert (table["consensus"] <= 1).all()


def test_a_view_of_noise_is_hardly_explained() -> None:
    noise = pd.DataFrame(np.random.default_rng(1).normal(size=(N, 40)), VIEWS["labs"].index)
    table = ViewFold(4, random_state=0).fit({**VIEWS, "noise": noise}).variance()
    assert table.loc["noise", "clusters"] < 0.05 < 0.5 < table.loc["labs", "clusters"]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.features(view="mri"), "There is no view 'mri'.*'labs', 'scan', 'ekg'"),
        (lambda m: m.features(cluster=4), "no cluster 4: there are 4, from 0 to 3"),
        (lambda m: m.features(cluster=-1), "no cluster -1"),
        (lambda m: m.features(cluster="a"), "no cluster 'a'"),
        (lambda m: m.features(top=0), "top=.* whole number from 1 on"),
        (lambda m: m.explain("p999"), r"Unknown samples: \['p999'\]"),
        (lambda m: m.loadings(), "Which view is meant"),
    ],
)
def test_what_is_not_there_is_named(model: ViewFold, ask, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ask(model)


def test_before_the_first_view_there_is_nothing_to_explain() -> None:
    with pytest.raises(Exception, match="not fitted"):
        ViewFold(2).features()
