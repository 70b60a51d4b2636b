"""docs/format.md describes what is in a file: every array and every tag."""

import re
from pathlib import Path

import duckdb
import numpy as np
import pytest

from viewfold import FCMVC, ViewFold

PAGE = (Path(__file__).parents[1] / "docs" / "format.md").read_text()


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_the_page_names_every_array_and_tag(kind, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    views = {
        "shifted": rng.normal(1e6, 1, size=(60, 5)),
        "counts": rng.poisson(0.05, size=(60, 200)).astype(float),
        "dense": rng.normal(size=(60, 6)),
    }
    kind(3, random_state=0).fit(views).save(tmp_path / "a.vf")
    with duckdb.connect(str(tmp_path / "a.vf"), read_only=True) as db:
        rows = db.sql("SELECT name, type, version, dtype FROM arrays").fetchall()
    for name, tag, version, _ in rows:
        assert f"`{tag}` {version}" in PAGE
        assert re.search(rf"[`/]{name.split('/')[0]}[`/]", PAGE)
        leaf = name.split("/")[-1]
        assert leaf.isdigit() or re.search(rf"[`/ ]{leaf}[`, ]", PAGE), name
    if kind is ViewFold:
        named = {name: dtype for name, _, _, dtype in rows}
        assert named["encoder/3/encode/project/weights"] == "float32"
        assert "float32" in PAGE
