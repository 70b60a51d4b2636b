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
    """Two views of one cluster, with ids that cannot be seen as they are, and dates."""
    ids = [*ODD, *(f"p{i}" for i in range(30))]
    model = model_of(ids, 1, ["labs", "scan"])
    dates = {
        "day": pd.date_range("2020-02-01", periods=35),
        "month": pd.date_range("2020-02-01", periods=35, freq="100D"),
        "year": pd.date_range("1920-02-01", periods=35, freq="1000D"),
    }
    data = page_data(model, ids=True, metadata=pd.DataFrame(dates, ids))
    tab = Tab(chromium, write(data, tmp_path_factory.mktemp("odd") / "page.html"))
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


def test_dates_are_told_as_days_months_or_years(odd: Tab) -> None:
    ends = {"day": ("2020-02-01", "2020-03-06"), "month": ("2020-02", "2029-05")}
    for name, (low, high) in {**ends, "year": ("1920", "2013")}.items():
        odd.see(".tools select").select_option(label=name)
        odd.see(".legend .ramp").filter(has_text=name).wait_for()
        assert odd.see(".legend .ramp span").all_inner_texts() == [name, low, high]
    odd.see(".tools select").select_option(index=0)
