"""ViewFold("auto"): the number that stands out, what was seen, and when there is none."""

import contextlib
import warnings
from pathlib import Path
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score as ari
from sklearn.utils.estimator_checks import estimator_checks_generator
from test_sklearn import EXPECTED_TO_FAIL

import viewfold
from commands import runner
from viewfold import FCMVC, ViewFold, suggest_n_clusters


def views(k: int, seed: int = 0) -> tuple[dict[str, pd.DataFrame], np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(k), 50))
    ids = [f"p{i}" for i in range(len(y))]
    each = {"labs": 6, "scan": 9}
    return {
        name: pd.DataFrame(
            4 * rng.normal(size=(k, d))[y] + rng.normal(size=(len(y), d)), index=ids
        ).add_prefix("m")
        for name, d in each.items()
    }, y


def noise(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame(rng.normal(size=(n, 5)), index=[f"p{i}" for i in range(n)]).add_prefix("m")
    return made.assign(colour=rng.choice(["red", "green", "blue"], n))


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_fit_finds_the_number_and_says_what_it_saw(kind) -> None:
    frames, y = views(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = kind("auto", random_state=0).fit(frames)
    assert model.n_clusters == "auto"
    assert model.n_clusters_ == len(np.unique(model.labels_)) == 4
    assert model.suggestion_.best == 4
    assert model.suggestion_.stands_out
    assert model.suggestion_.scores == suggest_n_clusters(frames, range(2, 21)).scores
    assert kind is FCMVC or ari(y, model.labels_) > 0.95
    assert np.array_equal(model.labels_, kind(4, random_state=0).fit(frames).labels_)


def test_it_says_that_there_are_no_clusters() -> None:
    with pytest.warns(UserWarning, match="there may be no clusters"):
        model = ViewFold("auto", random_state=0).fit({"labs": noise()})
    assert not model.suggestion_.stands_out


def test_view_by_view_it_changes_only_if_another_number_is_clearly_better() -> None:
    frames, y = views(5)
    blind = frames["labs"].copy()
    rng = np.random.default_rng(1)
    blind[:] = 4 * rng.normal(size=(2, 6))[y % 2] + rng.normal(size=blind.shape)
    model = ViewFold("auto", random_state=0).partial_fit(blind, view="labs")
    assert model.n_clusters_ == 2
    model.partial_fit(frames["scan"], view="scan")
    assert model.n_clusters_ == model.suggestion_.best
    assert model.n_clusters_ > 2
    assert model.log_["what"].iloc[-1] == "recluster"
    assert "they stand out most" in model.log_["note"].iloc[-1]
    before = model.n_clusters_
    model.partial_fit(frames["scan"][:20] + 0.01, view="scan")
    assert model.n_clusters_ == before
    model.recluster(3)
    assert model.n_clusters == model.n_clusters_ == 3


def test_fit_begins_anew() -> None:
    model = ViewFold("auto", random_state=0).fit(views(3)[0])
    assert model.n_clusters_ == 3
    assert model.fit(views(6)[0]).n_clusters_ == 6
    assert clone(model).get_params()["n_clusters"] == "auto"


def test_a_file_holds_the_number(tmp_path: Path) -> None:
    frames, _ = views(3)
    model = ViewFold("auto", random_state=0).fit(frames)
    model.save(tmp_path / "s.vf")
    loaded = viewfold.load(tmp_path / "s.vf")
    assert loaded.n_clusters == 3
    assert np.array_equal(loaded.labels_, model.labels_)
    loaded.set_params(n_clusters="auto").forget([model.ids_[0]])
    assert loaded.n_clusters_ == 3


def test_commands_choose_the_same(tmp_path: Path, monkeypatch, capsys) -> None:
    frames, _ = views(4)
    for name, frame in frames.items():
        frame.rename_axis("id").to_csv(tmp_path / f"{name}.csv")
    run, state = runner(monkeypatch, capsys), tmp_path / "s.vf"
    for name in frames:
        assert run(f"add {state} {tmp_path / name}.csv --id id --clusters auto --seed 0")[0] == 0
    model = ViewFold("auto", random_state=0)
    for name in frames:
        model.partial_fit(frames[name], view=name)
    assert viewfold.load(state).n_clusters == model.n_clusters_ == 4


@pytest.mark.parametrize(("n", "enough"), [(2, False), (3, True)])
def test_too_few_samples_have_no_number(n: int, enough: bool) -> None:
    X = np.eye(n) + np.arange(n)[:, None]
    if not enough:
        with pytest.raises(ValueError, match="too few to choose a number of clusters"):
            ViewFold("auto").fit(X)
        return
    with pytest.warns(UserWarning, match="there may be no clusters"):
        assert ViewFold("auto").fit(X).n_clusters_ == 2


def test_another_word_is_refused() -> None:
    with pytest.raises(ValueError, match="'n_clusters' parameter"):
        ViewFold("many").fit(np.eye(20))


@pytest.mark.slow
def test_it_is_an_estimator_of_scikit_learn() -> None:
    expected = {"check_fit2d_1sample", *EXPECTED_TO_FAIL}  # one sample has no number of clusters
    for estimator, check in estimator_checks_generator(ViewFold("auto", random_state=0)):
        if getattr(check, "func", check).__name__ not in expected:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                with contextlib.suppress(SkipTest):
                    check(estimator)
