"""Figures and the report: they carry what they promise, and look alike everywhere."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle

from viewfold import FCMVC, ViewFold, plot, report
from viewfold.core.state import Clusters, State, ViewRecord
from viewfold.plot import _style
from viewfold.report import _svg

NAMES = ("<b>bold</b> & <script>alert(1)</script>", "costs in $x^$", "an endless name, " * 9)


def axes():
    return Figure(layout="constrained").subplots()


def synthetic(n, k, n_views, names=None) -> ViewFold:
    """A model made by hand: as large as one likes, at no cost."""
    rng = np.random.default_rng(n + k)
    labels = rng.integers(k, size=n)
    centers = rng.normal(size=(k, 8))
    embedding = (centers[labels] + 0.3 * rng.normal(size=(n, 8))).astype(np.float32)
    seen = rng.random((n, n_views)) < 0.6
    seen[:, -1] |= ~seen.any(axis=1)
    moved = rng.random((n, n_views)) < 0.1
    history = np.where(moved, rng.integers(k, size=(n, n_views)), labels[:, None])
    history[:, -1] = labels
    history[np.cumsum(seen, axis=1) == 0] = -1
    names = names or [f"view {v}" for v in range(n_views)]
    counts = seen.sum(axis=0).tolist()
    records = [
        ViewRecord(name, m, 9, m, 0, 1, agreement=None if v == 0 else v / n_views)
        for v, (name, m) in enumerate(zip(names, counts, strict=True))
    ]
    state = State(
        ids=np.arange(n),
        embedding=embedding,
        seen=seen,
        history=history.astype(np.int32),
        added=np.ones(n, np.int32),
        views=tuple(records),
        clusters=Clusters(np.eye(8), centers[None]),
    )
    return ViewFold(k)._keep(state)


@pytest.fixture(scope="module")
def model(data) -> ViewFold:
    model = ViewFold(4, random_state=0)
    for name, (X, ids) in zip(NAMES, data.parts().values(), strict=True):
        model.partial_fit(X, ids=[f"secret-{i}" for i in ids], view=name)
    # The clusters of these data are so clear that nobody moves: let some have moved, or come late.
    history = model._state.history.copy()
    history[:30:2, 1] = np.where(history[:30:2, 1] < 0, -1, (history[:30:2, 1] + 1) % 4)
    history[100:110, :2] = -1
    return model._keep(replace(model._state, history=history))


@pytest.fixture(scope="module")
def page(model) -> str:
    return report.render(model)


# Figures


def points(ax) -> dict[int, np.ndarray]:
    """The marks of each cluster on a map."""
    return {int(line.get_label().split()[1]): line.get_xydata() for line in ax.lines}


def test_map_shows_every_sample_in_its_cluster_and_names_each(model) -> None:
    ax = plot.sample_map(model, axes())
    assert {c: len(xy) for c, xy in points(ax).items()} == Counter(model.labels_.tolist())
    assert [text.get_text() for text in ax.texts] == ["0", "1", "2", "3"]
    assert ax.get_xlabel() == "160 samples"
    for text in ax.texts:  # a name stands on one of its cluster's own marks
        assert (points(ax)[int(text.get_text())] == text.xy).all(axis=1).any()


def test_map_keeps_clear_clusters_apart(model) -> None:
    xy = points(plot.sample_map(model, axes()))
    middles = np.array([xy[c].mean(axis=0) for c in range(4)])
    for c in range(4):
        assert (((xy[c][:, None] - middles) ** 2).sum(axis=2).argmin(axis=1) == c).all()


def test_map_of_many_samples_shows_some_and_says_so(model) -> None:
    ax = plot.sample_map(model, axes(), most=50)
    assert sum(len(line.get_xdata()) for line in ax.lines) == 50
    assert ax.get_xlabel() == "a sample of 50 of 160"


def test_map_depends_on_the_samples_not_on_labels_or_row_order(model) -> None:
    def everybody(model):
        xy = np.concatenate(list(points(plot.sample_map(model, axes())).values()))
        return xy[np.lexsort(xy.T)]

    state, order = model._state, np.random.default_rng(0).permutation(160)
    history = state.history[order].copy()
    history[:, -1] = order % 4
    other = ViewFold(4)._keep(
        replace(state, ids=state.ids[order], embedding=state.embedding[order], history=history)
    )
    np.testing.assert_array_equal(everybody(model), everybody(other))


def test_clusters_differ_in_colour_and_shape() -> None:
    looks = [
        (mark["markerfacecolor"], mark["marker"]) for mark in (_style.mark(c, 4) for c in range(56))
    ]
    assert len(set(looks)) == 56
    for (colour, shape), (next_colour, next_shape) in pairwise(looks):
        assert colour != next_colour
        assert shape != next_shape


def test_bars_are_as_high_as_clusters_have_samples(model) -> None:
    state = model._state
    fewer = replace(state, history=np.where(state.history == 2, 1, state.history))
    for one in (model, ViewFold(4)._keep(fewer)):
        ax = plot.cluster_sizes(one, axes())
        expected = [int((one.labels_ == c).sum()) for c in range(4)]
        assert [bar.get_height() for bar in ax.patches] == expected
        assert [text.get_text() for text in ax.texts] == [str(n) for n in expected]


def test_confidence_shows_the_quantiles_of_each_cluster(model) -> None:
    ax = plot.confidence(model, axes())
    drawn = {line.get_gid(): line.get_ydata() for line in ax.lines}
    for c, own in model.to_frame().groupby("cluster")["confidence"]:
        np.testing.assert_allclose(drawn[f"cluster{c}.most"], np.quantile(own, [0.05, 0.95]))
        np.testing.assert_allclose(drawn[f"cluster{c}.half"], np.quantile(own, [0.25, 0.75]))
        np.testing.assert_allclose(drawn[f"cluster{c}.median"], np.median(own))


@pytest.mark.parametrize("n_views", [1, 3, 9, 14])
def test_combinations_of_views_are_counted(n_views) -> None:
    model = synthetic(1500, 3, n_views)
    bars, dots = plot.views_seen(model, axes()).child_axes
    expected = Counter(map(tuple, model.seen_.to_numpy().tolist()))
    filled = [set() for _ in bars.patches]
    for line in dots.lines:
        if line.get_marker() == "o" and line.get_alpha() is None:
            for x, y in line.get_xydata().astype(int):
                filled[x].add(y)
    for bar, views in zip(bars.patches, filled, strict=True):
        assert bar.get_height() == expected[tuple(v in views for v in range(n_views))]
    heights = [bar.get_height() for bar in bars.patches]
    assert heights == sorted(expected.values(), reverse=True)[:20]
    n_rest, rest = len(expected) - len(heights), 1500 - int(sum(heights))
    said = [text.get_text() for text in bars.texts if "other" in text.get_text()]
    assert said == ([f"and {rest:,} samples in {n_rest:,} other combinations"] if rest else [])


def flows(ax) -> dict[tuple[str, str, str], float]:
    """The ribbons of a flow: from, to, fold and height; both ends are equally high."""
    found = {}
    for ribbon in ax.patches:
        if isinstance(ribbon, PathPatch):
            y = ribbon.get_path().vertices[:, 1]
            assert y[7] - y[0] == pytest.approx(y[4] - y[3])
            key = tuple(ribbon.get_gid().split("."))
            assert key not in found
            found[key] = y[7] - y[0]
    return found


def test_ribbons_add_up_to_the_history(model) -> None:
    found = flows(plot.label_flow(model, axes()))
    history = model.history_.to_numpy()
    expected = Counter()
    for fold in (1, 2):
        for a, b in history[:, fold - 1 : fold + 1]:
            name = ["yet" if c < 0 else f"cluster{c}" for c in (a, b)]
            expected[(*name, f"fold{fold}")] += 1
    assert any(a != b and a != "yet" for a, b, _ in expected)
    assert found == pytest.approx(dict(expected))


def test_ribbons_begin_and_end_in_their_blocks(model) -> None:
    ax = plot.label_flow(model, axes())
    blocks = {patch.get_gid(): patch for patch in ax.patches if isinstance(patch, Rectangle)}
    for fold, labels in enumerate(model.history_.to_numpy().T):
        for c in range(4):
            assert blocks[f"cluster{c}.after{fold}"].get_height() == (labels == c).sum()
    for ribbon in ax.patches:
        if isinstance(ribbon, PathPatch):
            a, b, fold = ribbon.get_gid().split(".")
            vertices, fold = ribbon.get_path().vertices, int(fold[4:])
            for name, first, last in ((f"{a}.after{fold - 1}", 0, 7), (f"{b}.after{fold}", 3, 4)):
                block = blocks[name]
                low, high = block.get_y(), block.get_y() + block.get_height()
                assert low - 1e-6 <= vertices[first, 1] < vertices[last, 1] <= high + 1e-6


def test_flow_of_many_clusters_takes_the_small_ones_together() -> None:
    model = synthetic(3000, 40, 3)
    found = flows(plot.label_flow(model, axes()))
    names = {name for a, b, _ in found for name in (a, b)}
    largest = np.argsort(-np.bincount(model.labels_), kind="stable")[:12]
    assert names == {*(f"cluster{c}" for c in largest), "others", "yet"}
    for fold in ("fold1", "fold2"):
        assert sum(n for (*_, f), n in found.items() if f == fold) == pytest.approx(3000)


def test_agreement_is_drawn_where_it_is_known(model) -> None:
    ax = plot.agreement(model, axes())
    known = [record.agreement for record in model.views_[1:]]
    assert [bar.get_width() for bar in ax.patches] == known
    assert [bar.get_y() + bar.get_height() / 2 for bar in ax.patches] == pytest.approx([1, 2])
    said = [text.get_text() for text in ax.texts]
    assert said == ["first view: nothing to compare it with", *(f"{x:.2f}" for x in known)]


def test_names_are_shown_as_they_are_but_not_too_long(model) -> None:
    ax = plot.agreement(model, axes())
    ax.figure.draw_without_rendering()  # an unfinished formula would fail here
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[1] == NAMES[1]
    assert len(names[2]) == 28
    assert plot.shorten("a\tb\x00c\ud800") == "a b c "


def test_axes_are_the_given_ones_or_those_of_a_new_figure(model) -> None:
    from matplotlib import pyplot

    for name in ("sample_map", "cluster_sizes", "confidence", "views_seen", "label_flow"):
        ax = axes()
        assert getattr(plot, name)(model, ax) is ax
    before = pyplot.get_fignums()
    ax = plot.agreement(model)
    assert pyplot.gca() is ax
    pyplot.close(ax.figure)
    assert pyplot.get_fignums() == before


def test_matplotlib_is_imported_only_when_something_is_drawn() -> None:
    code = "import sys, viewfold.plot, viewfold.report; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"matplotlib", "jinja2", "sklearn.manifold"} & set(run.stdout.split())


# The page


class Reader(HTMLParser):
    """All tags with their attributes, and the text of table rows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.rows: list[list[str]] = []
        self.in_cell = False
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag) -> None:
        self.in_cell &= tag not in ("td", "th")

    def handle_startendtag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data) -> None:
        if self.in_cell:
            self.rows[-1][-1] += data.strip()

    def values(self, name: str) -> list[str]:
        return [attrs[name] for _, attrs in self.tags if name in attrs]


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
    assert len(labels) == len(set(labels)) == 6
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
    assert labels.count("img") == 4 + known + (len(model.views_) > 1)


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
    assert len(found["drawings"]) == 6
    assert all(min(size) > 50 for size in found["drawings"] + found["contents"])
    assert found["wide"] <= 0
    lit = [set(clusters) for clusters in found["lit"]]
    assert all("2" in "".join(clusters) for clusters in lit[:3] + lit[-1:])
    assert all("2" in cluster.split() for clusters in lit for cluster in clusters)
    assert [float(opacity) < 0.5 for opacity in found["faint"]] == [True] * 3 + [False] * 2 + [True]
    assert found["after"] == 0


def test_colours_of_clusters_are_in_the_page_as_in_the_figures(page) -> None:
    for c in range(4):
        assert page.count(f'fill="{plot.COLOURS[c]}"') == 2  # legend and table
        assert f"fill: {plot.COLOURS[c]}" in page
