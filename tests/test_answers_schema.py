"""docs/reference/answers.schema.json: every command with --json answers as it says."""

import contextlib
import io
import json
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from report_models import few_draws  # noqa: F401

from viewfold import cli

DOCS = Path(__file__).parents[1] / "docs"
ANSWERS = json.loads((DOCS / "reference" / "answers.schema.json").read_text(encoding="utf-8"))
KINDS = {
    "integer": int,
    "number": (int, float),
    "string": str,
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}
# Each command with the answer that it gives. A state goes through all of them.
COMMANDS = {
    "inspect minerals.csv --id bottle": "inspect",
    "add w.vf minerals.csv --id bottle --clusters auto --keep 9": "add",
    "inspect phenols.csv --id bottle --state w.vf": "inspect",
    "add w.vf phenols.csv --id bottle --max-moved 1%": "add",
    "labels w.vf": "labels",
    "labels w.vf --least-certain 2": "labels",
    "labels w.vf -o labels.csv": "written",
    "status w.vf --stability": "status",
    "explain w.vf": "explain",
    "explain w.vf --cluster 0": "explain",
    "explain w.vf --id w004": "explain-id",
    "predict w.vf new.csv --id bottle --view minerals": "predict",
    "add w.vf new.csv --id bottle --view minerals --only-new": "add",
    "refresh w.vf minerals.csv --id bottle": "refresh",
    "suggest w.vf --range 2-4": "suggest",
    "suggest w.vf --range 2-4 -o scores.csv": "written",
    "convert w.vf before.vfd --buckets 6": "convert",
    "recluster w.vf --clusters 4": "recluster",
    "rename w.vf 0 light": "rename",
    "labels w.vf --min-confidence 0.99": "labels",
    "history w.vf": "history",
    "history w.vf --id w004": "history-id",
    "history w.vf --events": "history-events",
    "history w.vf --moved phenols": "history-moved",
    "verify w.vf": "verify",
    "report w.vf -o report.html": "report",
    "export w.vf -o all.csv": "export",
    "export w.vf --encoder w.vfe": "export-encoder",
    "diff before.vfd w.vf --max-moved 1%": "diff",
    "undo w.vf --yes": "undo",
    "undo w.vf --to 3 --yes": "undo",
    "forget w.vf w004": "forget",
    "labels nobody.vf": "error",
}
ELSEWHERE = {
    "demo": "takes seconds: tests/test_cli.py has its answer",
    "ui": "is a server",
}


def faults(value: Any, schema: dict[str, Any], where: str = "answer") -> list[str]:
    """Say where a value is not as a schema says; a field that the schema lacks is a fault."""
    kinds = schema.get("type", list(KINDS))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(isinstance(value, KINDS[kind]) for kind in kinds) or (
        isinstance(value, bool) and "boolean" not in kinds
    ):
        return [f"{where} is {value!r}, not {kinds}"]
    found = []
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        found += [
            f"{where} lacks {name}" for name in schema.get("required", []) if name not in value
        ]
        for name, field in value.items():
            if name in known or others is not None or not known:
                found += faults(field, known.get(name, others or {}), f"{where}.{name}")
            else:
                found.append(f"{where} has {name}, of which the schema knows nothing")
    if isinstance(value, list) and "items" in schema:
        found += [
            fault
            for i, one in enumerate(value[:9])
            for fault in faults(one, schema["items"], f"{where}[{i}]")
        ]
    return found


def answered(command: str) -> Any:
    said = io.StringIO()
    before, sys.argv = sys.argv, ["viewfold", *shlex.split(command), "--json"]
    try:
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.suppress(SystemExit),
        ):
            cli.main()
    finally:
        sys.argv = before
    return json.loads(said.getvalue())


def test_faults_are_found() -> None:
    schema = ANSWERS["$defs"]["forget"]
    good = {"file": "w.vf", "forgotten": 3, "samples": 168}
    assert not faults(good, schema)
    assert not faults({**good, "notes": ["x"]}, schema)
    for wrong in ({"forgotten": "3"}, {"forgotten": True}, {"more": 1}, {"notes": [1]}):
        assert faults({**good, **wrong}, schema)
    assert faults({"file": "w.vf"}, schema)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_pages")
def test_every_answer_is_as_the_schema_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(DOCS / "start" / "make_wines.py"), run_name="__main__")
    minerals = pd.read_csv("minerals.csv", index_col="bottle")
    minerals.head(3).rename("new {}".format).to_csv("new.csv")
    for command, answer in COMMANDS.items():
        found = answered(command)
        assert not faults(found, ANSWERS["$defs"][answer]), command
        if answer != "error":
            assert "error" not in found, (command, found)


def test_a_copy_of_an_anndata_answers_as_the_schema_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anndata = pytest.importorskip("anndata")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(DOCS / "start" / "make_wines.py"), run_name="__main__")
    anndata.AnnData(pd.read_csv("minerals.csv", index_col="bottle")).write_h5ad("cells.h5ad")
    answered("add w.vf cells.h5ad --clusters 3")
    assert not faults(answered("export w.vf cells.h5ad"), ANSWERS["$defs"]["export-copy"])


def test_every_command_has_an_answer() -> None:
    names = set(cli.app.commands) - set(ELSEWHERE)
    assert names == {command.split()[0] for command in COMMANDS}
    assert set(ANSWERS["$defs"]) == {*COMMANDS.values(), "export-copy", "demo"}
