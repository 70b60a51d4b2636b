"""docs/files.md names every format and every option, and its examples are calls that exist."""

import json
import re
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pytest
from test_cli import Run, run  # noqa: F401
from ugly_files import write_workbook

from viewfold._util.file import FILE_OPTIONS
from viewfold.cli import app
from viewfold.cli.options import FILE_FLAGS
from viewfold.data.files import _BUILT_IN

PAGE = (Path(__file__).parents[1] / "docs" / "files.md").read_text(encoding="utf-8")


def test_every_format_is_on_the_page() -> None:
    suffixes = {form.suffixes[0] for form in _BUILT_IN}
    assert suffixes <= set(re.findall(r"`(\.\w+)`", PAGE))


def test_every_option_is_on_the_page_and_on_the_command_line() -> None:
    names = set(FILE_OPTIONS)
    assert set(FILE_FLAGS) == names
    for command in ("add", "inspect", "predict"):
        there = app.commands[command].params
        flags = {one.opts[0] for one in there if one.name in names}
        assert len(flags) == len(names)
    table = re.findall(r"^\| `(--[\w-]+)[^|]*\| `(\w+)=", PAGE, re.MULTILINE)
    assert {flag for flag, _ in table} == flags
    assert {name for _, name in table} == names


def test_sheets_and_representations_can_be_named_on_the_command_line(
    run: Run,  # noqa: F811
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    cells = anndata.AnnData(rng.normal(size=(30, 4)))
    cells.obs_names = [f"p{i}" for i in range(30)]
    cells.obsm["X_pca"] = rng.normal(size=(30, 2))
    cells.write_h5ad(tmp_path / "cells.h5ad")
    code, out, said = run("add s.vf cells.h5ad --rep X_pca --clusters 3 --json")
    assert code == 0, said
    assert json.loads(out)["folds"][0]["features"] == 2
    code, _, said = run("predict s.vf cells.h5ad --layer raw")
    assert code == 1
    assert "has no layer 'raw'" in said
    pytest.importorskip("openpyxl")
    rows = [["id", "x", "y"], *[[f"p{i}", *rng.normal(size=2)] for i in range(30)]]
    write_workbook(tmp_path / "all.xlsx", labs=rows, notes=[["to do"]], scan=rows)
    code, _, said = run("add s.vf all.xlsx --id id")
    assert code == 1
    assert "sheet 'notes'" in said
    assert "choose other sheets with --sheet …" in said
    code, out, said = run("add s.vf all.xlsx --id id --sheet labs --sheet scan --json")
    assert [fold["view"] for fold in json.loads(out)["folds"]] == ["labs", "scan"]
    code, _, said = run("add s.vf cells.h5ad --sheet labs")
    assert "--sheet " in said
    assert "says nothing about .h5ad files" in said


def test_the_example_of_views_in_parts_runs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    section = PAGE.partition("## Views in parts")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    held: dict[str, Any] = {}
    exec(code, held)
    assert held["labels"].tolist() == held["clusters"]["cluster"].tolist()
    assert held["clusters"].index.tolist() == held["labs"]["patient"].tolist()
