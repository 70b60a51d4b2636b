"""Messages speak the words of who reads them: options as one types them, or Python arguments."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import viewfold
from viewfold import cli

SOURCE = Path(viewfold.__file__).parent
ROWS = "".join(f"p{i},{i % 3},{i * i % 7}\n" for i in range(30))
FLAT = "".join(f"p{i},1,1\n" for i in range(30))
DUPLICATES = f"patient,a,b\n{ROWS}p3,1,2\n"
PYTHON = re.compile(
    r"\b[a-z_]+=(?!=)|partial_fit|as_views?\b|n_clusters|n_samples|keep_encoders|min_shared"
    r"|similar_ids|empty_markers|DataFrame|\bNaN\b|\bX has|X holds|Pass "
)
"""What only those can make use of who write Python."""

FILES = {
    "labs.csv": f"patient,a,b\n{ROWS}",
    "numbers.csv": "patient_id,a,b\n" + "".join(f"{i},{i % 3},2\n" for i in range(30)),
    "capitals.csv": "patient,a,b\n" + ROWS.replace("p", "P"),
    "whole.csv": "patient,a,b\n" + ROWS.replace("p", "9"),
    "other.csv": "patient,a,c\n" + ROWS,
    "narrow.csv": "patient,a\n" + "".join(f"p{i},{i % 4}\n" for i in range(30)),
    "twice.csv": DUPLICATES,
    "bare.csv": "a,b\n" + "".join(f"{i % 3}.5,{i % 5}.25\n" for i in range(30)),
    "index.csv": ",a,b\n" + ROWS,
    "unclear.csv": 'patient;a\np1;"115,499"\np2;"116,499"\n',
    "text.csv": "patient,a\np1,7\np2,low\n",
    "note.csv": "patient,note,a\n" + "".join(f"p{i},words {i},{i}\n" for i in range(30)),
    "flat.csv": "patient,a,b\n" + FLAT,
    "huge.csv": "patient,a\np1,1e200\np2,3\n",
    "inf.csv": "patient,a\np1,inf\np2,3\n",
    "marked.csv": "patient,a\n" + "".join(f"p{i},{-999 if i % 5 == 0 else i}\n" for i in range(30)),
    "empty_rows.csv": "patient,"
    + ",".join(f"c{j}" for j in range(20))
    + "\n"
    + "".join(
        f"p{i}," + ",".join("0" if i > 25 else str(j + i % 3 + 1) for j in range(20)) + "\n"
        for i in range(30)
    ),
    "gone.csv": "patient,a,b\np1,,\np2,,\n",
    "latin.csv": "patient,Größe\np1,3\np2,4\n",
    "noid.csv": "patient,a\np1,3\n,4\n",
    "list.txt": "p1",
    "foreign.vf": "this is no state",
}
COMMANDS = """
add s.vf labs.csv
add new.vf labs.csv --id patient
add new.vf labs.csv --clusters 3
add new.vf numbers.csv --clusters 3
add new.vf labs.csv --clusters 300 --id patient
add new.vf labs.csv --clusters 3 --id nobody
add new.vf labs.csv --clusters 3 --id patient --method fcmvc --unconnected pair
add new.vf labs.csv --clusters 3 --id patient --method other
add new.vf labs.csv --clusters 3 --id patient --seed 99999999999999
add new.vf labs.csv --clusters 3 --id patient --drop nothing
add new.vf labs.csv --clusters 3 --id patient --columns nothing
add new.vf labs.csv --clusters 3 --id patient --categories nothing
add new.vf labs.csv --clusters 3 --id patient --drop a,b
add new.vf labs.csv --clusters 3 --id patient --layer counts
add new.vf labs.csv --clusters 3 --id patient --encoding no-such
add new.vf labs.csv --clusters 3 --id patient --decimal ;
add new.vf labs.csv --clusters 3 --id patient --no-id
add new.vf narrow.csv --clusters 3 --id patient --method fcmvc
add new.vf flat.csv --clusters 3 --id patient
add new.vf flat.csv --clusters 3 --id patient --method fcmvc
add new.vf twice.csv --clusters 3 --id patient
add new.vf index.csv --clusters 3
add new.vf unclear.csv --clusters 1 --id patient
add new.vf text.csv --clusters 1 --id patient
add new.vf note.csv --clusters 3 --id patient
add new.vf note.csv --clusters 3 --id patient --strict
add new.vf huge.csv --clusters 1 --id patient
add new.vf inf.csv --clusters 1 --id patient
add new.vf marked.csv --clusters 1 --id patient
add new.vf empty_rows.csv --clusters 3 --id patient
add new.vf gone.csv --clusters 1 --id patient
add new.vf latin.csv --clusters 1 --id patient --encoding ascii
add new.vf noid.csv --clusters 1 --id patient
add new.vf frame.parquet --clusters 3
add new.vf spans.parquet --clusters 3 --id patient
add new.vf two.npz --clusters 3 --drop a
add new.vf two.npz --clusters 3 --view three
add new.vf one.npy --clusters 3 --id patient
add new.vf one.npy --clusters 3 --drop a
add new.vf missing.csv --clusters 3
add new.vf nothing.npy --clusters 3
add s.vf capitals.csv --id patient
add s.vf whole.csv --id patient
add s.vf bare.csv
add s.vf capitals.csv --id patient --similar-ids new --min-shared 5
add s.vf other.csv --id patient --min-shared many
add s.vf other.csv --id patient --min-shared 150%
add s.vf other.csv --id patient --min-shared -1
add rows.vf labs.csv --id patient
add rows.vf short.npy
add foreign.vf labs.csv --id patient
init s.vf
add new.vf labs.csv --id patient --clusters 0
labels empty.vf
status foreign.vf
predict empty.vf labs.csv
predict s.vf labs.csv
predict s.vf other.csv --id patient --view labs
predict s.vf narrow.csv --id patient --view labs
predict s.vf labs.csv --view nothing
predict two.vf other.csv --id patient
predict private.vf labs.csv --id patient
predict s.vf gone.csv --id patient --view labs
add s.vf labs.csv --id patient --view labs --only-new
add s.vf bare.csv --view labs --only-new
add rows.vf one.npy --only-new
add empty.vf labs.csv --id patient --only-new
add private.vf labs.csv --id patient --only-new
forget s.vf nobody
forget s.vf
forget empty.vf p1
undo s.vf
undo empty.vf
undo forgot.vf --yes
undo forgot.vf --entry 7 --yes
undo forgot.vf --to 7 --yes
history s.vf --id nobody
history s.vf --moved nothing
report empty.vf
export s.vf -o s.vf
export s.vf -o labels.txt
labels s.vf -o labels.txt
add one-sided.vf apart.csv --id patient
""".strip().splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files and states with which much can go wrong."""
    made = tmp_path_factory.mktemp("messages")
    for name, text in FILES.items():
        (made / name).write_text(text)
    (made / "latin.csv").write_bytes(FILES["latin.csv"].encode("cp1252"))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 4))
    ids = [f"p{i}" for i in range(30)]
    (made / "apart.csv").write_text("patient,c,d\n" + ROWS.replace("p", "q"))
    frame = pd.DataFrame(rows, index=pd.Index(ids, name="patient")).rename(columns=str)
    frame.to_parquet(made / "frame.parquet")
    spans = pd.Series(pd.to_timedelta(np.arange(30), "h"))
    pd.DataFrame({"patient": ids, "a": rows[:, 0], "span": spans}).to_parquet(
        made / "spans.parquet"
    )
    np.savez(made / "two.npz", one=rows, two=rows)
    np.save(made / "one.npy", rows)
    np.save(made / "short.npy", rows[:20])
    np.save(made / "nothing.npy", rows[:0])
    labs = pd.read_csv(made / "labs.csv")
    model = viewfold.ViewFold(3, random_state=0).fit({"labs": labs}, ids="patient")
    model.save(made / "s.vf")
    model.save(made / "one-sided.vf")
    model.save(made / "other.vf")
    model.fit({"labs": labs, "scan": labs}, ids="patient").save(made / "two.vf")
    viewfold.ViewFold(3).save(made / "empty.vf")
    viewfold.ViewFold(3, keep_encoders=False).fit({"labs": labs}, ids="patient").save(
        made / "private.vf"
    )
    viewfold.ViewFold(3).fit({"rows": rows}).save(made / "rows.vf")
    with viewfold.edit(made / "forgot.vf", new=viewfold.ViewFold(3)) as model:
        model.partial_fit(labs, ids="patient", view="labs")
    with viewfold.edit(made / "forgot.vf") as model:
        model.forget(["p1"])
    return made


