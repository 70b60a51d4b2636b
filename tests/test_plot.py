# ruff: noqa: F811  (fixtures of other files)
"""Figures carry what they promise, and look alike everywhere."""

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.patches import PathPatch, Rectangle
from report_models import NAMES, axes, few_draws, model, synthetic  # noqa: F401

from viewfold import ViewFold, plot
from viewfold.plot import _style
from viewfold.web import page_data
from viewfold.web.words import shorten


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
    marks = [_style.mark(c, 4) for c in range(100)]
    looks = [(mark["markerfacecolor"], mark["marker"]) for mark in marks]
    assert len({colour for colour, _ in looks}) == 100
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
    ax = plot.label_flow(model, axes(), all_steps=True)
    found, history = flows(ax), model.history_.to_numpy()
    expected = Counter()
    for fold in (1, 2):
        for a, b in history[:, fold - 1 : fold + 1]:
            name = ["yet" if c < 0 else f"cluster{c}" for c in (a, b)]
            expected[(*name, f"fold{fold}")] += 1
    assert any(a != b and a != "yet" for a, b, _ in expected)
    few = {key for key, n in expected.items() if key[0] != key[1] and n < 0.01 * len(history)}
    assert found == pytest.approx({key: n for key, n in expected.items() if key not in few})
    moves = sum(expected[key] for key in few if key[0] != "yet")
    assert (f"{moves:,} move" in ax.get_xlabel()) is bool(moves)


def test_a_flow_begins_where_clusters_begin_to_last() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(range(4), 50)
    views = [rng.normal(size=(200, 5)), *(6 * np.eye(4)[y] + rng.normal(size=(200, 4)),) * 2]
    model = ViewFold(4, random_state=0).fit(views)  # the first view is noise
    (first, *_), n = plot.label_flow(model, axes()).get_xticklabels(), len(model.views_)
    assert (first.get_text(), n) == ("view1", 3)
    assert "without the first 1" in plot.label_flow(model, axes()).get_xlabel()
    assert len(plot.label_flow(model, axes(), all_steps=True).get_xticklabels()) == 3
    assert page_data(model).summary["opening_step"] == 1


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


def test_flow_of_many_clusters_takes_the_small_ones_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("viewfold.plot._figures.THIN", 0)
    model = synthetic(3000, 40, 3)
    found = flows(plot.label_flow(model, axes(), all_steps=True))
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
    assert shorten("a\tb\x00c\ud800") == r"a b\x00c\ud800"


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
    code = "import sys, viewfold.plot, viewfold.web.report; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"matplotlib", "jinja2", "sklearn.manifold"} & set(run.stdout.split())


# Machado, Oliveira and Fernandes (2009), full severity; rows act on linear RGB.
BLIND = {
    "nobody": np.eye(3),
    "protanopes": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopes": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopes": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def oklab(rgb: np.ndarray) -> np.ndarray:
    """Where differences are as large as they look (Ottosson 2020); from linear RGB."""
    cones = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    axes = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    return np.cbrt(rgb.clip(0, 1) @ np.transpose(cones)) @ np.transpose(axes)


@pytest.mark.parametrize("who", BLIND)
def test_twenty_colours_can_be_told_apart(who) -> None:
    from matplotlib.colors import to_rgb

    assert len(plot.COLOURS) == 20
    shown = np.array([to_rgb(colour) for colour in plot.COLOURS])
    linear = np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)
    seen = oklab(linear @ np.transpose(BLIND[who]))
    apart = np.linalg.norm(seen[:, None] - seen, axis=2)[np.triu_indices(20, 1)]
    assert apart.min() > (0.1 if who == "nobody" else 0.045)
    light = linear @ [0.2126, 0.7152, 0.0722]
    assert (1.05 / (light + 0.05)).min() > 1.7  # against white paper, and against a dark page
    assert ((light + 0.05) / 0.063).min() > 2
