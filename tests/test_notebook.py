# ruff: noqa: F811  (fixtures of other files)
"""What notebooks show: a card of a fitted model, and a map to select in."""

import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sklearn
from report_models import NAMES, few_draws, model, synthetic  # noqa: F401

from viewfold import FCMVC, ViewFold, plot
from viewfold.rows import DiskEngine
from viewfold.web import card as cards
from viewfold.web import colour_of
from viewfold.web.card import card
from viewfold.web.words import shorten


class Text(HTMLParser):
    """The words of a page, its tags, and whether all of them are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_a_fitted_model_shows_its_samples_views_and_clusters(model) -> None:
    model.rename(1, "<i>late</i> responders")
    try:
        shown = card(model, "")
    finally:
        model.rename(1, None)
    read = Text(shown)
    assert read.open == []
    plain = "div b table thead tbody tr th td span details summary"
    assert set(read.tags) <= set(plain.split())
    assert "<i>" not in shown
    assert "<script" not in shown
    complete = 100 * model.seen_.to_numpy().all(axis=1).mean()
    assert f"160 samples, 3 views, 4 clusters; {complete:.0f} % in every view" in read.text
    for name, share in model.seen_.mean().items():
        assert f"{shorten(name).strip()[:20]}" in read.text
        assert f"{100 * share:.0f} %" in read.text
    for c, own in model.to_frame().groupby("cluster")["confidence"]:
        name = " <i>late</i> responders" if c == 1 else ""
        row = f"{c}{name} {len(own)} {100 * len(own) / 160:.0f} % {own.mean():.2f}"
        assert row in read.text
        assert colour_of(c) in shown


def test_notebooks_get_the_card_and_parameters_stay_within_reach(model) -> None:
    shown = model._repr_mimebundle_()["text/html"]
    assert "160 samples" in shown
    assert "<details" in shown
    assert "n_clusters" in shown[shown.index("<details") :]
    assert "160 samples" in model._repr_html_()
    assert model._repr_mimebundle_()["text/plain"] == repr(model)
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
        assert not hasattr(model, "_repr_html_")


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_a_model_that_is_not_fitted_shows_scikit_learns_diagram(kind) -> None:
    shown = kind(3)._repr_html_()
    assert "sk-" in shown
    assert "in every view" not in shown


@pytest.mark.parametrize(
    "model",
    [synthetic(1, 1, 1), synthetic(300, 40, 30), FCMVC(2).fit([np.eye(12)] * 2)],
    ids=["one", "many", "FCMVC"],
)
def test_any_model_has_a_card(model) -> None:
    read = Text(card(model, ""))
    assert read.open == []
    assert "nan" not in read.text
    assert ("and 16 more" in read.text) == (model.n_clusters == 40)


def test_the_card_of_very_many_samples_makes_no_pass_over_them(
    monkeypatch, tmp_path, model
) -> None:
    with DiskEngine(n_buckets=4, folder=str(tmp_path)) as engine:
        elsewhere = ViewFold(4)._keep(model._state.placed(engine))
        assert Text(card(elsewhere, "")).text == Text(card(model, "")).text
        monkeypatch.setattr(cards, "MOST_COUNTED", 100)
        for verb in ("reduce", "map", "collect"):
            monkeypatch.setattr(engine, verb, None)
        read = Text(card(elsewhere, ""))
    assert "160 samples, 3 views, 4 clusters" in read.text
    assert "confidence" not in read.text


def test_showing_a_model_never_fails(model, tmp_path) -> None:
    with DiskEngine(n_buckets=2, folder=str(tmp_path)) as engine:
        elsewhere = ViewFold(4)._keep(model._state.placed(engine))
    assert "sk-" in elsewhere._repr_html_()


# ---- the map ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def about(model) -> pd.DataFrame:
    return pd.DataFrame({"<ward>": ["ER", "ICU"] * 80}, index=model.ids_)


def test_the_map_is_a_widget_that_knows_who_is_selected(model, about) -> None:
    pytest.importorskip("anywidget")
    widget = plot.map(model, metadata=about, colour_by="<ward>", height=300)
    assert (widget.colour_by, widget.height, widget.selection) == ("meta0", 300, [])
    assert set(widget.columns) == set(widget.summary["columns"])
    assert all(isinstance(column, bytes) for column in widget.columns.values())
    widget.selection = [5, 0]
    ids = widget.columns["ids"].decode().split("\n")
    assert widget.selected == [ids[5], ids[0]]
    ward = dict(zip(ids, widget.columns["meta0"], strict=True))
    levels = widget.summary["metadata"][0]["levels"]
    assert [levels[ward[i]] for i in model.ids_] == about["<ward>"].tolist()
    synced = {name for name, trait in widget.traits().items() if trait.metadata.get("sync")}
    assert {"summary", "columns", "selection", "colour_by", "height"} <= synced
    assert "export" in str(widget._esm)
    with pytest.raises(ValueError, match="colour_by='ward' is not there"):
        plot.map(model, colour_by="ward")
    unnamed = plot.map(model, ids=False)
    assert (unnamed.selected, "ids" in unnamed.columns) == (None, False)


def test_selected_are_the_ids_to_the_letter() -> None:
    pytest.importorskip("anywidget")
    ids = ["a\tb", "a b", *(f"p{i}" for i in range(20))]
    rows = np.random.default_rng(0).normal(size=(len(ids), 3))
    model = ViewFold(2, random_state=0).partial_fit(rows, ids=ids, view="v", similar_ids="new")
    widget = plot.map(model)
    widget.selection = list(range(len(ids)))
    assert sorted(widget.selected) == sorted(ids)


def test_a_column_that_is_called_cluster_does_not_hide_the_clusters(model) -> None:
    pytest.importorskip("anywidget")
    about = pd.DataFrame({"cluster": ["a", "b"] * 80, "tab\tbed": 1.5}, index=model.ids_)
    assert plot.map(model, metadata=about).colour_by == "cluster"
    assert plot.map(model, metadata=about, colour_by="tab\tbed").colour_by == "meta1"


def test_without_anywidget_the_map_is_a_figure(model, monkeypatch) -> None:
    from matplotlib import pyplot

    monkeypatch.setitem(sys.modules, "anywidget", None)
    ax = plot.map(model)
    assert ax.get_xlabel() == "160 samples"
    pyplot.close(ax.figure)
    with pytest.raises(ImportError, match=r"viewfold\[notebook\]"):
        plot.map(model, colour_by="confidence")
