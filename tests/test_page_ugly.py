"""Pages of ugly models in a browser: odd ids, endless names, two views, one cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from browser_tabs import Tab
from page_models import write

from viewfold import ViewFold
from viewfold.viz import page_data

ODD = ["a\tb", "a b", '"quoted"', "line\nline", "\u202eleft"]


def model_of(ids: list[str], clusters: int, views: list[str]) -> ViewFold:
    """Views of clear clusters, in which every sample is."""
    model = ViewFold(clusters, random_state=0)
    for v, view in enumerate(views):
        rng = np.random.default_rng(v)
        X = 4 * rng.normal(size=(clusters, 4))[np.arange(len(ids)) % clusters]
        frame = pd.DataFrame(X + rng.normal(size=X.shape), ids, [f"{view} {j}" for j in range(4)])
        model.partial_fit(frame, view=view, similar_ids="new")
    return model


@pytest.fixture(scope="module")
def odd(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Two views of one cluster, with ids that cannot be seen as they are."""
    model = model_of([*ODD, *(f"p{i}" for i in range(30))], 1, ["labs", "scan"])
    tab = Tab(
        chromium, write(page_data(model, ids=True), tmp_path_factory.mktemp("odd") / "p.html")
    )
    yield tab
    tab.close()


def test_ids_are_shown_in_a_line_and_saved_to_the_letter(odd: Tab) -> None:
    odd.see(".tools button").filter(has_text="Select view").click()
    listed = odd.see(".selection .ids").inner_text()
    assert listed.count("a b") == 2
    assert " left" in listed
    assert not any(letter in listed for letter in "\t\n\u202e")
    with odd.page.expect_download() as download:
        odd.see(".selection button").filter(has_text="Save as CSV").click()
    saved = pd.read_csv(download.value.path(), dtype=str)["id"].tolist()
    assert set(ODD) <= set(saved)
    box = odd.see("input[type=search]")
    box.fill("line line")
    box.press("Enter")
    odd.see(".said").filter(has_text="line line found").wait_for()
