"""The page in a browser: a choice is seen everywhere, nothing is asked for, markup is text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_tabs import NO_WEBGL, Tab
from page_models import markup, named_data, tiled, write
from report_models import few_draws  # noqa: F401

from viewfold.web import PageData

FIGURES = ("flow", "features", "views", "confidence")
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def data() -> PageData:
    return named_data()


@pytest.fixture(scope="module")
def file(data: PageData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(data, tmp_path_factory.mktemp("pages") / "page.html")


@pytest.fixture(scope="module")
def opened(chromium: Any, file: Path) -> Iterator[Tab]:
    tab = Tab(chromium, file)
    tab.shot("page", whole=True)
    yield tab
    tab.close()


@pytest.fixture
def tab(opened: Tab) -> Iterator[Tab]:
    """The page, with nothing chosen; after every test it must have done nothing wrong."""
    opened.page.keyboard.press("Escape")
    opened.see(".tools button").filter(has_text="Whole map").click()
    yield opened
    assert not opened.wrong


def selected(tab: Tab) -> str:
    return str(tab.see(".selection h3").inner_text())


# ---- choosing -----------------------------------------------------------------------------------


def test_cluster_chosen_in_the_table_is_highlighted_in_every_figure_until_escape(tab: Tab) -> None:
    row = tab.see("#clusters tbody button.choose").nth(1)
    row.click()
    assert row.get_attribute("aria-pressed") == "true"
    assert tab.see('.map .tag.on[data-cluster="1"]').count() == 1
    assert selected(tab) == "Cluster 1"
    for figure in FIGURES:
        marks = tab.see(f"#{figure} svg [data-cluster]")
        told = marks.evaluate_all(
            "all => all.map(m => [m.dataset.cluster, m.getAttribute('class')])"
        )
        assert {words for words, _ in told if words} > {"1"}, figure
        for words, name in told:
            assert name == ("on" if "1" in words.split() else "dim"), (figure, words)
    tab.shot("cluster")
    tab.page.keyboard.press("Escape")
    assert tab.see(".on, .dim").count() == 0
    assert tab.see("[data-cluster][aria-pressed=true]").count() == 0


@pytest.mark.parametrize("figure", FIGURES)
def test_cluster_clicked_in_a_figure_is_chosen_in_the_table(tab: Tab, figure: str) -> None:
    mark = tab.see(f'#{figure} svg [data-cluster="3"]').first
    mark.dispatch_event("click", {"bubbles": True})
    assert tab.see("#clusters tr.on").count() == 1
    assert tab.see('#clusters tr.on[data-cluster="3"]').count() == 1


def test_features_shown_are_those_of_the_chosen_cluster(tab: Tab, data: PageData) -> None:
    tab.see("#clusters tbody button.choose").nth(3).click()
    first = next(row for row in data.summary["features"]["top"] if row["cluster"] == 3)
    drawn = '[role=group][aria-label="Strongest features of cluster 3"]'
    bar = tab.see(f"{drawn} svg [data-cluster] title").first
    assert bar.text_content().startswith(f"{first['feature']} · {first['view']}: mean ")


def on_screen(tab: Tab, data: PageData) -> np.ndarray:
    """Where the points are in pixels of the map, while the whole of it is seen."""
    area = tab.box(".map")
    scale = 0.93 * min(area["width"], area["height"]) / 2
    x, y = (data.columns[name].astype(float) / 32767.5 - 1 for name in "xy")
    return np.stack([area["width"] / 2 + x * scale, area["height"] / 2 - y * scale], axis=1)


def test_lasso_selects_the_samples_inside_it(tab: Tab, data: PageData) -> None:
    places = on_screen(tab, data)
    low, high = places.min(axis=0) - 9.5, places.max(axis=0) + 9.5
    tab.lasso([(low[0], low[1]), (high[0], low[1]), (low[0], high[1])], "Shift")
    inside = np.flatnonzero(((places - low) / (high - low)).sum(axis=1) < 1)  # of the triangle
    assert 40 < inside.size < 200
    assert selected(tab) == f"{inside.size} samples selected"
    ids = data.columns["ids"].decode().split("\n")
    listed = tab.see(".selection .ids").inner_text()
    assert listed.startswith(", ".join(ids[i] for i in inside[:100]))
    tab.shot("lasso")
    with tab.page.expect_download() as download:
        tab.see(".selection button").filter(has_text="Save as CSV").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[0] for line in lines] == ["id", *(ids[i] for i in inside)]
    tab.see(".map").dblclick(position={"x": 3, "y": 3})
    assert tab.see(".selection h3").count() == 0


def test_lasso_by_its_button_needs_no_key(tab: Tab) -> None:
    button = tab.see(".tools button").filter(has_text="Lasso")
    button.click()
    tab.lasso_all()
    button.click()
    assert selected(tab) == "240 samples selected"


def test_search_finds_a_sample_and_says_when_there_is_none(tab: Tab, data: PageData) -> None:
    box = tab.see("input[type=search]")
    box.fill(markup(1, "p17"))
    assert tab.see("datalist option").first.get_attribute("value").startswith(markup(1, "p17"))
    box.press("Enter")
    tab.see(".selection h3").wait_for()
    assert selected(tab) == markup(1, "p17")
    at = data.columns["ids"].decode().split("\n").index(markup(1, "p17"))
    assert tab.see("#clusters tr.on").get_attribute("data-cluster") == str(
        data.columns["cluster"][at]
    )
    tab.shot("search")
    box.fill("nobody")
    box.press("Enter")
    tab.see(".said").filter(has_text="No sample nobody").wait_for()
    box.fill("")


def test_tooltip_tells_of_the_sample_under_the_pointer(tab: Tab, data: PageData) -> None:
    x, y = on_screen(tab, data)[5]
    area = tab.box(".map")
    tab.page.mouse.move(area["x"] + x, area["y"] + y)
    text = tab.see(".tooltip").inner_text()
    assert re.search(r"cluster \d", text)
    assert re.search(r"confidence [01]\.\d\d", text)
    assert "views 2 of 3" in text
    assert "age " in text
    assert "<img src=x onerror=alert(1)>p" in text
    tab.page.mouse.move(1, 1)
    assert tab.see(".tooltip").is_hidden()


def test_map_can_be_coloured_by_everything_and_says_what_colours_mean(tab: Tab) -> None:
    choice = tab.see(".tools select")
    options = choice.locator("option").all_inner_texts()
    ward = markup(6, "ward")
    assert options == ["cluster", "confidence", "number of views", ward, "age", "novelty"]
    before = tab.see(".map").screenshot()
    for option in options[1:]:
        choice.select_option(label=option)
        said = ward[:3] if option == ward else option
        place = ".legend ul.levels" if option == ward else ".legend .ramp"
        tab.see(place).wait_for()
        if option != ward:
            tab.see(place).filter(has_text=said).wait_for()
        tab.page.wait_for_timeout(100)
        after = tab.see(".map").screenshot()
        assert after != before, option
        before = after
    tab.shot("coloured")
    choice.select_option(label="cluster")


# ---- for everybody ------------------------------------------------------------------------------


def test_keys_are_enough(tab: Tab) -> None:
    press = tab.page.keyboard.press
    active = "document.activeElement"
    tab.see("nav a").first.focus()
    for _ in range(60):
        press("Tab")
        if tab.page.evaluate(f"{active}.className") == "choose":
            break
    outline = tab.page.evaluate(f"getComputedStyle({active}).outline")
    assert "2px" in outline
    assert "solid" in outline
    press("Enter")
    press("ArrowDown")
    assert selected(tab) == "Cluster 1"
    press("End")
    assert selected(tab) == "Cluster 3"
    press("Escape")
    tab.see(".map").focus()
    place = "document.querySelector('.tag').style.transform"
    before = tab.page.evaluate(place)
    press("+")
    press("ArrowLeft")
    tab.page.wait_for_function(f"{place} !== {before!r}")
    press("0")
    tab.page.wait_for_function(f"{place} === {before!r}")
    tab.see(".tools button").filter(has_text="Select view").focus()
    press("Enter")
    assert selected(tab) == "240 samples selected"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_light_and_dark_paper(tab: Tab, scheme: str) -> None:
    tab.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    found = tab.page.evaluate(CONTRAST)
    if scheme == "dark":
        tab.shot("dark", whole=True)
    tab.page.emulate_media(color_scheme="light")
    assert found["texts"] > 200
    assert found["pale"] == []


def test_phone_shows_everything_without_scrolling_sideways(chromium: Any, file: Path) -> None:
    phone = Tab(chromium, file, 390, color_scheme="dark", has_touch=True)
    cut = phone.page.evaluate(
        """() => [...document.querySelectorAll("#page *")].filter((element) => {
            if (element.closest("svg, .map, thead") || element.closest("datalist")) return false;
            const box = element.getBoundingClientRect();
            return box.width > 0 && (box.right > 390.5 || box.left < -0.5);
        }).map((element) => element.outerHTML.slice(0, 90))"""
    )
    phone.shot("phone")
    assert phone.page.evaluate("document.documentElement.scrollWidth") == 390
    assert cut == []
    phone.see("#clusters tbody tr").nth(2).tap()
    assert selected(phone).startswith("Cluster 2")
    phone.see("#clusters").scroll_into_view_if_needed()
    phone.shot("phone-clusters")
    phone.close()


def test_page_prints_with_a_picture_of_the_map(tab: Tab) -> None:
    tab.page.evaluate(
        """window.addEventListener("beforeprint", () => {
            window.printed = document.querySelector(".printed").src;
        }, {once: true})"""
    )
    paper = tab.page.pdf()
    assert paper.startswith(b"%PDF")
    assert tab.page.evaluate("window.printed").startswith("data:image/png;base64,")
    assert tab.see(".printed").count() == 0


# ---- whatever comes -----------------------------------------------------------------------------


def test_markup_in_names_is_text(tab: Tab, data: PageData) -> None:
    assert tab.see("h1").inner_text() == markup(7, "title")
    assert tab.see("#page img, #page b img").count() == 0
    assert markup(4, "late") in tab.see("#clusters tbody").inner_text()
    for view in data.summary["views"]:
        assert view["name"] in tab.see("#views table").inner_text()
    titles = " ".join(tab.see("svg title").all_text_contents())
    assert markup(2, "labs 0") in titles
    assert markup(3, "scan") in titles
    tab.see(".tools select").select_option(index=3)
    tab.see(".legend li").filter(has_text="<img src=x").wait_for()
    tab.see(".tools select").select_option(index=0)


def test_without_webgl_a_canvas_stands_in(chromium: Any, file: Path, data: PageData) -> None:
    plain = Tab(chromium, file, scripts=(NO_WEBGL,))
    assert plain.see(".map").get_attribute("data-painter") == "canvas"
    plain.shot("canvas")
    dots = plain.page.evaluate(
        """() => {
            const canvas = document.querySelector(".map canvas");
            const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return data.filter((value, i) => i % 4 === 3 && value > 99).length;
        }"""
    )
    assert dots > 240 * 9  # pixels of discs
    plain.lasso_all("Shift")
    assert selected(plain) == "240 samples selected"
    plain.close()


@pytest.mark.slow
def test_million_points_are_drawn_after_the_first_paint(
    chromium: Any, data: PageData, tmp_path: Path
) -> None:
    many = tiled(data, 1_000_000)
    million = write(many, tmp_path / "million.html")
    assert million.stat().st_size < 25_000_000
    tab = Tab(chromium, million)
    paint, drawn = tab.page.evaluate(
        """["first-contentful-paint", "viewfold-map"].map(
            (name) => performance.getEntriesByName(name)[0].startTime)"""
    )
    assert paint < drawn
    tab.shot("million")
    area = tab.box(".map")
    middle = area["width"] / 2
    low = area["height"] - 12
    tab.lasso([(12, 12), (middle, 12), (middle, low), (12, low)], "Shift")
    tab.see(".selection h3").wait_for()
    left = (on_screen(tab, many)[:, 0] < middle).sum()
    assert int(selected(tab).split()[0].replace(",", "")) == pytest.approx(left, abs=500)
    tab.close()
