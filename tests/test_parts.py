"""Every kind of part is read by a program that imported nothing else before."""

import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import viewfold
from viewfold import FCMVC, ViewFold
from viewfold.state import parts
from viewfold.state.registry import PARTS, Registry
from viewfold.store import queries

HERE = Path(__file__).parent
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5))


def table(folder: Path) -> Path:
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["ward"] = rng.choice(["ER", "ICU"], len(frame))
    frame.insert(0, "id", range(len(frame)))
    frame.loc[:3, "a"] = np.nan
    frame.to_csv(folder / "n.csv", index=False, na_rep="miss")
    return folder / "n.csv"


MODELS: dict[str, Callable[[Path], Any]] = {
    "numbers": lambda _: ViewFold(2, random_state=0).fit({"a": X}),
    "words": lambda _: ViewFold(2, scale="tfidf", random_state=0).fit(
        {"a": sparse.csr_array(np.floor(np.abs(3 * X)))}
    ),
    "counts": lambda _: ViewFold(2, scale="counts", random_state=0).fit(
        {"a": np.floor(np.abs(3 * X))}
    ),
    "deliveries": lambda _: (
        ViewFold(2, random_state=0)
        .partial_fit(X, view="a", ids=range(60))
        .partial_fit(X + 1, view="a", ids=range(60, 120))
    ),
    "linear": lambda _: FCMVC(2, random_state=0).fit({"a": X}),
    "markers": lambda folder: ViewFold(2, random_state=0).partial_fit(
        viewfold.as_view(table(folder), ids="id", empty_markers=["miss"])
    ),
    "batches": lambda folder: ViewFold(2, random_state=0).partial_fit(
        table(folder), ids="id", empty_markers=["miss"], batch="ward"
    ),
}
"""Models that have every kind of part between them; files of earlier versions have the others."""


def tags_in(path: Path) -> set[str]:
    asked = "SELECT type || '/' || version FROM arrays WHERE shape IS NULL"
    with queries.opened(path, small=("arrays",)) as (db, _):
        return {tag for (tag,) in db.sql(asked).fetchall()}


