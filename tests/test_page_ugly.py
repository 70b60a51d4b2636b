"""Pages of ugly models in a browser: odd ids, endless names, two views, one cluster."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from browser_tabs import Tab
from page_models import write
from report_models import few_draws  # noqa: F401

from viewfold import ViewFold
from viewfold.web import page_data

LONG = "measured in the second of five hospitals " * 120
"""A name that would fill a page."""
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
    assert (listed.count("a b"), listed.count(r"a\tb")) == (1, 1)  # neither is taken for the other
    assert r"\u202eleft" in listed
    assert not any(letter in listed for letter in "\t\n\u202e")
    with odd.page.expect_download() as download:
        odd.see(".selection button").filter(has_text="Save as CSV").click()
    saved = pd.read_csv(download.value.path(), dtype=str)["id"].tolist()
    assert set(ODD) <= set(saved)
    box = odd.see("input[type=search]")
    box.fill(r"line\nline")  # as it is shown
    box.press("Enter")
    odd.see(".said").filter(has_text=r"line\nline found").wait_for()


def test_dates_are_told_as_days_months_or_years(odd: Tab) -> None:
    ends = {"day": ("2020-02-01", "2020-03-06"), "month": ("2020-02", "2029-05")}
    for name, (low, high) in {**ends, "year": ("1920", "2013")}.items():
        odd.see(".tools select").select_option(label=name)
        odd.see(".legend .ramp").filter(has_text=name).wait_for()
        assert odd.see(".legend .ramp span").all_inner_texts() == [name, low, high]
    odd.see(".tools select").select_option(index=0)


def test_two_views_are_in_their_order_and_no_dot_is_cut(odd: Tab) -> None:
    odd.see("#coverage svg").nth(1).wait_for()
    names, dots, height = odd.page.evaluate(
        """() => {
            const svg = document.querySelectorAll("#coverage svg")[1];
            const middle = (mark) => svg.getBoundingClientRect().top * -1 +
                (mark.getBoundingClientRect().top + mark.getBoundingClientRect().bottom) / 2;
            const texts = [...svg.querySelectorAll("text")];
            const names = texts.map((text) => [middle(text), text.firstChild.textContent]);
            const dots = [...svg.querySelectorAll("circle")].map(middle);
            return [names.sort(([a], [b]) => a - b), dots, Number(svg.getAttribute("height"))];
        }"""
    )
    assert [name for _, name in names] == ["\u2068labs\u2069 · 35", "\u2068scan\u2069 · 35"]
    assert all(5 <= dot <= height - 5 for dot in dots)


def test_effects_of_nothing_are_no_bars(odd: Tab) -> None:
    """One cluster differs from all samples in nothing."""
    widths = odd.see('#features [aria-label^="Strongest"] rect').evaluate_all(
        "bars => bars.map((bar) => Number(bar.getAttribute('width')))"
    )
    assert len(widths) == 8
    assert max(widths) < 2


@pytest.fixture(scope="module")
def endless(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A phone with a page on which every name is endless, and they begin alike."""
    ids = [f"{LONG}{i}" for i in range(60)]
    model = model_of(ids, 3, [f"{LONG}{v}" for v in range(12)])
    for c in range(3):
        model.rename(c, "M" * 59 + str(c))
    table = pd.DataFrame({LONG: [f"{LONG}{i % 3}" for i in range(60)]}, ids)
    data = page_data(model, ids=True, metadata=table, since=1)
    file = write(data, tmp_path_factory.mktemp("endless") / "page.html")
    tab = Tab(chromium, file, 390, reduced_motion="reduce")
    yield tab
    tab.close()


def test_endless_names_are_cut_and_nothing_is_beyond_the_edge(endless: Tab) -> None:
    endless.see(".tools select").first.select_option(index=3)
    box = endless.see("input[type=search]")
    box.fill("measured")
    box.press("Enter")
    endless.see(".selection h3").wait_for()
    endless.see("#clusters tbody button.choose").first.click()
    beyond = endless.page.evaluate(
        """() => [...document.querySelectorAll("#page *")].filter((element) => {
            if (element.closest("svg, .map, thead, datalist")) return false;
            const around = element.parentElement.closest("section, header, footer");
            const end = (one) => one.getBoundingClientRect().right;
            return around && end(element) > end(around) + 0.5;
        }).map((element) => element.outerHTML.slice(0, 90))"""
    )
    assert beyond == []
    sideways = endless.see(".table").evaluate_all(
        "all => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length"
    )
    assert sideways == 0
    endless.shot("endless", whole=True)
    assert endless.page.evaluate("document.documentElement.scrollHeight") < 14_000


def test_names_that_begin_alike_are_told_apart(endless: Tab) -> None:
    labels = (
        endless.see("#coverage svg")
        .nth(1)
        .locator("text")
        .evaluate_all("all => all.map((text) => text.firstChild.textContent)")
    )
    assert all("\u2026" in label for label in labels)
    assert [label.split()[-3] for label in labels] == [f"{v}\u2069" for v in range(12)]


def test_names_of_steps_do_not_cover_each_other(endless: Tab) -> None:
    boxes = endless.see("#flow svg text").evaluate_all(
        """all => all.filter((text) => text.textContent.includes("\u2026"))
            .map((text) => text.getBoundingClientRect()).map(({left, right}) => [left, right])"""
    )
    boxes.sort()
    assert len(boxes) == 12
    assert all(one[1] < other[0] for one, other in pairwise(boxes))
