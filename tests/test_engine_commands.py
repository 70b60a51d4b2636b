"""The command line works on folders of buckets as it does on files, whoever does the work."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import viewfold
from commands import Run, runner
from viewfold.rows import current_engine

run = pytest.fixture(runner, name="run")


@pytest.fixture
def deliveries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two views of 400 samples, each in three files; the last of labs is empty."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.arange(400) % 3
    for name, share in (("labs", 0.9), ("scan", 0.8)):
        X = 6 * np.eye(3, 5)[y] + rng.normal(size=(400, 5))
        table = pd.DataFrame(X, columns=[f"{name}{j}" for j in range(5)])
        table.insert(0, "patient", [f"p{i}" for i in range(400)])
        table = table.sample(frac=share, random_state=1)
        Path(name).mkdir()
        for i, part in enumerate(np.split(np.arange(len(table)), [50, len(table)])):
            table.iloc[part].to_parquet(f"{name}/part-{i}.parquet", index=False)


def labels_of(run: Run, state: str) -> pd.Series:
    code, _, said = run(f"labels {state} -o labels.csv")
    assert code == 0, said
    return pd.read_csv("labels.csv", index_col="id")["cluster"].sort_index()


@pytest.mark.usefixtures("deliveries")
def test_a_folder_gets_the_labels_of_a_file_and_every_command_reads_it(run: Run) -> None:
    for state in ("p.vf", "p.vfd"):
        for view in ("labs/*.parquet", "scan"):
            name = view.split("/")[0]
            more = "--buckets 3" if state == "p.vfd" else ""
            code, _, said = run(f"add {state} {view} --id patient -k 3 --view {name} {more}")
            assert code == 0, said
    assert labels_of(run, "p.vfd").equals(labels_of(run, "p.vf"))
    code, _, said = run("recluster p.vfd --clusters 2 --memory 1GB")
    assert (code, "in 2 clusters" in said) == (0, True)
    someone = labels_of(run, "p.vf").index[7]
    code, _, said = run(f"forget p.vfd {someone}")
    assert code == 0, said
    assert someone not in labels_of(run, "p.vfd").index
    code, out, _ = run("predict p.vfd labs --id patient --view labs")
    assert (code, out.count("\n")) == (0, 361)
    facts = json.loads(run("status p.vfd --json")[1])
    assert facts["samples"] == len(viewfold.load("p.vfd").ids_)
    assert type(current_engine()).__name__ == "LocalEngine"


@pytest.mark.usefixtures("deliveries")
def test_memory_says_how_many_buckets_a_new_folder_gets(run: Run) -> None:
    for memory, buckets in (("4GB", 16), ("4K", 32)):
        code, _, said = run(f"add {memory}.vfd labs --id patient -k 3 --memory {memory}")
        assert code == 0, said
        (manifest,) = Path(f"{memory}.vfd").glob("manifest-*.json")
        assert json.loads(manifest.read_text())["states"][0]["n_buckets"] >= buckets
    code, _, said = run("add few.vfd labs --id patient -k 3 --buckets 5")
    assert code == 0, said
    code, _, said = run("add few.vfd scan --id patient --buckets 6")
    assert (code != 0, "few.vfd has 5 buckets" in said) == (True, True)
    assert json.loads(run("status few.vfd --json")[1])["samples"] == 360


@pytest.mark.usefixtures("deliveries")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("p.vf labs --engine dask", "--engine is for states in buckets"),
        ("p.vf labs --memory 1GB", "--memory is for states in buckets"),
        ("p.vfd labs --engine daks", "There is no engine 'daks'"),
        ("p.vfd labs --address tcp://x:1", "'local' has no address"),
        ("p.vfd labs --memory much", "is no size"),
        ("foo://p.vfd labs", "foo"),
        ("p.vfd none/*.parquet", "none"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_made(
    run: Run, options: str, says: str
) -> None:
    code, _, said = run(f"add {options} --id patient -k 3")
    assert code != 0
    assert says in said
    assert not Path("p.vfd").exists()
    assert not Path("p.vf").exists()