@pytest.fixture
def run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], tuple[int, str]]:
    """Run a command; return its exit code and what it said."""
    monkeypatch.chdir(folder)

    def command(line: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["viewfold", *shlex.split(line)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        (folder / "new.vf").unlink(missing_ok=True)
        return int(ended.value.code or 0), capsys.readouterr().err

    return command


@pytest.mark.parametrize("line", COMMANDS)
def test_what_a_command_says_names_no_python_argument(
    run: Callable[[str], tuple[int, str]], line: str
) -> None:
    code, said = run(line)
    assert said.strip()
    assert code != 70, said
    assert not PYTHON.search(said), said


def _constants(module: Path) -> list[tuple[ast.Constant, bool]]:
    """Return the texts of a module that are no docstrings, and whether they are a command."""
    tree = ast.parse(module.read_text())
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    typed = {
        id(part)  # a whole command is for everybody to type
        for text in ast.walk(tree)
        if isinstance(text, ast.JoinedStr) and re.search(r"viewfold [a-z]+ ", ast.unparse(text))
        for part in text.values
    }
    return [
        (node, id(node) in typed)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


TYPED = {"command.py", "demo.py", "words.py", "_svg.py"}
"""What is of the command line, or makes words of it, besides cli."""


@pytest.mark.parametrize(
    "module",
    [
        path
        for path in SOURCE.rglob("*.py")
        if "cli" not in path.relative_to(SOURCE).parts[0]
        and not TYPED & set(path.relative_to(SOURCE).parts)
    ],
    ids=lambda path: str(path.relative_to(SOURCE)),
)
def test_the_library_speaks_of_options_to_none_who_writes_python(module: Path) -> None:
    for text, typed in _constants(module):
        assert typed or not re.search(r"(^|[\s('])--[a-z]", text.value), (text.lineno, text.value)


def test_the_same_error_names_an_argument_in_python_and_an_option_in_a_command(
    folder: Path, run: Callable[[str], tuple[int, str]]
) -> None:
    with pytest.raises(ValueError, match=r"Say ids='patient'.* or ids=False"):
        viewfold.as_view(folder / "labs.csv")
    assert "Say --id patient if it holds them, or --no-id" in run("predict s.vf labs.csv")[1]
    labs = pd.read_csv(folder / "labs.csv")
    with pytest.raises(ValueError, match="fewer than n_clusters=300"):
        viewfold.ViewFold(300).fit(labs, ids="patient")
    line = "add new.vf labs.csv --clusters 300 --id patient"
    assert "fewer than --clusters 300" in run(line)[1]


def test_what_a_message_says_to_type_helps(run: Callable[[str], tuple[int, str]]) -> None:
    for line in (
        "add other.vf capitals.csv --id patient",
        "add new.vf text.csv --clusters 1 --id patient",
        "add new.vf unclear.csv --clusters 1 --id patient",
    ):
        code, said = run(line)
        assert code == 1
        flags = "--id|--similar-ids|--categories|--decimal"
        advice = re.search(rf"({flags}) [^\s;.)]+", said)
        assert advice, said
        assert run(f"{line} {advice[0]}")[0] == 0, said


def test_a_state_without_samples_has_none_to_forget(run: Callable[[str], tuple[int, str]]) -> None:
    code, said = run("forget empty.vf p1")
    assert code == 1
    assert said.startswith("viewfold: Unknown samples: ")


def test_python_m_viewfold_is_the_command_line(folder: Path) -> None:
    line = [sys.executable, "-m", "viewfold", "status", "s.vf"]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=True)
    assert "30 samples in 3 clusters" in done.stdout
