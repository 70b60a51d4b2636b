"""What the command line promises: one clear line, data on standard output, no traceback."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Data

import viewfold
from commands import Run, runner
from viewfold.datasets import load_digits_views

MADE: list[bytes] = []
WRITTEN: dict[str, bytes] = {}
COMMANDS = [
    "inspect",
    "add",
    "labels",
    "status",
    "predict",
    "forget",
    "undo",
    "suggest",
    "recluster",
    "rename",
    "history",
    "diff",
    "verify",
    "convert",
    "report",
    "export",
    "demo",
    "refresh",
]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command in an empty folder; return its exit code, output and messages."""
    monkeypatch.chdir(tmp_path)

    return runner(monkeypatch, capsys)


@pytest.fixture
def files(data: Data, tmp_path: Path) -> None:
    """Three views in three formats, without a column in common but the ids; written once."""
    for (name, (X, ids)), suffix in zip(
        data.parts().items(), (".csv", ".parquet", ".tsv"), strict=True
    ):
        path = tmp_path / f"{name}{suffix}"
        if path.name not in WRITTEN:
            frame = pd.DataFrame(X).add_prefix(f"{name}_")
            frame.insert(0, "patient", ids)
            if suffix == ".parquet":
                frame.to_parquet(path, index=False)
            else:
                frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
            WRITTEN[path.name] = path.read_bytes()
        path.write_bytes(WRITTEN[path.name])


@pytest.fixture
def state(run: Run, files: None) -> Path:
    """A state of two views, made by commands once and copied from then on."""
    path = Path("p.vf")
    if not MADE:
        assert run("add p.vf labs.csv --id patient --clusters 4")[0] == 0
        assert run("add p.vf scan.parquet --id patient")[0] == 0
        MADE.append(path.read_bytes())
    for one, content in ((path, MADE[0]), (path.with_name(".p.vf.lock"), b"")):
        one.write_bytes(content)
        one.chmod(0o600)
    return path


def test_the_number_of_clusters_may_change_with_a_view(run: Run, state: Path) -> None:
    code, out, _ = run("add p.vf text.tsv --id patient --clusters 3 --json")
    assert (code, json.loads(out)["clusters"]) == (0, 3)
    assert set(viewfold.load(state).labels_) == {0, 1, 2}


def test_files_are_folded_as_the_library_does_it(run: Run, state: Path, data: Data) -> None:
    model = viewfold.ViewFold(4, random_state=0)
    for name, (X, ids) in list(data.parts().items())[:2]:
        model.partial_fit(X, ids=ids, view=name)
    code, out, _ = run("labels p.vf")
    found = pd.read_csv(io.StringIO(out), index_col="id")
    assert code == 0
    assert found["cluster"].to_dict() == model.to_frame()["cluster"].to_dict()
    np.testing.assert_allclose(found["confidence"], model.to_frame()["confidence"], atol=1e-6)


def test_add_tells_who_came_and_who_moved(run: Run, state: Path) -> None:
    code, out, said = run("add p.vf text.tsv --id patient --view letters --json")
    (fold,) = json.loads(out)["folds"]
    model = viewfold.load("p.vf")
    before, after = model.history_["scan"], model.history_["letters"]
    assert code == 0
    assert fold["view"] == "letters"
    assert (fold["new"], fold["shared"], fold["unseen"]) == (0, 120, 40)
    assert fold["moved"] == int(((before >= 0) & (before != after)).sum())
    assert f"{fold['moved']} changed cluster" in said


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl"])
def test_labels_and_export_write_what_their_name_says(run: Run, state: Path, suffix: str) -> None:
    read = {
        "csv": pd.read_csv,
        "tsv": lambda path: pd.read_csv(path, sep="\t"),
        "parquet": pd.read_parquet,
        "jsonl": lambda path: pd.read_json(path, lines=True),
    }[suffix]
    frame = viewfold.load("p.vf").to_frame()
    for command in ("labels", "export"):
        code, out, said = run(f"{command} p.vf -o out.{suffix}")
        written = read(f"out.{suffix}").set_index("id")
        assert (code, out) == (0, "")
        assert f"out.{suffix} is written" in said
        assert written["cluster"].to_dict() == frame["cluster"].to_dict()
    assert {"in_labs", "cluster_after_scan", "z0"} <= set(written.columns)