def in_a_new_process(code: str, *arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


TOGETHER = """
import os, sys, traceback
import duckdb, numpy, pandas, scipy.linalg, scipy.sparse, sklearn.base, sklearn.utils.validation
code, *arguments = sys.argv[1:]
assert not [name for name in sys.modules if name.split(".")[0] == "viewfold"]
for argument in arguments:
    if child := os.fork():
        if os.waitpid(child, 0)[1]:
            sys.exit(f"failed: {argument}")
        continue
    failed, sys.argv[1:] = 1, [argument]
    try:
        exec(code, {"__name__": "__main__"})
        failed = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(failed)
"""
"""Processes that share what takes long to import, and nothing of viewfold."""


def assert_first_failure(code: str, good: Iterable[Any], bad: Any) -> None:
    """Run code for each argument in a process of its own: only the last one fails, and is named."""
    if not hasattr(os, "fork"):
        assert "".join(in_a_new_process(code, one).stderr for one in good) == ""
        assert str(bad) in in_a_new_process(code, bad).stderr
        return
    said = in_a_new_process(TOGETHER, code, *good, bad).stderr
    assert said.startswith("Traceback"), said
    assert said.endswith(f"failed: {bad}\n"), said


def test_a_new_process_reads_every_kind_of_part(tmp_path: Path) -> None:
    files = [HERE / "formats" / "4.vf"]
    for name, make in MODELS.items():
        (folder := tmp_path / name).mkdir()
        files.append(folder / "model.vf")
        make(folder).save(files[-1])
    found = {tag for path in files for tag in tags_in(path)}
    assert found == set(PARTS.built_in), "a part that no test writes, or that the table lacks"
    load = "import sys, viewfold; viewfold.load(sys.argv[1])"
    assert_first_failure(load, files, tmp_path / "nothing.vf")


def test_the_table_of_parts_is_enough_to_find_each() -> None:
    """One process for each module, which has to define what the table says."""
    code = "import sys\nfrom viewfold.state.registry import PARTS\n"
    code += "for tag in sys.argv[1].split(): PARTS[tag]"
    of_module: dict[str, list[str]] = {}
    for tag, where in PARTS.built_in.items():
        of_module.setdefault(where.partition(":")[0], []).append(tag)
    assert_first_failure(code, map(" ".join, of_module.values()), "none/1")


def test_the_table_lists_every_part_of_viewfold() -> None:
    for found in pkgutil.walk_packages(viewfold.__path__, "viewfold."):
        if found.name.split(".")[1] in ("core", "methods", "store", "view"):
            importlib.import_module(found.name)
    ours = {
        f"{tag.type}/{tag.version}"
        for kind, tag in parts._tags.items()
        if kind.__module__.startswith("viewfold.") and not tag.type.startswith("example.")
    }
    assert ours == {tag for tag in PARTS.built_in if isinstance(PARTS[tag], type)}


def test_a_part_that_the_table_lacks_cannot_be_defined() -> None:
    with pytest.raises(
        TypeError, match=r"viewfold\.state\.registry\.PARTS does not list 'newest/1'"
    ):

        @parts.part("newest")
        @dataclass(frozen=True)
        class Newest:
            array: np.ndarray


def test_state_files_do_not_blame_themselves_for_a_part_that_nobody_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.vf"
    MODELS["numbers"](tmp_path).save(path)
    fewer = {tag: where for tag, where in PARTS.built_in.items() if tag != "moments/1"}
    monkeypatch.setattr(parts, "PARTS", Registry("viewfold.parts", fewer))
    with pytest.raises(viewfold.StateFileError, match=r"'moments/1'.*the package that") as error:
        viewfold.load(path)
    assert error.value.code == "not-usable"
    (problem,) = viewfold.verify(path).problems
    assert "damaged" not in problem


PACKAGE = """
from dataclasses import dataclass, replace
import numpy as np
from viewfold.state.parts import part
from viewfold.state.registry import ENCODERS

@part("signs.signs", axes={"middle": "d", "output": "dr"})
@dataclass(frozen=True)
class Signs:
    middle: np.ndarray
    output: np.ndarray

    def __call__(self, block):
        return np.sign(block - self.middle).astype(block.dtype) @ self.output

    def then(self, linear_map):
        return replace(self, output=self.output @ linear_map)

def learn_signs(engine, view, n_components, *, scale, seed):
    n, d = view.shape
    middle = engine.reduce(lambda block: block.sum(axis=0), view.rows) / n
    encoder = Signs(middle, np.eye(d) / np.sqrt(d))
    return encoder, engine.map(encoder, view.rows)
"""


def test_a_new_process_reads_the_parts_that_another_package_announces(tmp_path: Path) -> None:
    (tmp_path / "signs.py").write_text(PACKAGE)
    (info := tmp_path / "signs-1.0.dist-info").mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: signs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[viewfold.encoders]\nsigns = signs:learn_signs\n"
        "[viewfold.parts]\nsigns.signs/1 = signs:Signs\n"
    )
    here = "import sys, numpy as np; sys.path.insert(0, sys.argv[1]); import viewfold\n"
    fit = "viewfold.ViewFold(2, encoder='signs').fit({'a': np.random.rand(60, 4)})"
    done = in_a_new_process(f"{here}{fit}.save(sys.argv[2])", tmp_path, tmp_path / "p.vf")
    assert done.returncode == 0, done.stderr
    done = in_a_new_process(f"{here}viewfold.load(sys.argv[2])", tmp_path, tmp_path / "p.vf")
    assert done.returncode == 0, done.stderr
    without = "import sys, viewfold; viewfold.load(sys.argv[1])"
    done = in_a_new_process(without, tmp_path / "p.vf")
    assert "does not know: 'signs.signs/1'" in done.stderr
