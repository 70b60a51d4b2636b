"""How examples are run: without those of missing packages, and pages in a folder of their own."""

from importlib.util import find_spec

import pytest

# Spark takes half a gigabyte.
collect_ignore = [] if find_spec("pyspark") else ["src/viewfold/rows/spark.py"]


@pytest.fixture(autouse=True)
def _pages_write_elsewhere(request, monkeypatch):
    """Run the examples of pages in an empty folder, because they save files."""
    if request.node.nodeid.startswith("README.md"):
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
