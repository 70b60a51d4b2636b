# ruff: noqa: F811  (fixtures of other files)
"""The number of clusters on the command line and on the page: suggested with its evidence."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_models import few_draws  # noqa: F401
from test_cli import Run, run  # noqa: F401

import viewfold
from viewfold import FCMVC, ViewFold, suggest_n_clusters
from viewfold.estimators import selection
from viewfold.web import page_data


@pytest.fixture
def files(tmp_path: Path) -> None:
    """Two views of five clusters that are easy to tell apart."""
    rng = np.random.default_rng(3)
    y = rng.permutation(np.repeat(np.arange(5), 30))
    for name, d in (("labs", 8), ("scan", 12)):
        X = 6 * rng.normal(size=(5, d))[y] + rng.normal(size=(150, d))
        pd.DataFrame(X).add_prefix("x").to_csv(tmp_path / f"{name}.csv", index_label="id")


def test_suggest_prints_scores_and_the_number_that_stands_out(run: Run, files: None) -> None:
    run("add p.vf labs.csv --id id --clusters 3")
    content = Path("p.vf").read_bytes()
    code, out, said = run("suggest p.vf")
    assert code == 0
    assert said.startswith("5 clusters stand out most, with a score of ")
    assert "p.vf has 3." in said
    assert len(out.splitlines()) == 1 + len(range(2, 21))
    answer = json.loads(run("suggest p.vf --range 2-9 --json")[1])
    assert (answer["suggested"], answer["clusters"], answer["stands_out"]) == (5, 3, True)
    expected = suggest_n_clusters(viewfold.load("p.vf"), range(2, 10)).scores
    assert [row["clusters"] for row in answer["scores"]] == list(expected)
    assert [row["score"] for row in answer["scores"]] == pytest.approx(
        list(expected.values()), abs=1e-3
    )
    assert run("suggest p.vf --range 2-9 -o scores.csv")[0] == 0
    table = pd.read_csv("scores.csv")
    assert table.loc[table["suggested"], "clusters"].tolist() == [5]
    assert Path("p.vf").read_bytes() == content


def test_a_range_that_is_none_and_an_empty_state_are_refused(run: Run, files: None) -> None:
    viewfold.ViewFold(3, random_state=0).save("p.vf")
    code, _, said = run("suggest p.vf")
    assert (code, "no view was folded yet" in said) == (1, True)
    run("add p.vf labs.csv --id id")
    for between in ("7", "two-five", "9-3", "0-4", "2-999"):
        code, out, said = run(f"suggest p.vf --range {between}")
        assert (code, out, said.count("\n")) == (1, "", 1), between


def test_blobs_without_clusters_are_called_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "TREES", 50)
    X = np.random.default_rng(0).normal(size=(200, 6))
    pd.DataFrame(X).add_prefix("x").to_csv("blob.csv", index_label="id")
    said = run("add p.vf blob.csv --id id --clusters auto")[2]
    assert "hardly more than where there are no clusters at all" in said
    assert json.loads(run("suggest p.vf --json")[1])["stands_out"] is False
    assert page_data(viewfold.load("p.vf")).summary["number"]["stands_out"] is False


def test_add_with_auto_folds_then_chooses_and_later_folds_keep_the_number(
    run: Run, files: None
) -> None:
    code, out, said = run("add p.vf labs.csv --id id --clusters auto --json")
    assert code == 0
    assert "5 clusters stand out most" in said
    answer = json.loads(out)
    assert answer["clusters"] == 5
    assert [row["clusters"] for row in answer["suggestion"] if row["suggested"]] == [5]
    model = viewfold.load("p.vf")
    assert (model.n_clusters, len(set(model.labels_))) == (5, 5)
    # The first step is in these clusters: nobody sees any that were provisional.
    assert model.log_["what"].tolist() == ["fold"]
    assert model.history_.shape == (150, 1)
    assert run("add p.vf scan.csv --id id")[0] == 0
    assert viewfold.load("p.vf").n_clusters == 5
    assert run("undo p.vf --yes")[0] == 0
    assert viewfold.load("p.vf").log_["what"].tolist() == ["fold", "fold", "undo"]


def test_auto_stays_with_a_number_unless_another_is_clearly_better(run: Run, files: None) -> None:
    run("add p.vf labs.csv --id id --clusters 4")
    scores = json.loads(run("suggest p.vf --json")[1])["scores"]
    told = {row["clusters"]: row["score"] for row in scores}
    assert told[5] - told[4] > selection.CLEARLY
    said = run("add p.vf scan.csv --id id --clusters auto")[2]
    model = viewfold.load("p.vf")
    assert model.n_clusters == 5
    assert "stand out most (score" in model.log_["note"].iloc[-1]
    assert "and 4 have" in model.log_["note"].iloc[-1]
    assert "stay" not in said


def test_auto_says_why_a_number_stays(
    run: Run, files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("add p.vf labs.csv --id id --clusters 4")
    monkeypatch.setattr(selection, "CLEARLY", 99.0)
    said = run("add p.vf scan.csv --id id --clusters auto")[2]
    assert "5 clusters stand out most" in said
    assert "4 stay: they have " in said
    model = viewfold.load("p.vf")
    assert (model.n_clusters, len(set(model.labels_))) == (4, 4)
    assert model.log_["what"].tolist() == ["fold", "fold"]


@pytest.mark.parametrize("method", ["viewfold", "fcmvc"])
def test_auto_works_with_few_samples_and_with_every_method(run: Run, method: str) -> None:
    X = np.kron(np.eye(2), np.ones((3, 2))) + np.random.default_rng(0).normal(size=(6, 4)) / 50
    pd.DataFrame(X).add_prefix("x").to_csv("few.csv", index_label="id")
    assert run(f"add p.vf few.csv --id id --clusters auto --method {method}")[0] == 0
    assert 2 <= viewfold.load("p.vf").n_clusters < 6


def test_what_is_no_number_of_clusters_is_refused(run: Run, files: None) -> None:
    for wrong in ("0", "-3", "ten", "2.5"):
        code, _, said = run(f"add p.vf labs.csv --id id --clusters {wrong}")
        assert (code, wrong in said) == (2, True)
    assert not Path("p.vf").exists()


def test_the_page_has_the_scores_and_the_number_of_now(files: None, tmp_path: Path) -> None:
    X = pd.read_csv(tmp_path / "labs.csv", index_col="id")
    told = page_data(ViewFold(3, random_state=0).fit(X)).summary["number"]
    assert (told["best"], told["now"], told["stands_out"]) == (5, 3, True)
    assert [k for k, _ in told["scores"]] == list(range(2, 21))
    assert max(told["scores"], key=lambda one: one[1])[0] == 5
    few = FCMVC(2, random_state=0).fit(X.iloc[:3])
    assert page_data(few).summary["number"] is None
    assert list(selection.candidates(few)) == [2]
