"""Labels that hang on one view: who, on which, and what follows for their confidence."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import typed
from viewfold import FCMVC, ViewFold
from viewfold._util import constants
from viewfold.rows import DiskEngine, using
from viewfold.store import queries

IDS = [f"s{i:03}" for i in range(200)]
ODD = IDS[:8]  # of these, labs and scan say different things
K = 4


def tables() -> dict[str, pd.DataFrame]:
    random, y = np.random.default_rng(0), np.arange(len(IDS)) % K
    labs, scan = (4 * np.eye(K)[y] + random.normal(size=(len(IDS), K)) * 0.4 for _ in range(2))
    labs[: len(ODD)] = labs[1 : len(ODD) + 1]
    views = {"labs": labs, "scan": scan}
    return {name: pd.DataFrame(rows, IDS).add_prefix(name) for name, rows in views.items()}


def folded(**options: object) -> ViewFold:
    model = ViewFold(K, random_state=0, **options)
    for name, table in tables().items():
        model.partial_fit(table, view=name)
    return model


@pytest.fixture(scope="module")
def model() -> ViewFold:
    return folded()


def test_a_label_hangs_on_the_view_that_decides_it(model: ViewFold) -> None:
    """Where two views say different things, the cluster is that of one, and would be the other."""
    frame = model.to_frame()
    assert frame.index[frame["hangs_on"].notna()].tolist() == ODD
    usual = frame["cluster"][[f"s{i:03}" for i in range(20, 20 + K)]].tolist()  # by class
    for i, name in enumerate(ODD):
        told, says = model.explain(name), {"scan": usual[i % K], "labs": usual[(i + 1) % K]}
        assert told.hangs_on == frame["hangs_on"][name]
        assert told.cluster == says.pop(str(told.hangs_on))
        assert [told.without] == list(says.values())
        assert f"Without {told.hangs_on}, it would be in cluster {told.without}." in str(told)


def test_confidence_falls_where_a_label_hangs_on_one_view(
    model: ViewFold, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = model.to_frame()
    monkeypatch.setattr(constants, "HANGING", 1.0)
    before = model.to_frame()
    hangs = now["hangs_on"].notna()
    assert hangs.any()
    assert (now["confidence"] < before["confidence"])[hangs].all()
    assert now["confidence"][~hangs].equals(before["confidence"][~hangs])


def test_who_has_one_view_hangs_on_none_that_could_be_left_out() -> None:
    views = tables()
    model = ViewFold(4, random_state=0).partial_fit(views["scan"], view="scan")
    assert model.to_frame()["hangs_on"].isna().all()


@pytest.mark.parametrize("ending", ["vf", "vfd"])
def test_files_and_commands_tell_it(model: ViewFold, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"s.{ending}"
    model.save(path)
    frame, table = model.to_frame(), queries.labels(path)
    assert table is not None
    found = pd.DataFrame(dict(table.columns)).set_index("id").loc[frame.index]
    assert found["hangs_on"].fillna("").equals(frame["hangs_on"].fillna(""))
    assert np.allclose(found["novelty"].astype(float), frame["novelty"], atol=1e-6)
    facts = json.loads(typed(f"viewfold status {path} --json"))
    share = frame["hangs_on"].value_counts() / 200
    assert facts["hanging"]["samples"] == 200
    assert facts["hanging"]["views"] == pytest.approx(share.to_dict(), abs=1e-4)
    said = typed(f"viewfold status {path}")
    assert f"{100 * share.sum():.2g} % of the labels" in said


def test_a_private_state_says_that_it_cannot_tell(tmp_path: Path) -> None:
    path = tmp_path / "s.vf"
    private = folded(keep_encoders=False)
    private.save(path)
    assert private.to_frame()["hangs_on"].isna().all()
    said = typed(f"viewfold status {path}")
    assert "Whether labels hang on one view is not known" in said


def test_engines_agree(model: ViewFold) -> None:
    with DiskEngine() as engine, using(engine):
        there = folded().to_frame()["hangs_on"]
    assert there.fillna("").loc[IDS].equals(model.to_frame()["hangs_on"].fillna("").loc[IDS])


def test_in_one_cluster_no_label_hangs_on_a_view() -> None:
    rng = np.random.default_rng(2)
    model = FCMVC(5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # two features are fewer than five clusters
        for name in ("labs", "scan"):
            model.partial_fit(rng.normal(size=(120, 2)), ids=range(120), view=name)
        model.recluster(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert model.to_frame()["hangs_on"].isna().all()