def test_status_and_history_agree_with_the_model(run: Run, state: Path) -> None:
    model = viewfold.load("p.vf")
    facts = json.loads(run("status p.vf --json")[1])
    assert facts["samples"] == sum(facts["cluster_sizes"]) == model.ids_.size
    assert [view["view"] for view in facts["views"]] == ["labs", "scan"]
    folds = json.loads(run("history p.vf --json")[1])
    assert [fold["new"] for fold in folds] == [120, 40]
    way = json.loads(run("history p.vf --id s5 --json")[1])
    assert [step["cluster"] for step in way] == [c for c in model.history_.loc["s5"] if c >= 0]
    moved = pd.read_csv(io.StringIO(run("history p.vf --moved scan")[1]), index_col="id")
    assert len(moved) == folds[1]["moved"]
    for line in ("status p.vf", "history p.vf", "history p.vf --id s5"):
        assert "scan" in run(line)[1]


def test_predict_extend_forget_and_undo(run: Run, state: Path, data: Data) -> None:
    new = pd.DataFrame(data.views["labs"][:5]).add_prefix("labs_")
    new.insert(0, "patient", [f"n{i}" for i in range(5)])
    new.to_csv("new.csv", index=False)
    model = viewfold.load("p.vf")
    code, out, _ = run("predict p.vf new.csv --id patient --view labs")
    found = pd.read_csv(io.StringIO(out), index_col="id")
    assert code == 0
    assert found["cluster"].tolist() == model.predict(data.views["labs"][:5], view="labs").tolist()
    line = "add p.vf new.csv --id patient --view labs --only-new"
    assert json.loads(run(f"{line} --json")[1])["folds"][0]["new"] == 5
    assert viewfold.load("p.vf").ids_.size == 165
    assert run("forget p.vf s7 n2")[0] == 0
    Path("gone.txt").write_text("s8\ns9\n")
    assert json.loads(run("forget p.vf --from gone.txt --json")[1])["samples"] == 161
    assert "cannot be taken back" in run("undo p.vf --yes")[2]
    assert run("undo p.vf --entry 3 --yes")[0] == 0  # the five; who was forgotten stays so
    assert set(model.ids_) - set(viewfold.load("p.vf").ids_) == {"s7", "s8", "s9"}
    assert run("undo p.vf --yes")[0] == 3


def test_numbers_as_ids_can_be_named_on_the_command_line(run: Run, data: Data) -> None:
    frame = pd.DataFrame(data.views["labs"]).add_prefix("x")
    frame.to_csv("labs.csv", index_label="patient")
    assert run("add p.vf labs.csv --id patient --clusters 4")[0] == 0
    assert run("forget p.vf 7")[0] == 0
    assert 7 not in viewfold.load("p.vf").ids_
    assert "Unknown samples: '7'" in run("forget p.vf 7")[2]


def test_add_makes_a_file_with_its_settings(run: Run, files: None) -> None:
    viewfold.ViewFold(4).save("empty.vf")
    assert run("status empty.vf")[1].endswith("no view yet\n")
    assert run("add p.vf labs.csv --id patient --clusters 4 --private --method fcmvc")[0] == 0
    model = viewfold.load("p.vf")
    assert type(model) is viewfold.FCMVC
    assert model.views_[0].encoder is None
    assert run("predict p.vf labs.csv --id patient")[0] == 1


@pytest.mark.usefixtures("quick_pages")
def test_report_is_written(run: Run, state: Path) -> None:
    code, out, said = run("report p.vf -o page.html --title Patients")
    assert (code, out) == (0, "")
    assert "page.html is written" in said
    assert "Patients" in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("add p.vf scan.parquet --id patient --view labs", "'labs': scan.parquet: it has no colu"),
        ("add p.vf scan.parquet --id patient --view labs", "These columns are those of"),
        ("add p.vf nothing.csv", "nothing.csv"),
        ("add p.vf text.tsv --id person", "'person'"),
        ("add p.vf text.tsv --id patient --clusters 900", "fewer than"),
        ("add q.vf text.tsv --id patient", "--clusters"),
        ("add q.vf text.tsv --id patient --clusters 4000", "fewer than"),
        ("add q.vf text.tsv --clusters four", "--clusters"),
        ("predict p.vf text.tsv --id patient", "--view"),
        ("predict p.vf text.tsv --id patient --view labs", "'labs': text.tsv: it has no column"),
        ("predict p.vf text.tsv --id patient --view x", "no view 'x'"),
        ("add p.vf labs.csv --id patient --view labs --only-new", "known already"),
        ("forget p.vf nobody", "Unknown samples"),
        ("forget p.vf S2", "Unknown samples: 'S2'. Nothing was done. Is 's2' meant?"),
        ("forget p.vf", "No ids given"),
        ("labels nothing.vf", "nothing.vf"),
        ("labels labs.csv", "not written by viewfold"),
        ("labels p.vf -o labels.docx", ".csv"),
        ("labels p.vf -o nowhere/labels.csv", "no folder"),
        ("history p.vf --id nobody", "Unknown samples"),
        ("history p.vf --moved nobody", "no view 'nobody'"),
        ("fold p.vf", "fold"),
        ("labels", "STATE.vf"),
    ],
)
def test_an_error_is_one_line_and_changes_nothing(
    run: Run, state: Path, line: str, message: str
) -> None:
    before = {p.name: p.read_bytes() for p in Path().iterdir()}
    code, out, said = run(line)
    assert code != 0
    assert out == ""
    assert said.startswith("viewfold: ")
    assert said.count("\n") == 1
    assert message in said
    after = {p.name: p.read_bytes() for p in Path().iterdir()}
    assert after.keys() - before.keys() <= {".q.vf.lock"}
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(run: Run, command: str) -> None:
    code, out, _ = run(f"{command} --help")
    assert code == 0
    assert f"viewfold {command}" in out.split("Example:")[1]


