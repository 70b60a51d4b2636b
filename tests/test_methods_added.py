"""One decorated class adds a method, one decorated function an encoder: docs/extending.md, run."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator
from test_sklearn import EXPECTED_TO_FAIL

import viewfold
from viewfold import ViewFold, cli
from viewfold.metrics import accuracy
from viewfold.state import parts
from viewfold.state.registry import ENCODERS, METHODS, PARTS, Registry
from viewfold.store.check import part_problems

EXTENDING = Path(__file__).parents[1] / "docs" / "extending.md"


@pytest.fixture(scope="module", autouse=True)
def added() -> Any:
    """Run the blocks of the page; leave the registries as they were."""
    before = [(one, dict(one._known)) for one in (METHODS, ENCODERS, PARTS)]
    tags = dict(parts._tags)
    blocks = re.findall(r"```python\n(.*?)```", EXTENDING.read_text(), flags=re.DOTALL)
    module = sys.modules["extending"] = type(sys)("extending")  # so that models can be pickled
    names = vars(module)
    for block in blocks:
        if "METHODS" in block or "ENCODERS" in block:
            exec(block, names)
    yield names
    for registry, known in before:
        registry._known = known
    parts._tags = tags
    del sys.modules["extending"]


def two_views() -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=120)
    return [5 * rng.normal(size=(3, d))[y] + rng.normal(size=(120, d)) for d in (8, 12)], y


def test_the_method_of_the_page_takes_thirty_lines(added) -> None:
    blocks = re.findall(r"```python\n(.*?)```", EXTENDING.read_text(), flags=re.DOTALL)
    (block,) = [block for block in blocks if "METHODS" in block]
    code = [line for line in block.splitlines() if line.strip() and "import" not in line]
    assert len(code) <= 30


def test_an_added_method_clusters_predicts_extends_and_forgets(added) -> None:
    views, y = two_views()
    model = METHODS["Projected"](3, random_state=0)
    model.partial_fit(views[0][:100], ids=range(100), view="a")
    model.partial_fit(views[1][20:], ids=range(20, 120), view="b")
    assert accuracy(y[model.ids_], model.labels_) > 0.95
    assert accuracy(y[100:], model.predict(views[0][100:], view="a")) > 0.9
    model.extend(views[0][:2], ids=[500, 501], view="a").forget([3, 500])
    assert model.ids_.size == 120


def test_files_and_commands_know_an_added_method(added, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    views, y = two_views()
    for name, X in zip("ab", views, strict=True):
        np.save(f"{name}.npy", X)
        monkeypatch.setattr(
            sys, "argv", f"viewfold add p.vf {name}.npy -k 3 --method projected".split()
        )
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0
    model = viewfold.load("p.vf")
    assert type(model) is METHODS["Projected"]
    assert accuracy(y, model.labels_) > 0.95
    model.save("q.vf")
    found = viewfold.load("q.vf").predict(views[1], view="b")
    assert np.array_equal(found, model.predict(views[1], view="b"))


def test_an_added_encoder_serves_viewfold_and_its_files(added, tmp_path) -> None:
    views, y = two_views()
    model = ViewFold(3, encoder="signs", random_state=0).fit(dict(zip("ab", views, strict=True)))
    assert accuracy(y, model.labels_) > 0.9
    model.save(tmp_path / "p.vf")
    back = viewfold.load(tmp_path / "p.vf")
    assert np.array_equal(back.transform(views[0], view="a"), model.transform(views[0], view="a"))


def test_a_file_of_a_method_that_is_not_there_says_so(added, tmp_path) -> None:
    views, _ = two_views()
    METHODS["Projected"](3, random_state=0).fit(views).save(tmp_path / "p.vf")
    kind = METHODS._known.pop("Projected")
    try:
        with pytest.raises(viewfold.StateFileError, match=r"Projected .* the package that brings"):
            viewfold.load(tmp_path / "p.vf")
    finally:
        METHODS._known["Projected"] = kind


def test_a_method_may_be_registered_under_another_name_than_its_class(added, tmp_path) -> None:
    METHODS.register("random projections")(type("Renamed", (METHODS["Projected"],), {}))
    views, _ = two_views()
    model = METHODS["random projections"](3, random_state=0).fit(views)
    model.save(tmp_path / "p.vf")
    assert np.array_equal(viewfold.load(tmp_path / "p.vf").labels_, model.labels_)


def test_parts_without_axes_may_hold_any_finite_numbers(added) -> None:
    @parts.part("example.lookup")
    @dataclass(frozen=True)
    class Lookup:
        codes: np.ndarray
        level: np.ndarray

    good, bad = (Lookup(np.arange(3), np.array([x, 1.0])) for x in (0.5, np.inf))
    assert list(part_problems(good, {})) == []
    assert list(part_problems(bad, {})) == ["example.lookup.level is not finite"]


@pytest.mark.parametrize("name", ["ViewFold", "FCMVC"])
def test_what_viewfold_brings_along_cannot_be_replaced(name: str) -> None:
    with pytest.raises(ValueError, match="already"):
        METHODS.register(name)(ViewFold)


def test_an_unknown_encoder_is_refused_with_the_names_of_the_others(added) -> None:
    with pytest.raises(ValueError, match=r"must be one of .*'signs'.*got 'magic'"):
        ViewFold(2, encoder="magic").fit(np.eye(8))


def test_other_packages_announce_entry_points(tmp_path, monkeypatch) -> None:
    (tmp_path / "shapes.py").write_text("def circle():\n    return 'round'\n")
    meta = tmp_path / "shapes-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: shapes\nVersion: 1.0\n")
    (meta / "entry_points.txt").write_text("[example.shapes]\ncircle = shapes:circle\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    shapes: Registry[Any] = Registry("example.shapes")
    assert shapes.names() == ["circle"]
    assert "circle" in shapes
    assert "square" not in shapes
    assert shapes["circle"]() == "round"
    with pytest.raises(KeyError):
        shapes["square"]
    sys.modules.pop("shapes")


@pytest.mark.filterwarnings("ignore")
def test_an_added_method_passes_scikit_learns_checks(added) -> None:
    check_estimator(METHODS["Projected"](2, n_init=1), expected_failed_checks=EXPECTED_TO_FAIL)
