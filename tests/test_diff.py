"""What differs between two state files, and the exit code when too many samples moved."""

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import viewfold
from commands import Run, runner, typed
from viewfold.cli.options import parse_share, too_many_moved
from viewfold.errors import MOVED
from viewfold.explain.events import difference, one_story

N, K = 120, 3


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


def table(seed: int, truth: np.ndarray, first: int = 0, apart: float = 7) -> pd.DataFrame:
    X = apart * np.eye(K, 5)[truth] + np.random.default_rng(seed).normal(size=(truth.size, 5))
    frame = pd.DataFrame(X).add_prefix("x")
    frame.insert(0, "patient", [f"p{i}" for i in range(first, first + truth.size)])
    return frame


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three tables, the second with other groups than the first, and states of the first."""
    folder = tmp_path_factory.mktemp("made")
    table(0, np.arange(N) % K).to_csv(folder / "labs.csv", index=False)
    table(1, np.arange(N) // 40).to_csv(folder / "scan.csv", index=False)
    table(2, np.arange(100) % K, first=60).to_csv(folder / "text.csv", index=False)
    with contextlib.chdir(folder):
        typed(f"viewfold add old.vf labs.csv --id patient --clusters {K}")
        shutil.copy("old.vf", "new.vf")
        shutil.copy("old.vf", "merged.vf")
        typed("viewfold recluster merged.vf --clusters 2")
    return folder


@pytest.fixture
def files(made: Path, tmp_path: Path) -> Path:
    for one in made.iterdir():
        shutil.copy(one, tmp_path)
    return tmp_path


def fold(run: Run, state: str, *names: str, more: str = "") -> tuple[int, str, str]:
    for name in names:
        found = run(f"add {state} {name}.csv --id patient --clusters {K} {more}")
    return found


def test_a_later_state_of_the_same_file(files: Path, run: Run) -> None:
    fold(run, "new.vf", "text")
    code, out, err = run("diff old.vf new.vf --json")
    facts = json.loads(out)
    old, new = (viewfold.load(files / name).to_frame()["cluster"] for name in ("old.vf", "new.vf"))
    both = new.reindex(old.index)
    assert code == 0
    assert facts["same_numbers"] is True
    assert facts["samples"] == {"both": N, "only_old": 0, "only_new": 40}
    assert facts["moved"] == int((both != old).sum())
    assert facts["adjusted_rand"] == round(adjusted_rand_score(old, both), 4)
    assert (facts["views_added"], facts["views_gone"]) == (["text"], [])
    _, out, err = run("diff new.vf old.vf")
    assert "40 only in new.vf" in err
    assert "views gone: text" in err
    assert "have one log" in err


def test_files_without_a_common_log_are_matched(files: Path, run: Run) -> None:
    own = viewfold.load(files / "old.vf").to_frame()["cluster"]
    (files / "new.vf").unlink()
    run(f"add new.vf labs.csv --id patient --clusters {K} --seed 5")
    facts = json.loads(run("diff old.vf new.vf --json")[1])
    new = viewfold.load(files / "new.vf").to_frame()["cluster"]
    assert facts["same_numbers"] is False
    assert {int(a): b for a, b in facts["numbers"].items()} == dict(zip(own, new, strict=True))
    assert (facts["moved"], facts["adjusted_rand"], facts["events"]) == (0, 1.0, [])


def test_clusters_in_other_numbers_are_matched_before_samples_are_counted() -> None:
    old = np.arange(60), np.repeat([0, 1, 2], 20)
    turned = np.repeat([2, 0, 1], 20)
    turned[:3] = 0
    found = difference(old, (np.arange(60), turned))
    assert (found.n_moved, found.numbers) == (3, {0: 2, 1: 0, 2: 1})
    assert found.events == ()
    counted = difference(old, (np.arange(60), turned), same_numbers=True)
    assert (counted.n_moved, counted.numbers) == (57, None)
    assert {event.kind for event in counted.events} == {"renumbered"}
    nobody = difference(old, (np.arange(100, 160), turned))
    assert (nobody.n_both, nobody.n_moved, nobody.adjusted_rand) == (0, 0, None)


def test_events_between_files_are_told(files: Path, run: Run) -> None:
    shutil.copy("merged.vf", "new.vf")
    facts = json.loads(run("diff old.vf new.vf --json")[1])
    assert [(e["kind"], len(e["before"]), e["samples"]) for e in facts["events"]] == [
        ("merged", 2, 80)
    ]
    assert "merged" in run("diff old.vf new.vf")[1]
    shown = json.loads(run("history new.vf --events --json")[1])
    assert [(e["entry"], e["step"], e["kind"]) for e in shown] == [
        (2, "recluster (2)", "step"),
        (2, "recluster (2)", "merged"),
    ]
    assert "merged into" in run("history new.vf --events")[1]
    assert shown[1]["before"] == facts["events"][0]["before"]
    frame = viewfold.load(files / "new.vf").events_
    assert json.loads(frame.to_json(orient="records")) == shown
    assert "recluster (2)" in run("history new.vf --events")[1]
    code, out, err = run("history old.vf --events")
    assert (code, out) == (0, "")
    assert "Nothing happened" in err
    run("history new.vf --events -o events.csv")
    assert (files / "events.csv").read_text().startswith("entry,step,kind,before,after")


def test_a_fit_in_between_begins_a_new_numbering(files: Path, run: Run) -> None:
    before = viewfold.load(files / "old.vf")._state.log
    with viewfold.edit(files / "new.vf") as model:
        model.fit(table(0, np.arange(N) % K).set_index("patient"))
    again = viewfold.load(files / "new.vf")._state.log
    assert again[: len(before)] == before
    assert not one_story(before, again)
    assert one_story(before, before)
    assert not one_story((), before)


def test_diff_ends_with_a_code_of_its_own_if_too_many_moved(files: Path, run: Run) -> None:
    shutil.copy("merged.vf", "new.vf")
    assert json.loads(run("diff old.vf new.vf --json")[1])["moved"] == 40
    for limit, code in {"33%": 13, "40": 0}.items():
        ended, out, err = run(f"diff old.vf new.vf --max-moved {limit} --json")
        assert (limit, ended) == (limit, code)
        assert json.loads(out)["too_many_moved"] is bool(code)
        assert ("more than --max-moved" in err) is bool(code)
    assert MOVED[1] == 13


@pytest.mark.parametrize(
    ("said", "exceeded"),
    [
        *((said, True) for said in ("0", "0%", "0.33", "33%", "39")),
        *((said, False) for said in ("40", "34%", "0.34", "1.0", None)),
    ],
)
def test_a_limit_is_a_percentage_a_share_or_a_count(said: str | None, exceeded: bool) -> None:
    most = None if said is None else parse_share(said, "--max-moved")
    assert (too_many_moved(most, 40, 120) is not None) is exceeded


@pytest.mark.parametrize("limit", ["-1", "nan", "many", "200%", "1.5"])
def test_a_limit_that_is_none_is_refused_before_anything_is_done(
    files: Path, run: Run, limit: str
) -> None:
    code, _, err = run(f"add p.vf labs.csv --id patient --clusters 3 --max-moved={limit}")
    assert code == 1
    assert "--max-moved" in err
    assert not (files / "p.vf").exists()


def test_add_writes_the_state_and_says_by_its_exit_code_that_too_many_moved(
    files: Path, run: Run
) -> None:
    # Clusters that are far apart stay when another view has other ones: these are not.
    table(0, np.arange(N) % K, apart=2).to_csv("labs.csv", index=False)
    assert fold(run, "p.vf", "labs", more="--max-moved 0")[0] == 0  # nobody was known before
    before = viewfold.load(files / "p.vf")
    scan = "add p.vf scan.csv --id patient --max-moved 0 --json"
    code, out, _ = run(f"{scan} --dry-run")
    assert (code, json.loads(out)["too_many_moved"]) == (13, True)
    assert [view.name for view in viewfold.load(files / "p.vf").views_] == ["labs"]
    code, out, err = run(scan)
    facts: Any = json.loads(out)
    after = viewfold.load(files / "p.vf")
    moved = int((after.to_frame()["cluster"] != before.to_frame()["cluster"]).sum())
    assert moved > 0
    assert (code, facts["moved"], facts["known_before"]) == (13, moved, N)
    assert f"{moved} of {N} samples have another cluster" in err
    assert [view.name for view in after.views_] == ["labs", "scan"]
    assert run("undo p.vf --yes")[0] == 0
    assert run("add p.vf scan.csv --id patient --max-moved 100%")[0] == 0


def test_diff_of_empty_and_missing_files(files: Path, run: Run) -> None:
    viewfold.ViewFold(3).save("new.vf")
    code, _, err = run("diff old.vf new.vf")
    assert code == 1
    assert "new.vf is empty" in err
    assert run("diff old.vf none.vf")[0] == 9
