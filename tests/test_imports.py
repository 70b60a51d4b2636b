"""What an import brings in, public names, and that the benchmark of the fold runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


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


def test_public_names_exist_and_are_documented() -> None:
    import viewfold

    for name in viewfold.__all__:
        assert getattr(viewfold, name).__doc__, name
        assert name in dir(viewfold)
    with pytest.raises(AttributeError, match="no attribute 'Fold'"):
        viewfold.Fold  # noqa: B018


@pytest.mark.slow
def test_the_benchmark_runs() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "fold.py", "--quick"],
        capture_output=True,
        text=True,
        check=True,
    )
    for part in "abcde":
        assert f"({part})" in done.stdout
    assert "|ΔZ|" in done.stdout