def test_help_imports_nothing_large() -> None:
    code = "import sys, viewfold.cli; print([m for m in sys.argv[1:] if m in sys.modules])"
    large = ["numpy", "pandas", "scipy", "sklearn", "duckdb", "pyarrow", "matplotlib", "jinja2"]
    done = subprocess.run([sys.executable, "-c", code, *large], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("viewfold sta", "plain,status"),
        ("viewfold add p.vf --similar", "plain,--similar-ids"),
        ("viewfold add p.vf lab", "file,lab"),
        ("viewfold status p", "file,p"),
    ],
)
def test_a_shell_completes_commands_options_and_files(typed: str, completed: str) -> None:
    asked = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    code = "import sys; sys.argv[0] = 'viewfold'; from viewfold.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **asked, "_VIEWFOLD_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [completed], done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("quick_pages")
def test_the_demo_tells_its_story_and_leaves_its_files(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = load_digits_views()  # a third of them: the example of ViewFold folds all
    digits.views = {name: X[:600] for name, X in digits.views.items()}
    digits.target = digits.target[:600]
    monkeypatch.setattr("viewfold.datasets.load_digits_views", lambda: digits)
    with monkeypatch.context() as less:  # two views, and no page: the story is below
        two = type(digits)(target=digits.target, views=dict(list(digits.views.items())[:2]))
        less.setattr("viewfold.datasets.load_digits_views", lambda: two)
        less.setattr("viewfold.web.report.write", lambda _, page, **__: page.write_text("first"))
        code, out, _ = run("demo --json")
        assert code == 0
        assert 0.5 < json.loads(out)["accuracy"] <= 1
        assert Path("report.html").read_text() == "first"
    code, out, said = run("demo")  # again, over its own files
    labels = pd.read_csv("labels.csv", index_col="id")
    model = viewfold.load("demo.vf")
    assert code == 0
    assert len(labels) == 600
    assert len(model.views_) == 6
    assert labels["cluster"].to_dict() == model.to_frame()["cluster"].to_dict()
    assert Path("report.html").stat().st_size > 10_000
    assert out.count("$ viewfold add") == 6
    assert said.count("changed cluster") == 6
    assert float(re.findall(r"\((\S+)% in the right cluster", out)[-1]) > 80
    assert out.rstrip().splitlines()[-3].strip().startswith("viewfold add my.vf")
    Path("demo.vf").unlink()
    assert "not the demo's" in run("demo")[2]


def test_unconnected_is_an_option_of_viewfold(run: Run, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3)) + 9 * np.eye(3)[np.arange(40) % 4 // 2]
    for name, first in (("a", 0), ("b", 100)):
        frame = pd.DataFrame(rows, index=[f"s{i + first}" for i in range(40)])
        frame.rename_axis("id").to_csv(tmp_path / f"{name}.csv")
    assert run("add s.vf a.csv --id id -k 2")[0] == 0
    code, _, said = run("add s.vf b.csv --id id --unconnected separate")
    assert code == 0
    assert "were not paired" in said
    assert viewfold.load(tmp_path / "s.vf").unconnected == "separate"
    assert run("add f.vf a.csv --id id -k 2 --method fcmvc")[0] == 0
    before = (tmp_path / "f.vf").read_bytes()
    code, _, said = run("add f.vf b.csv --id id --unconnected pair")
    assert code != 0
    assert "FCMVC does not know --unconnected" in said
    assert (tmp_path / "f.vf").read_bytes() == before
