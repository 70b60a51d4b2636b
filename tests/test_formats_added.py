"""Other packages can add file formats: one function, one line in their pyproject.toml."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from viewfold import as_view
from viewfold.data import files as io

EXTENDING = Path(__file__).parents[1] / "docs" / "extending.md"
X = np.random.default_rng(0).normal(size=(30, 4))


@pytest.fixture(autouse=True)
def _registry_as_it_was(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(io, "_known", dict(io._known))
    io._load_plugins.cache_clear()
    yield
    io._load_plugins.cache_clear()


def example() -> str:
    section = EXTENDING.read_text().split("## A file format")[1].split("\n## ")[0]
    code = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(code) == 1
    return code[0]


def install(folder: Path, module: str, code: str) -> None:
    """Write what pip leaves behind of a package with an entry point."""
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    section = EXTENDING.read_text().split("## A file format")[1]
    group = re.search(r'entry-points\."(.+?)"\]', section)[1]
    (info / "entry_points.txt").write_text(f"[{group}]\n{module} = {module}\n")


def test_the_example_in_the_documentation_is_short_and_reads_files(tmp_path: Path) -> None:
    assert example().count("\n") <= 30
    dump_svmlight_file(X, np.zeros(30), str(tmp_path / "words.svm"), zero_based=False)
    with pytest.raises(io.FileError, match="unknown format") as error:
        as_view(tmp_path / "words.svm")
    assert ".svm," not in str(error.value)
    exec(example(), {})
    view = as_view(tmp_path / "words.svm")
    assert view.name == "words"
    assert np.allclose(view.rows.X.toarray(), X)
    with pytest.raises(io.FileError, match="have no column 'patient'"):
        as_view(tmp_path / "words.svm", ids="patient")
    (tmp_path / "broken.svm").write_text("one two three\n")
    with pytest.raises(io.FileError, match=r"broken\.svm"):
        as_view(tmp_path / "broken.svm")
    (tmp_path / "other.xyz").touch()
    with pytest.raises(io.FileError, match=r"\.mtx, \.svm, \.libsvm"):
        as_view(tmp_path / "other.xyz")


def test_an_installed_package_adds_its_format_to_library_and_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, data = tmp_path / "site", tmp_path / "words.svm"
    site.mkdir()
    install(site, "viewfold_svmlight", example())
    dump_svmlight_file(X, np.zeros(30), str(data), zero_based=False)
    monkeypatch.syspath_prepend(site)
    assert as_view(data).shape == (30, 4)
    assert ".libsvm" in io.formats()

    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from viewfold.cli import main; main()"
    line = ["add", str(tmp_path / "p.vf"), str(data), "--clusters", "2", "--no-id"]
    done = subprocess.run(
        [sys.executable, "-c", code, str(site), *line], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "words: 30 samples × 4 features" in done.stderr


def test_packages_are_not_asked_about_files_that_viewfold_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda **_: pytest.fail("asked"))
    np.save(tmp_path / "a.npy", X)
    assert as_view(tmp_path / "a.npy").shape == X.shape


def test_a_broken_package_is_named_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "a_broken_one", "import there_is_no_such_module\n")
    install(tmp_path, "viewfold_svmlight_too", example())
    dump_svmlight_file(X, np.zeros(30), str(tmp_path / "words.svm"), zero_based=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(UserWarning, match="'a_broken_one'.*there_is_no_such_module"):
        assert as_view(tmp_path / "words.svm").shape == (30, 4)


def test_what_a_reader_returns_is_looked_at(tmp_path: Path) -> None:
    io.register(".odd")(lambda path, ids: X)
    (tmp_path / "a.odd").touch()
    with pytest.raises(TypeError, match="returned a ndarray"):
        as_view(tmp_path / "a.odd")


def test_a_reader_may_give_several_views_or_batches(tmp_path: Path) -> None:
    halves = [(np.arange(15), X[:15]), (np.arange(15, 30), X[15:])]

    @io.register(".two")
    def read(path: str, ids: str | None) -> dict[str, io.FileView]:
        return {"a": io.FileView(X), "b": io.FileView(iter(halves), features=tuple("wxyz"))}

    (tmp_path / "a.two").touch()
    assert as_view(tmp_path / "a.two", name="b").features == ("w", "x", "y", "z")
    assert np.array_equal(as_view(tmp_path / "a.two", name="b").ids, np.arange(30))
    assert list(io.read(tmp_path / "a.two")) == ["a", "b"]


@pytest.mark.parametrize("suffix", [".csv", "xyz", ".XYZ", ".gz"])
def test_endings_that_are_taken_or_no_endings_are_refused(suffix: str) -> None:
    with pytest.raises(ValueError, match=re.escape(suffix)):
        io.register(suffix)(lambda path, ids: io.FileView(X))
