"""Clusters that are cut out of one are named, and commands tell who is not certain."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import viewfold
from commands import runner
from viewfold import ViewFold
from viewfold.method import clusters
from viewfold.method.clusters import resampled

TRUE = 0.6
"""Clusters with less should not be trusted, by the author of the measure."""


@pytest.fixture(scope="module")
def views() -> list[pd.DataFrame]:
    """Two clear clusters, and a third that is twice as large as both."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [60, 60, 240])
    index = pd.Index([f"p{i}" for i in range(360)], name="patient")
    rows = [rng.normal(size=(360, 8)) + 7 * np.eye(8)[y] for _ in range(2)]
    return [pd.DataFrame(X, index).add_prefix("x") for X in rows]


@pytest.fixture(scope="module")
def cut(views) -> ViewFold:
    """Five clusters: the third is cut into three."""
    return ViewFold(5, random_state=0).fit(dict(zip(("labs", "scan"), views, strict=True)))


@pytest.fixture(scope="module")
def planted(cut) -> set[int]:
    """The clusters that are none."""
    assert len(set(cut.labels_[:60])) == len(set(cut.labels_[60:120])) == 1
    return set(cut.labels_[120:].tolist())


def test_clusters_cut_out_of_one_are_not_trusted(cut, planted) -> None:
    found = cut.stability()
    assert set(found.index[~found["trusted"]]) == planted
    assert found["size"].tolist() == np.bincount(cut.labels_).tolist()
    assert (found["trusted"] == (found["stability"] >= TRUE)).all()
    assert found["stability"].between(0, 1).all()


def test_clear_clusters_are_stable(views) -> None:
    assert (ViewFold(3, random_state=0).fit(views).stability(5)["stability"] > 0.95).all()


def test_stability_depends_on_the_seed_alone(cut, views) -> None:
    first = cut.stability(3, random_state=1)
    assert first.equals(cut.stability(3, random_state=1))
    assert not first.equals(cut.stability(3, random_state=2))
    before = cut.labels_.copy()
    cut.stability(1)
    assert np.array_equal(cut.labels_, before)
    with pytest.raises(ValueError, match="n_resamples=0"):
        cut.stability(0)


def test_time_does_not_grow_with_the_samples(cut, monkeypatch) -> None:
    monkeypatch.setattr("viewfold.method.clusters.REPEATED", 100)
    drawn, cluster = [], clusters.cluster

    def counted(engine, ids, *args, **options):
        drawn.append(len(ids))
        return cluster(engine, ids, *args, **options)

    monkeypatch.setattr(clusters, "cluster", counted)
    assert cut.stability(2)["size"].sum() == 360
    assert drawn == [250, 250]  # fifty for each cluster


def test_a_cluster_of_which_no_row_was_drawn_is_not_known() -> None:
    labels = np.arange(40) % 2
    found = resampled(lambda rows, _: labels[rows], labels, 3, 5, seed=0)
    assert found[:2].tolist() == [1, 1]
    assert np.isnan(found[2])


@pytest.fixture
def run(monkeypatch, capsys):
    return runner(monkeypatch, capsys)


@pytest.fixture
def state(cut, tmp_path: Path) -> Path:
    cut.save(tmp_path / "s.vf")
    return tmp_path / "s.vf"


def test_status_names_clusters_not_to_be_trusted(run, state, planted) -> None:
    code, out, _ = run("status --stability --json", state)
    told = json.loads(out)
    assert code == 0
    assert set(told["untrusted"]) == planted
    assert [row["cluster"] for row in told["stability"]] == list(range(5))
    assert "untrusted" not in json.loads(run("status --json", state)[1])
    _, out, err = run("status --stability", state)
    assert "clusters " + ", ".join(map(str, sorted(planted))) + "." in out + err


def test_labels_lists_the_least_certain(run, state, cut) -> None:
    code, out, _ = run("labels --least-certain 3 --json", state)
    found = cut.uncertain(3)
    assert code == 0
    rows = json.loads(out)
    assert [row["id"] for row in rows] == found.index.tolist()
    assert [row["next_cluster"] for row in rows] == found["next_cluster"].tolist()


def test_commands_give_noise_its_label_and_the_file_stays(run, state, cut, views, tmp_path) -> None:
    least = float(cut.to_frame()["confidence"].median())
    before = state.read_bytes()
    out = tmp_path / "all.csv"
    assert run(f"export --min-confidence {least}", state, "-o", out)[0] == 0
    told = json.loads(run(f"labels --json --min-confidence {least}", state)[1])
    for frame in (pd.DataFrame(told), pd.read_csv(out)):
        noise = frame["confidence"] < least
        assert 0 < noise.sum() < 360
        assert ((frame["cluster"] == -1) == noise).all()
    views[0][:40].to_csv(tmp_path / "labs.csv")
    rows = f"predict --json --min-confidence {least}", state, tmp_path / "labs.csv"
    new = pd.DataFrame(json.loads(run(*rows, "--id", "patient")[1]))
    assert ((new["cluster"] == -1) == (new["confidence"] < least)).all()
    code, _, err = run("labels --min-confidence 2", state)
    assert code
    assert "--min-confidence 2.0: expected a number from 0 to 1" in err
    assert state.read_bytes() == before
    assert np.array_equal(viewfold.load(state).labels_, cut.labels_)
