# ruff: noqa: F811  (fixtures of other files)
"""The report: one page that loads nothing, names nobody and tells the numbers."""

import json
import os
import re
import shutil
import subprocess

import matplotlib
import numpy as np
import pytest
from report_models import NAMES, Reader, model, page, synthetic  # noqa: F401

from viewfold import FCMVC, ViewFold, plot, report
from viewfold.report import _svg


def test_page_loads_nothing(page) -> None:
    reader = Reader(page)
    assert not re.search(r"https?:|@import|//\w+\.", page)
    assert not {"link", "img", "iframe", "object", "embed"} & {tag for tag, _ in reader.tags}
    assert not reader.values("src")
    assert all(value.startswith("#") for value in reader.values("href"))
    assert all(found == "#" for found in re.findall(r"url\((.)", page))
    assert "default-src 'none'" in page


def test_names_and_title_are_escaped_everywhere(model) -> None:
    page = report.render(model, title="<img src=x onerror=alert(2)>\x00")
    assert "<b>bold" not in page
    assert "alert(1)</script>" not in page
    assert "<h1>&lt;img src=x onerror=alert(2)&gt; </h1>" in page
    assert [tag for tag, _ in Reader(page).tags].count("script") == 1
    assert any(row[0] == NAMES[0] for row in Reader(page).rows)


def test_page_tells_the_numbers(model, page) -> None:
    tiles = dict(re.findall(r"<div><dt>(.*?)</dt><dd>(.*?) ?(?:<small>.*?)?</dd>", page))
    before, after = model.history_.to_numpy()[:, 1:].T
    moved = ((before >= 0) & (before != after)).sum()
    assert moved > 0
    assert tiles == {
        "samples": "160",
        "views": "3",
        "clusters": "4",
        "in every view": str(model.seen_.all(axis=1).sum()),
        "moved at the last fold": str(moved),
    }
    rows = Reader(page).rows
    for record, row in zip(model.views_, rows[-3:], strict=True):
        counts = [record.n_samples, record.n_features, record.n_new, record.n_shared]
        assert row[0].strip() == record.name.strip()
        assert row[1:5] == [str(n) for n in counts]
        assert row[5] == ("–" if record.agreement is None else f"{record.agreement:.2f}")
    for c, own in model.to_frame().groupby("cluster")["confidence"]:
        share, mean = f"{100 * len(own) / 160:.1f} %", f"{own.mean():.2f}"
        assert rows[1 + c] == [str(c), str(len(own)), share, mean]


def test_page_names_nobody(page) -> None:
    assert "secret" not in page


def test_figures_can_be_told_apart_and_say_what_they_show(page) -> None:
    reader = Reader(page)
    ids = reader.values("id")
    assert len(ids) == len(set(ids))
    pointed = {v[1:] for v in reader.values("href")} | set(re.findall(r"url\(#(.*?)\)", page))
    assert pointed <= set(ids)
    labels = [attrs["aria-label"] for _, attrs in reader.tags if attrs.get("role") == "img"]
    assert len(labels) == len(set(labels)) == 7
    assert ("html", {"lang": "en"}) in reader.tags


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("font: 10px 'DejaVu Sans', sans-serif; text-anchor: middle", "font-size: 10px; "),
        (
            "font: 700 8.5px 'DejaVu Sans'; text-anchor: middle",
            "font-weight: 700; font-size: 8.5px; ",
        ),
        ("font-size: 9px; font-family: 'DejaVu Sans'; text-anchor: middle", "font-size: 9px; "),
    ],
)
def test_text_is_in_the_pages_font_with_any_matplotlib(written, kept) -> None:
    assert _svg._attribute("style", written, "", set())["style"] == f"{kept}text-anchor: middle"


def test_page_is_the_same_every_time_whatever_the_users_style(model, page) -> None:
    from matplotlib import pyplot

    before = matplotlib.get_backend(), pyplot.get_fignums()
    with matplotlib.rc_context({"font.size": 30, "text.color": "red", "axes.grid": True}):
        mine = dict(matplotlib.rcParams)
        assert report.render(model) == page
        assert dict(matplotlib.rcParams) == mine
    assert (matplotlib.get_backend(), pyplot.get_fignums()) == before


