"""How examples are run: pages in a folder of their own."""

import pytest


@pytest.fixture(autouse=True)
def _pages_write_elsewhere(request, monkeypatch):
    """Run the examples of pages in an empty folder, because they save files."""
    if request.node.nodeid.startswith("README.md"):
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
