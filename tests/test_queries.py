# ruff: noqa: F811  (fixtures of other files)
"""What commands that only read promise: the model's answers, checked, without making the model."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Data
from store_models import changed
from test_cli import Run, files, run, state  # noqa: F401

import viewfold
from viewfold import FCMVC, StateFileError, ViewFold
from viewfold.store import queries

HERE = Path(__file__).parent
READERS = [
    "status p.vf",
    "labels p.vf",
    "labels p.vf -o l.csv",
    "history p.vf",
    "history p.vf --id s5",
    "history p.vf --moved scan",
    "export p.vf -o e.csv",  # to Parquet, pyarrow imports pandas
]


def large_imports(code: str, *arguments: str) -> str:
    """Which large modules are imported after a program has run."""
    # The package scipy alone is small, and imports its parts when they are used.
    code += (
        "\nlarge = ['sklearn', 'scipy.linalg', 'scipy.sparse', 'pandas', 'matplotlib']\n"
        "large += ['viewfold.estimators']\n"
        "print([name for name in large if name in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", f"import sys\n{code}", *arguments]
    return subprocess.run(command, capture_output=True, text=True).stderr.splitlines()[-1]


@pytest.mark.parametrize("asks", [False, True], ids=["without", "with a parameter"])
def test_commands_that_only_read_import_nothing_large(state: Path, asks: bool) -> None:
    code = (
        "from viewfold import cli\n"
        "for line in sys.argv[1:]:\n"
        "    sys.argv = ['viewfold', *line.split()]\n"
        "    try: cli.main()\n"
        "    except SystemExit as end: assert not end.code, line\n"
    )
    lines = [line for line in READERS if ("--id" in line or "--moved" in line) == asks]
    # DuckDB before version 2 imports pandas itself when a query has a parameter.
    alone = large_imports("import duckdb; duckdb.execute('SELECT ?', [1])") if asks else "[]"
    assert large_imports(code, *lines) == alone


@pytest.fixture(scope="module")
def models(data: Data) -> dict[str, Any]:
    """Models of all kinds; nobody changes them."""
    mixed = [*range(80), *map(str, range(80))]
    views = {'a "quoted", name': data.views["labs"], "scan": data.views["scan"]}
    single = {name: X.astype(np.float32) for name, X in data.views.items()}
    names = {"in": data.views["labs"], "IN": data.views["scan"]}  # differ in case only
    return {
        "text": ViewFold(4, n_init=1).fit(
            views, ids={name: [f"s{i}" for i in range(160)] for name in views}
        ),
        "numbers": ViewFold(4, n_init=1).fit(views),
        "mixed": ViewFold(4, n_init=1).fit(data.views["labs"], ids=mixed, similar_ids="new"),
        "single": FCMVC(4, n_init=1).fit(single),
        "case": ViewFold(4, n_init=1, keep_encoders=False).fit(names),
        "more clusters than have samples": ViewFold(4, n_init=1)
        .fit(views)
        .set_params(n_clusters=6),
    }


def test_answers_are_the_models(models: dict[str, Any], run: Run, tmp_path: Path) -> None:
    for model in models.values():
        model.save("p.vf")
        frame = model.to_frame()
        told = pd.DataFrame(json.loads(run("labels p.vf --json")[1])).set_index("id")
        assert told.index.tolist() == frame.index.tolist()
        for name in ("cluster", "views_seen"):
            assert told[name].tolist() == frame[name].tolist()
        np.testing.assert_allclose(told["confidence"], frame["confidence"], atol=1e-6)
        assert run("export p.vf -o e.jsonl")[0] == 0
        lines = Path("e.jsonl").read_text().splitlines()
        all_of_it = pd.DataFrame([json.loads(line) for line in lines]).set_index("id")
        expected = pd.concat(
            [model.seen_.add_prefix("in_"), model.history_.add_prefix("cluster_after_")], axis=1
        )
        assert all_of_it[expected.columns].to_numpy().tolist() == expected.to_numpy().tolist()
        z = all_of_it.filter(regex=r"^z\d").to_numpy()
        assert z.astype(model.embedding_.dtype).tobytes() == model.embedding_.tobytes()
        facts = json.loads(run("status p.vf --json")[1])
        sizes = np.bincount(model.labels_, minlength=model.n_clusters)
        assert facts["cluster_sizes"] == sizes.tolist()
        assert facts["private"] is not model.keep_encoders
        for i, view in enumerate(facts["views"]):
            known, seen = model.history_.iloc[:, i] >= 0, model.seen_.iloc[:, i]
            assert view["view"] == model.views_[i].name
            assert view["unseen"] == (known & ~seen).sum()
            assert view["moved"] == len(model.movers(i))


def test_a_number_and_a_text_that_look_alike_are_two_samples(
    models: dict[str, Any], tmp_path: Path
) -> None:
    models["mixed"].save(tmp_path / "p.vf")
    model = viewfold.load(tmp_path / "p.vf")
    (step,) = queries.way(tmp_path / "p.vf", "7")
    assert step["cluster"] == model.history_.iloc[model.ids_.tolist().index("7"), 0]
    models["numbers"].save(tmp_path / "p.vf")
    assert len(queries.way(tmp_path / "p.vf", "007")) == 2
    assert queries.way(tmp_path / "p.vf", "nobody") == []


DAMAGE = {
    "UPDATE samples SET label = 3 - label": ["labels", "status", "export"],
    "UPDATE samples SET hangs_on = 1 WHERE id = 's5'": ["labels", "status", "export"],
    "DELETE FROM samples WHERE id = 's5'": ["labels", "status", "way", "moved", "export"],
    "UPDATE samples SET confidence = 0.5 WHERE id = 's5'": ["labels", "export"],
    "UPDATE samples SET embedding = (SELECT embedding FROM samples LIMIT 1)": ["export"],
    "UPDATE samples SET added = 1": ["way", "export"],
    "UPDATE views SET n_new = n_new + 1": ["labels", "status", "way", "moved", "export"],
    "UPDATE log SET time = time + INTERVAL 1 HOUR WHERE entry = 1": ["history", "way"],
    "UPDATE arrays SET data = '' WHERE name = 'centers'": ["status"],
    "UPDATE meta SET value = '\"FCMVC\"' WHERE key = 'method'": [
        "labels",
        "status",
        "history",
        "way",
        "moved",
        "export",
    ],
}
LINES = {
    "labels": "labels p.vf",
    "status": "status p.vf",
    "history": "history p.vf",
    "way": "history p.vf --id s6",
    "moved": "history p.vf --moved scan",
    "export": "export p.vf -o e.csv",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_command_refuses_what_it_reads_if_that_was_changed(
    run: Run, state: Path, damage: str
) -> None:
    changed(state, damage)
    for command, line in LINES.items():
        code, out, said = run(line)
        assert (code != 0) == (command in DAMAGE[damage]), command
        assert (out == "" and "p.vf" in said) or code == 0
    assert run("verify p.vf")[0] == 4


def test_an_empty_file_is_told_so(run: Run) -> None:
    viewfold.ViewFold(4).save("p.vf")
    assert json.loads(run("status p.vf --json")[1])["samples"] == 0
    assert json.loads(run("history p.vf --json")[1]) == []
    for line in ("labels p.vf", "export p.vf -o e.csv"):
        assert "is empty" in run(line)[2]
    assert run("verify p.vf")[0] == 0


# -- verify


def test_verify_says_that_a_whole_file_is_whole(run: Run, state: Path) -> None:
    content = state.read_bytes()
    code, out, said = run("verify p.vf")
    assert (code, out) == (0, "")
    assert said == "p.vf is whole.\n"
    told = json.loads(run("verify p.vf --json")[1])
    assert told == {"file": "p.vf", "whole": True, "problems": [], "rescue": []}
    assert state.read_bytes() == content
    with pytest.raises(FileNotFoundError):
        viewfold.verify("nobody.vf")


def test_verify_tells_a_damaged_state_from_a_damaged_undo_part(run: Run, state: Path) -> None:
    copy = Path(state.rename("whole"))
    state.write_bytes(copy.read_bytes())
    changed(state, "UPDATE undo.samples SET label = 3 - label")
    found = viewfold.verify(state)
    assert [line.split(":")[0] for line in found.problems] == ["What undo returns to"]
    assert "The state is whole" in found.rescue[0]
    state.write_bytes(copy.read_bytes())
    changed(state, "UPDATE arrays SET data = '' WHERE name = 'centers'")
    found = viewfold.verify(state)
    assert [line.split(":")[0] for line in found.problems] == ["The state"]
    assert "viewfold undo" in found.rescue[0]
    assert run("verify p.vf")[0] == 4
    assert run("undo p.vf --yes")[0] == 0
    assert viewfold.verify(state).whole


def test_what_verify_says_can_be_saved_can_be_saved(run: Run, state: Path) -> None:
    content = state.read_bytes()
    true = {line: run(line)[1] for line in ("labels p.vf", "history p.vf")}
    damaged = 0
    for at in range(2000, len(content), 13 * 2**12):
        state.write_bytes(content[:at] + bytes([content[at] ^ 0x5A]) + content[at + 1 :])
        found = viewfold.verify(state)
        rescue = " ".join(found.rescue)
        try:
            viewfold.load(state)
            assert "The state:" not in " ".join(found.problems)
        except StateFileError:
            damaged += 1
            assert found.problems
            for line, expected in true.items():
                code, out, _ = run(line)
                assert (f"viewfold {line} -o" in rescue) == (code == 0)
                assert out == (expected if code == 0 else "")
    assert damaged > 3
