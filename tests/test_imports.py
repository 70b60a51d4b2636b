"""What an import brings in, and public names."""

import json
import subprocess
import sys

import pytest


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_import_brings_in_no_heavy_and_no_optional_package() -> None:
    loaded = json.loads(
        run("import sys, json, viewfold; print(json.dumps([m.split('.')[0] for m in sys.modules]))")
    )
    assert not {"numpy", "scipy", "sklearn", "pandas", "narwhals"} & set(loaded)
    loaded = json.loads(
        run(
            "import sys, json; from viewfold import FCMVC; FCMVC(2).fit([[0., 1], [2, 3], [1, 5]]);"
            "print(json.dumps([m.split('.')[0] for m in sys.modules]))"
        )
    )
    assert not {"anndata", "mudata", "dask", "h5py", "polars", "matplotlib"} & set(loaded)


FROM_ELSEWHERE = (
    "import sys, json\n"
    "{0}\n"
    "found = dict(sys.modules)\n"
    "files = [(name, getattr(held, '__file__', None) or '') for name, held in found.items()]\n"
    "out = {{n.partition('.')[0] for n, f in files if 'site-packages' in f}}\n"
    "print(json.dumps(sorted(out)), file=sys.stderr)"
)


def elsewhere(code: str) -> set[str]:
    """Return the packages of other people that a program has imported when it ends."""
    run = [sys.executable, "-c", FROM_ELSEWHERE.format(code)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1])) - ALWAYS


ALWAYS = {"_distutils_hack", "_virtualenv", "a1_coverage", "coverage"}
"""What an environment may import whenever Python starts."""


def test_importing_viewfold_imports_nothing_else() -> None:
    """Why it takes no time: neither a package of others, nor any of our own."""
    assert elsewhere("import viewfold") <= {"viewfold"}
    ours = run("import sys, viewfold; print(sorted(m for m in sys.modules if 'viewfold' in m))")
    assert ours.strip() == "['viewfold', 'viewfold._util', 'viewfold._util.version']"


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["add", "--help"]])
def test_help_imports_click_and_nothing_else(words: list[str]) -> None:
    """Why it comes at once: neither numbers, nor what draws progress."""
    found = elsewhere(
        f"from viewfold.cli import main\nsys.argv = {['viewfold', *words]}\n"
        "try: main()\nexcept SystemExit: pass"
    )
    assert "click" in found
    assert found <= {"viewfold", "click", "colorama"}


def test_public_names_exist_and_are_documented() -> None:
    import viewfold

    for name in viewfold.__all__:
        assert getattr(viewfold, name).__doc__, name
        assert name in dir(viewfold)
    with pytest.raises(AttributeError, match="no attribute 'Fold'"):
        viewfold.Fold  # noqa: B018
