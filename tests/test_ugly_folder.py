"""Every ugly file is folded or refused as docs/files.md says, and none is silently misread."""

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from io_files import dense
from test_cli import Run, run  # noqa: F401
from ugly_folder import FOLDER, Read, make

from viewfold import ViewFold

PAGE = (Path(__file__).parents[1] / "docs" / "files.md").read_text(encoding="utf-8")
ROW = re.compile(
    r"^\| `([\w-]+\.\w+)` \| .+? \| (folded|refused)(.*?) \| (?:`(.*)` )?\|$", re.MULTILINE
)
TABLE = {name: said for name, *said in ROW.findall(PAGE)}

pytest.importorskip("openpyxl")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ugly")
    make(made)
    return made


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The views that were folded."""
    views: list[Any] = []
    own = ViewFold.partial_fit

    def noted(self: ViewFold, X: Any, *args: Any, **kwargs: Any) -> ViewFold:
        views.append(X)
        return own(self, X, *args, **kwargs)

    monkeypatch.setattr(ViewFold, "partial_fit", noted)
    return views


def check_read(view: Any, expected: Read | None) -> None:
    assert expected is not None, "the page says that it is folded: what should it be read as?"
    assert view.ids.tolist() == list(expected.ids)
    assert sorted(view.features) == sorted(expected.features)
    rows = dense(replace(view, rows=replace(view.rows, fill=None)))  # with missing cells
    for j, name in enumerate(view.features):
        np.testing.assert_array_equal(rows[:, j], np.asarray(expected.features[name], float), name)


def test_the_page_has_every_file_and_the_folder_is_large_enough() -> None:
    assert TABLE.keys() == FOLDER.keys()
    assert len(FOLDER) >= 20
    assert {said[0] for said in TABLE.values()} == {"folded", "refused"}


@pytest.mark.parametrize("name", FOLDER)
def test_each_file_becomes_what_the_page_says(
    name: str,
    folder: Path,
    folded: list[Any],
    run: Run,  # noqa: F811
) -> None:
    what, more, options = TABLE[name]
    line = ["--id", "id", "--clusters", 2]
    code, _, told = run("add s.vf", folder / name, *line)
    quoted = re.findall("“(.*?)”", more)
    assert [phrase for phrase in quoted if phrase not in told] == [], told
    if what == "folded":
        assert code == 0, told
        assert ("note:" in told) == bool(quoted), told
        check_read(*folded, FOLDER[name].read)
    else:
        assert code == 1
        assert quoted, "what does the message say?"
        assert f"{folder / name}" in told
        assert not folded
        assert not Path("s.vf").exists()
    assert bool(options) == (FOLDER[name].instead is not None)
    if options:
        code, _, told = run("add s.vf", folder / name, *line, *shlex.split(options))
        assert code == 0, told
        check_read(*folded, FOLDER[name].instead)
