"""Systems without the module `resource`, such as Windows: methods and experiments still run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WINDOWS = """
import os, signal, sys
sys.modules["resource"] = None  # importing it fails
del os.sysconf, signal.SIGXCPU
"""


def run(code: str, *words: object) -> subprocess.CompletedProcess[str]:
    asked = [sys.executable, "-c", WINDOWS + code, *map(str, words)]
    return subprocess.run(asked, capture_output=True, text=True, check=False)


def test_baselines_run_and_know_no_limit() -> None:
    done = run(
        "from viewfold import datasets\n"
        "from viewfold_research.baselines import FMR, NEMO, _base\n"
        "assert _base.memory_limit() == sys.maxsize\n"
        "views = datasets.make_multiview(40, (5, 4), 2, random_state=0).views\n"
        "for kind in (FMR, NEMO): print(kind(2, random_state=0).fit(views).labels_.shape)\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["(40,)", "(40,)"]


def test_limits_that_cannot_be_set_are_told_once_and_the_cells_are_computed(
    bench_sets: Path, tmp_path: Path
) -> None:
    # The processes that compute are started anew, and are told the same by sitecustomize.
    (tmp_path / "sitecustomize.py").write_text(WINDOWS)
    code = f"sys.path.insert(0, {str(tmp_path)!r})\nos.environ['PYTHONPATH'] = {str(tmp_path)!r}\n"
    done = run(
        code + "from viewfold.cli import main\nfrom viewfold_research.bench.cli import app\n"
        "sys.argv = ['viewfold', *sys.argv[1:]]\nmain()\n",
        *("bench", "leaderboard", "--data", bench_sets, "--datasets", "easy", "--ratios", "0"),
        *("--methods", "ViewFold,concatenated k-means", "--jobs", "1", "--out", tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    assert "2 cells computed" in done.stderr
    assert done.stderr.count("cannot limit the memory or the CPU time of a process") == 1
