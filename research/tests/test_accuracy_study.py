"""benchmarks/accuracy.py and choose.py: every number is of the source, mask and choice it names."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import accuracy
import choose
from quality import cells, choice, runs, sets, table
from quality.cells import HERE, Cell, Results
from quality.study import Study
from viewfold._util import constants

NAMES = ("clear", "odd")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two small sets: the views of the second have an odd number of samples, and one lacks some."""
    rng = np.random.default_rng(0)
    for name, n in zip(NAMES, (60, 63), strict=True):
        y = np.arange(n) % 3
        views = [4 * rng.normal(size=(3, d))[y] + rng.normal(size=(n, d)) for d in (5, 4)]
        if name == "odd":
            views[1][:4] = np.nan
        np.savez(tmp_path / f"{name}.npz", view_0=views[0], view_1=views[1], y=y)
    return tmp_path


def printed(script: object, folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    common = ["--data", str(folder), "--sets", *NAMES, "--draws", "1"]
    sys.argv = ["script", *common, "--results", str(folder / "kept.jsonl"), *words]
    script.main()  # type: ignore[attr-defined]
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def _arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [])


def test_table_has_every_cell_and_computes_none_twice(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = printed(accuracy, folder, capsys, "--part", "table", "targets")
    for name in NAMES:
        for ratio in ("0%", "30%", "50%"):
            assert len(re.findall(rf"^\| {name} \| {ratio} \|", first, re.MULTILINE)) == 1
    row = next(line for line in first.splitlines() if line.startswith("| clear | 0% |"))
    assert row.count("/") == 2 * 6, "ACC/NMI/ARI of ViewFold, three rivals and two single views"
    assert "| average of 2 | 50% |" in first
    assert "not measured" in first

    def never(*_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(runs, "run", never)
    assert printed(accuracy, folder, capsys, "--part", "table", "targets") == first
    lines = (folder / "kept.jsonl").read_text().splitlines()
    assert len({json.dumps(json.loads(line)[:2]) for line in lines}) == len(lines)


def test_missing_cells_are_compared_with_imputers_on_the_same_cells(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = printed(accuracy, folder, capsys, "--part", "cells")
    for name in (*NAMES, "average of 2"):
        rows = re.findall(rf"^\| {name} \| \d0 % \|.*$", said, re.MULTILINE)
        assert len(rows) == 3
        assert all(row.count("/") == 5 for row in rows), "ACC/NMI of complete cells and four ways"
    assert said.count("kept") + said.count("**missed**") == 3 * 5 + 1
    data, seen = sets.load(folder, "odd"), []
    for fill in runs.FILLS:
        before = runs.FILLS[fill]
        runs.FILLS[fill] = lambda X, before=before: seen.append(np.isnan(X)) or before(X)
        try:
            runs.gaps(data, data.absent, {"cells": "30-1", "fill": fill})
        finally:
            runs.FILLS[fill] = before
    assert all(np.array_equal(seen[i], seen[i % 2]) for i in range(len(seen)))


def test_choice_moves_every_constant_and_leaves_them_as_they_were(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    some, every = choice.constants()[:2], choice.constants
    monkeypatch.setattr(choice, "constants", lambda: some)
    switches = {"encoder=linear": "principal directions only", "UNKNOWN=1": "of another tree"}
    monkeypatch.setattr(choice, "SWITCHES", switches)
    said = printed(choose, folder, capsys)
    assert every()[:2] == some
    assert len(choice.variants()) == 1 + 2 * 2 + 1
    for constant in choice.constants():
        assert f"| {constant.name} | {constant.value} |" in said
    assert f"Of {len(choice.variants())} variants" in said
    assert re.search(r"^\| ACC \| .* \| .* \| .* \|$", said, re.MULTILINE)


def test_constants_are_moved_while_a_method_runs(folder: Path) -> None:
    name = next(c.name for c in choice.constants() if "NEIGHBOURS" in c.name)
    data = sets.load(folder, "clear")
    seen: list[float] = []

    class Spy:
        def __init__(self, *_: object, **__: object) -> None:
            seen.append(getattr(constants, name))
            raise RuntimeError("seen")

    with pytest.raises(RuntimeError, match="seen"):
        runs.folded(Spy, data, data.absent, {name: "2"})
    assert seen == [2]
    assert "error" in runs.run("ViewFold", "NO_SUCH_CONSTANT=2", data, data.absent)


def test_left_out_set_has_no_vote() -> None:
    a, b = np.zeros((3, 3, 3)), np.zeros((3, 3, 3))
    b[0] = 9  # b is better on the first set only, by far
    a[1:] = 1
    average, which = choice.left_out({"": a, "b": b}, measure=0)
    assert which == ["", "b", "b"]
    assert np.allclose(average, 0)


def test_digest_is_of_code_and_not_of_words_about_it(tmp_path: Path) -> None:
    tree = tmp_path / "viewfold"
    shutil.copytree(HERE, tree, ignore=shutil.ignore_patterns("__pycache__"))
    kept = {method: cells.digest(HERE, method) for method in runs.METHODS}
    module = tree / "rows" / "linalg.py"
    text = module.read_text()
    module.write_text('"""Other words."""\n# and more' + text.split('"""', 2)[2])
    (tree / "cli" / "more.py").write_text("x = 1")
    assert {method: cells.digest(tree, method) for method in kept} == kept
    cells.digest.cache_clear()
    cells.code.cache_clear()
    module.write_text(text + "\nx = 1\n")
    changed = {method for method in kept if cells.digest(tree, method) != kept[method]}
    assert changed == set(kept) - {"NEMO", "NEMO of iMML", "k-means"}


def test_what_is_no_part_of_a_fold_is_there_and_changes_no_digest_but_of_suggest(
    tmp_path: Path,
) -> None:
    assert [name for name in cells.NO_PART_OF_A_FOLD if not (HERE / name).exists()] == []
    tree = tmp_path / "viewfold"
    shutil.copytree(HERE, tree, ignore=shutil.ignore_patterns("__pycache__"))
    for name in cells.NO_PART_OF_A_FOLD:
        path = tree / name
        with (path / "__init__.py" if path.is_dir() else path).open("a") as module:
            module.write("\nx = 1\n")
    changed = {m for m in runs.METHODS if cells.digest(tree, m) != cells.digest(HERE, m)}
    assert changed == {"suggest"}


def test_before_is_computed_by_the_other_tree(folder: Path) -> None:
    tree = folder / "src" / "viewfold"
    shutil.copytree(HERE, tree, ignore=shutil.ignore_patterns("__pycache__"))
    with (tree / "estimators" / "__init__.py").open("a") as module:
        module.write("\nViewFold.labels_ = property(lambda self: self.ids_ * 0)\n")
    results = Results(folder / "kept.jsonl")
    study = Study(folder, NAMES, results, tree, draws=1)
    cell = Cell("ViewFold", "clear")
    study.compute_before([cell])
    assert not results.of(cell)
    study.compute([cell])
    assert results.of(cell, tree)["ACC"] == pytest.approx(100 / 3)
    assert results.of(cell)["ACC"] > 90


def test_masks_lack_what_is_absent_and_keep_everybody(folder: Path) -> None:
    data = sets.load(folder, "odd")
    assert data.absent.sum() == 4
    assert not data.complete
    for ratio in sets.RATIOS:
        gone = sets.mask(data, ratio, 0)
        assert gone[data.absent].all()
        assert not gone.all(axis=1).any()
    assert np.array_equal(sets.mask(data, 0.0, 0), data.absent)
    whole = sets.DataSet(data.views, data.y, np.zeros_like(data.absent))
    assert sets.mask(whole, 0.5, 0).sum(axis=0).tolist() == [31, 31], "half of 63 cannot be"


def test_rows_of_zeros_are_absent_where_the_set_says_so(folder: Path) -> None:
    y = np.arange(12) % 3
    X = np.ones((12, 2))
    X[[0, 5]] = 0
    Z = np.ones((12, 2))
    Z[0] = 0
    np.savez(folder / "bdgp.npz", view_0=X, view_1=Z, y=y)
    data = sets.load(folder, "bdgp")
    assert len(data.y) == 11, "one sample is in no view"
    assert np.argwhere(data.absent).tolist() == [[4, 0]]


def test_rivals_count_by_their_best_and_cells_behind_are_told(folder: Path) -> None:
    results = Results(folder / "kept.jsonl")
    study = Study(folder, NAMES, results, draws=1)
    for name in NAMES:
        for ratio in sets.RATIOS:
            for method, variant, acc in (
                ("ViewFold", "", 90.0),
                ("FCMVC", "", 93.0),
                ("k-means", "", 50.0),
                ("NEMO", "scale=zscore", 80.0),
                ("NEMO", "scale=unit", 95.0 if ratio == 0.3 else 10.0),
            ):
                cell = Cell(method, name, ratio, 0, variant)
                value = dict.fromkeys(runs.MEASURES, acc)
                results.found[cells.digest(HERE, method), cell] = value
    found = table.columns(study)
    assert found["NEMO"][0, :, 0].tolist() == [80, 95, 80]
    assert table.behind(study, found) == [f"{n} 30%: 90.0 against 95.0 (NEMO)" for n in NAMES]
    assert table.against(found, "NEMO") == (4, 0, 2)


@pytest.mark.parametrize(
    ("variant", "views"),
    [("order=1-0", [4, 5]), ("view=1", [4]), ("noise=1-first-0", [100, 5, 4]), ("names=3", [5, 4])],
)
def test_variants_change_what_they_name(folder: Path, variant: str, views: list[int]) -> None:
    data = sets.load(folder, "clear")
    word, value = variant.split("=")
    found, gone, ids, rest = runs.changed(data, data.absent, {word: value, "k": "v"})
    assert [X.shape[1] for X in found] == views
    assert gone.shape == (60, len(views))
    assert (ids.dtype.kind == "U") == (word == "names")
    assert len(set(ids.tolist())) == 60
    assert rest == {"k": "v"}
    gone = sets.mask(data, 0.3, 0)[:, ::-1] if word != "view" else data.absent
    assert runs.run("ViewFold", variant, data, gone)["ACC"] > 90, "labels are of the rows"