def test_page_of_very_many_samples_stays_small_and_says_what_it_shows(monkeypatch) -> None:
    monkeypatch.setattr(
        "viewfold.plot._samples._layout", lambda rows: rows[:, :2]
    )  # t-SNE takes most of the time
    page = report.render(synthetic(200_000, 12, 5))
    assert page.count("a sample of 2,000 of 200,000") == 3  # figure, its description, its note
    assert len(re.findall(r'<use href="#map-', page)) == 2000
    assert len(page.encode()) < 1_000_000


@pytest.mark.parametrize(
    "model",
    [
        synthetic(300, 4, 1),
        synthetic(300, 1, 3),
        synthetic(300, 40, 12, names=[f"{NAMES[2]} {v}" for v in range(12)]),
        synthetic(3, 2, 2),
        synthetic(1, 1, 1),
        FCMVC(3, random_state=0).fit([np.random.default_rng(0).normal(size=(50, 5))] * 2),
        ViewFold(1).fit([np.ones((20, 3)) * np.arange(20)[:, None]]),
    ],
    ids=["one view", "one cluster", "many", "three samples", "one sample", "FCMVC", "one line"],
)
def test_any_model_can_be_reported(model) -> None:
    page = report.render(model)
    assert not re.search(r"\b(nan|inf|None|NaN)\b", page)
    labels = Reader(page).values("role")
    known = any(record.agreement is not None for record in model.views_)
    numbers = model.ids_.size > 3  # of clusters to choose from
    assert labels.count("img") == 4 + known + numbers + (len(model.views_) > 1)


def test_file_is_complete_or_untouched(model, page, tmp_path, monkeypatch) -> None:
    path = tmp_path / "report.html"
    assert report.write(model, str(path)) == path
    assert path.read_text(encoding="utf-8") == page
    monkeypatch.setattr(report, "render", lambda model, title: f"<h1>{title}</h1>")
    os.umask(mask := os.umask(0))
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            report.write(model, path, title="other")
    assert path.read_text(encoding="utf-8") == page
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere.*Make it"):
        report.write(model, tmp_path / "nowhere" / "report.html")


PROBE = """<script>
const size = (x) => { const r = x.getBoundingClientRect(); return [r.width, r.height]; };
const drawings = [...document.querySelectorAll(".drawing svg")];
const found = {
  drawings: drawings.map(size),
  contents: drawings.map((x) => size(x.querySelector("g"))),
  wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
};
document.querySelector(".legend button[data-cluster='2']").click();
found.lit = drawings.map((x) => [...x.querySelectorAll(".on")].map((y) => y.dataset.cluster));
const another = drawings.map((x) => x.querySelector("[data-cluster='1']") ?? x);
for (const part of another) part.style.transition = "none";
found.faint = another.map((x) => getComputedStyle(x).opacity);
document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
found.after = document.querySelectorAll(".on, .one").length;
document.body.dataset.found = JSON.stringify(found);
</script>"""


@pytest.mark.parametrize("width", [400, 1280])
def test_browser_draws_every_figure_without_complaint(page, tmp_path, width) -> None:
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        pytest.skip("no Chromium here")
    path = tmp_path / "report.html"
    path.write_text(page.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
        "--disable-background-networking --disable-component-update --enable-logging=stderr --v=0"
    )
    where = [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900", "--dump-dom"]
    command = [browser, *flags.split(), *where, path.as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ":CONSOLE" not in run.stderr
    found = json.loads(dict(Reader(run.stdout).tags)["body"]["data-found"])
    assert len(found["drawings"]) == 7
    assert all(min(size) > 50 for size in found["drawings"] + found["contents"])
    assert found["wide"] <= 0
    lit = [set(clusters) for clusters in found["lit"]]
    assert all("2" in "".join(clusters) for clusters in lit[:3] + lit[-1:])
    assert all("2" in cluster.split() for clusters in lit for cluster in clusters)
    assert [float(opacity) < 0.5 for opacity in found["faint"]] == [True] * 3 + [False] * 3 + [True]
    assert found["after"] == 0


def test_colours_of_clusters_are_in_the_page_as_in_the_figures(page) -> None:
    for c in range(4):
        assert page.count(f'fill="{plot.COLOURS[c]}"') == 2  # legend and table
        assert f"fill: {plot.COLOURS[c]}" in page
