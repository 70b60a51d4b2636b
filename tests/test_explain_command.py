"""viewfold explain: what makes a cluster, why a sample is in it, and what cannot be told."""

import json
from pathlib import Path

import pytest
from explained import planted

import viewfold
from commands import Run, runner
from viewfold import ViewFold

VIEWS, _ = planted(n=80)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("state") / "s.vf"
    ViewFold(4, random_state=0).fit(VIEWS).save(path)
    return path


def test_features_of_all_clusters_and_shares_of_variance(run: Run, state: Path) -> None:
    code, out, _ = run(f"explain {state} --top 2")
    shares, features = out.split("\n\n")
    assert code == 0
    assert shares.split()[:3] == ["view", "consensus", "clusters"]
    assert features.splitlines()[0].split()[-2:] == ["effect", "rank"]
    assert len(features.splitlines()) == 1 + 4 * 2


def test_a_program_gets_what_the_model_says(run: Run, state: Path) -> None:
    model = viewfold.load(state)
    code, out, _ = run(f"explain {state} --cluster 3 --view labs --top 4 --json")
    told = json.loads(out)
    assert code == 0
    expected = model.features(view="labs", cluster=3, top=4)
    assert told["features"] == expected.to_dict("records")
    assert told["clusters"] == 4
    code, out, _ = run(f"explain {state} --id p17 --json")
    told, why = json.loads(out), model.explain("p17")
    assert (told["cluster"], told["next_cluster"]) == (why.cluster, why.next_cluster)
    assert [row["feature"] for row in told["features"]] == why.features["feature"].tolist()
    assert [row["view"] for row in told["views"]] == ["labs", "scan", "ekg"]


def test_a_sample_in_a_few_lines(run: Run, state: Path) -> None:
    code, out, said = run(f"explain {state} --id p17 --top 3")
    assert code == 0
    assert said.startswith("p17 is in cluster ")
    views, features = out.split("\n\n")
    assert views.splitlines()[0].split() == ["view", "in_view", "evidence"]
    assert len(features.splitlines()) == 4


def test_samples_that_are_numbers_are_found(run: Run, tmp_path: Path) -> None:
    model = ViewFold(4, random_state=0).fit({n: X.to_numpy() for n, X in VIEWS.items()})
    model.save(tmp_path / "s.vf")
    code, out, _ = run(f"explain {tmp_path / 's.vf'} --id 007 --json")
    assert code == 0
    assert json.loads(out)["id"] == 7
    assert isinstance(json.loads(out)["features"][0]["feature"], int)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("--cluster 4", "There is no cluster 4: there are 4, from 0 to 3."),
        ("--id nobody", "Unknown samples: ['nobody']."),
        ("--id 'P1 '", "Unknown samples: ['P1 ']. Is 'p1' meant?"),
        ("--view mri", "There is no view 'mri'"),
        ("--cluster 1 --id p1", "Choose one."),
    ],
)
def test_what_is_not_there_is_named(run: Run, state: Path, asked: str, message: str) -> None:
    code, out, said = run(f"explain {state} {asked}")
    assert code != 0
    assert message in said
    assert not out


def test_private_and_empty_states_say_so(run: Run, tmp_path: Path) -> None:
    private = tmp_path / "private.vf"
    ViewFold(4, random_state=0, keep_encoders=False).fit(VIEWS).save(private)
    code, _, said = run(f"explain {private}")
    assert code != 0
    assert "private (--private): it has no moments" in said
    ViewFold(3).save(tmp_path / "empty.vf")
    code, _, said = run(f"explain {tmp_path / 'empty.vf'}")
    assert code != 0
    assert "is empty" in said


def test_what_is_left_out_is_a_note(run: Run, tmp_path: Path) -> None:
    few = {**VIEWS, "scan": VIEWS["scan"].iloc[:9]}
    ViewFold(4, random_state=0).fit(few).save(tmp_path / "s.vf")
    code, out, said = run(f"explain {tmp_path / 's.vf'} --json")
    assert code == 0
    assert any("'scan' has fewer than ten samples" in note for note in json.loads(out)["notes"])
    assert "note: View 'scan' has fewer than ten samples" in said
