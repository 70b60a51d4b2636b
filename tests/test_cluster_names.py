"""Names of clusters: they go with their cluster, are shown wherever it is, and are only data."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from conftest import Data
from matplotlib.figure import Figure
from report_models import Reader

import viewfold
from commands import Run, runner
from viewfold import StateFileError, ViewFold, plot
from viewfold.rows import LocalEngine
from viewfold.state.names import following
from viewfold.store import queries, tables
from viewfold.web import report

LATE, MARKUP = "late responders", "<b>$x^2$</b> & co"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


def test_a_name_is_given_changed_and_taken_away_with_an_entry_each(stored_model: Any) -> None:
    model = stored_model.rename(2, LATE)
    assert model.cluster_names_ == {2: LATE}
    assert model.log_.iloc[-1][["what", "note"]].tolist() == ["rename", f"cluster 2 is {LATE!r}"]
    n = len(model.log_)
    assert len(model.rename(2, LATE).log_) == n  # nothing changed
    assert model.rename(2, "early").rename(0, "x").cluster_names_ == {0: "x", 2: "early"}
    assert model.rename(2, None).rename(0, "").cluster_names_ == {}
    assert model.log_["note"].iloc[-1] == "cluster 0 has no name"
    assert "name" not in model.to_frame()


@pytest.mark.parametrize(
    ("cluster", "name", "said"),
    [
        (4, "x", "no cluster 4.*0 to 3"),
        (-1, "x", "no cluster -1"),
        (1.5, "x", "whole number"),
        (True, "x", "whole number"),
        (1, 7, "A name is a text"),
        (1, "  ", "blank"),
        (1, " x", "space around"),
        (1, "a\nb", "cannot be seen"),
        (1, "a\u202eb", "cannot be seen"),
        (1, "x" * 61, "more than 60 letters"),
        (1, "3", "looks like the number"),
        (1, LATE.upper(), "is the name of cluster 0"),
    ],
)
def test_what_cannot_be_a_name_is_refused_and_nothing_is_changed(
    stored_model: Any, cluster: Any, name: Any, said: str
) -> None:
    model = stored_model.rename(0, LATE)
    state = model._state
    with pytest.raises((ValueError, TypeError), match=said):
        model.rename(cluster, name)
    assert model._state is state


@pytest.mark.parametrize(
    ("before", "now", "kept"),
    [
        ([0, 1, 2], [0, 1, 2], {1: "one", 2: "two"}),
        ([0, 1, 2], [0, 2, 1], {1: "two", 2: "one"}),  # other numbers
        ([0, 1, 2], [0, 0, 1], {1: "two"}),  # 1 went into the larger 0, and 2 has its number
        ([1, 1, 2], [0, 1, 2], {0: "one", 2: "two"}),  # the larger part has the name
        ([1, 1, 1, 2], [0, 0, 0, 2], {0: "one", 2: "two"}),
        ([0, 0, 2], [0, 0, 2], {2: "two"}),  # 1 has no samples any more
        ([2, 0, 1, 1], [2, 0, 0, 1], {1: "one", 2: "two"}),  # half went into a larger one
        ([2, 1, 0], [0, 0, 1], {0: "two"}),  # the larger of two that merged gives its name
        ([1, -1, 2], [1, 1, 2], {1: "one", 2: "two"}),  # new samples take no name away
    ],
)
def test_a_name_goes_with_its_samples(before: list, now: list, kept: dict) -> None:
    sizes = {0: 30, 1: 10, 2: 12, -1: 90}
    counts = [sizes[c] + 5 * (i == 0) for i, c in enumerate(before)]
    labels = (np.repeat(x, counts) for x in (before, now))
    assert following(LocalEngine(), {1: "one", 2: "two"}, *labels) == kept


def test_of_two_clusters_of_one_size_that_merged_neither_goes_on() -> None:
    before, now = np.repeat([1, 2], 20), np.zeros(40, int)
    assert following(LocalEngine(), {1: "one", 2: "two"}, before, now) == {}


def test_names_stay_through_folds_updates_and_forgetting(data: Data, tmp_path: Path) -> None:
    parts = data.parts()
    model = ViewFold(4, random_state=0).partial_fit(
        *parts["labs"][:1], ids=parts["labs"][1], view="labs"
    )
    of = {c: f"group {c}" for c in range(4)}
    for c, name in of.items():
        model.rename(c, name)
    X, ids = parts["scan"]
    model.partial_fit(X, ids=ids, view="scan")
    model.partial_fit(X[:40] + 0.01, ids=ids[:40], view="scan")
    model.extend(data.views["labs"][:3], ids=["a", "b", "c"], view="labs").forget(["a", ids[0]])
    assert model.cluster_names_ == of
    model.save(tmp_path / "p.vf")
    again = viewfold.load(tmp_path / "p.vf")
    assert again.cluster_names_ == of
    assert again.log_["note"].dropna().tolist() == [f"cluster {c} is {of[c]!r}" for c in of]
    assert viewfold.verify(tmp_path / "p.vf").whole
    viewfold.convert(tmp_path / "p.vf", tmp_path / "p.vfd", n_buckets=3)
    buckets = viewfold.load(tmp_path / "p.vfd")
    assert buckets.cluster_names_ == of
    assert buckets.forget([ids[1]]).cluster_names_ == of
    assert queries.events(tmp_path / "p.vfd") == queries.events(tmp_path / "p.vf")


def test_a_name_whose_cluster_is_no_more_goes_and_log_and_warning_say_so(stored_model: Any) -> None:
    model = stored_model
    for c in range(4):
        model.rename(c, f"group {c}")
    with pytest.warns(UserWarning, match="no more lost their names: .*'group"):
        model.recluster(3)
    left = model.cluster_names_
    gone = {f"group {c}" for c in range(4)} - set(left.values())
    assert len(gone) == 2  # two clusters of one size are one now
    assert all(repr(name) in model.log_["note"].iloc[-1] for name in gone)
    frame = model.to_frame()
    assert frame["name"].tolist() == [left.get(c) for c in frame["cluster"]]
    own = frame.index[frame["cluster"] == min(left)]
    assert set(model.forget(own).cluster_names_) == set(left) - {min(left)}
    assert repr(left[min(left)]) in model.log_["note"].iloc[-1]


def test_undo_and_restore_bring_names_back(model_file: Path, run: Run) -> None:
    assert run(f"rename {model_file} 3 '{LATE}' --keep 3")[0] == 0
    assert run(f"rename {model_file} 3 early")[0] == 0
    assert viewfold.undo(model_file).cluster_names_ == {3: LATE}
    assert viewfold.undo(model_file).cluster_names_ == {}
    code, out, _ = run(f"rename {model_file} 3 early --json")
    assert (code, json.loads(out)["cluster_names"]) == (0, {"3": "early"})
    code, _, err = run(f"rename {model_file} 9 early")
    assert code == 1
    assert "no cluster 9" in err
    assert viewfold.load(model_file).cluster_names_ == {3: "early"}
    assert viewfold.forget(model_file, ["s0"]).cluster_names_ == {3: "early"}
    said = run(f"history {model_file}")[1]
    assert "rename: cluster 3 is 'early'" in said


def test_every_command_that_shows_clusters_shows_names(
    model_file: Path, data: Data, run: Run, tmp_path: Path
) -> None:
    assert "name" not in run(f"labels {model_file}")[1].splitlines()[0]
    run(f"rename {model_file} 1", MARKUP)
    model = viewfold.load(model_file)
    rows = json.loads(run(f"labels {model_file} --json")[1])
    assert list(rows[0]) == [
        *("id", "cluster", "name", "confidence", "novelty", "hangs_on", "views_seen")
    ]
    assert {(r["cluster"], r["name"]) for r in rows} == {
        (0, None),
        (1, MARKUP),
        (2, None),
        (3, None),
    }
    assert model.to_frame()["name"].tolist() == [r["name"] for r in rows]
    assert f"1 ({MARKUP}): " in run(f"status {model_file}")[1]
    assert json.loads(run(f"status {model_file} --json")[1])["cluster_names"] == {"1": MARKUP}
    assert run(f"export {model_file} -o all.jsonl")[0] == 0
    first = json.loads((tmp_path / "all.jsonl").read_text().splitlines()[0])
    assert first["name"] == model.to_frame()["name"].iloc[0]
    found = model.predict_frame(data.views["labs"][:9], view="labs")
    assert found["name"].tolist() == [{1: MARKUP}.get(c) for c in found["cluster"]]


def test_annotated_data_has_names(stored_model: Any) -> None:
    anndata = pytest.importorskip("anndata")
    data = anndata.AnnData(np.zeros((3, 1)))
    data.obs_names = [*map(str, stored_model.ids_[:2]), "unknown"]
    stored_model.annotate(data)
    assert "viewfold_name" not in data.obs
    own = int(stored_model.labels_[0])
    stored_model.rename(own, LATE).annotate(data, overwrite=True)
    named = [LATE if stored_model.labels_[i] == own else None for i in range(2)]
    column = data.obs["viewfold_name"]
    assert column.astype(object).where(column.notna(), None).tolist() == [*named, None]
    with pytest.raises(ValueError, match="viewfold_name"):
        stored_model.annotate(data)


@pytest.mark.usefixtures("quick_pages")
def test_report_and_figures_show_names_and_markup_is_text(stored_model: Any) -> None:
    page = report.render(stored_model.rename(1, MARKUP))
    assert MARKUP not in page
    assert page.count("&lt;b&gt;$x^2$&lt;/b&gt; &amp; co") == 1  # in the table
    assert Reader(page).summary["clusters"][1]["name"] == MARKUP
    for draw in (plot.sample_map, plot.cluster_sizes, plot.confidence, plot.label_flow):
        ax = Figure().subplots()
        draw(stored_model, ax)
        ax.figure.draw_without_rendering()
        said = [text.get_text() for text in (*ax.texts, *ax.get_xticklabels())]
        assert said.count(f"1 {MARKUP}") == 1, draw


def test_a_file_with_names_that_cannot_be_is_refused(stored_model: Any, tmp_path: Path) -> None:
    path = tmp_path / "p.vf"
    stored_model.rename(0, LATE).save(path)
    for names in ({"9": "x"}, {"0": "a\nb"}, {"0": 7}, ["x"], {"x": "y"}):
        with duckdb.connect(path) as db:
            meta = {k: json.loads(v) for k, v in db.sql("SELECT key, value FROM meta").fetchall()}
            meta["cluster_names"] = names
            for key, value in (("cluster_names", names), ("digest", tables.meta_digest(meta))):
                db.execute("UPDATE meta SET value = ? WHERE key = ?", [json.dumps(value), key])
        with pytest.raises(StateFileError):
            viewfold.load(path)


def test_a_file_without_names_is_as_it_was(stored_model: Any, tmp_path: Path) -> None:
    """An earlier viewfold can read it: neither a key nor a column is new."""
    stored_model.save(tmp_path / "p.vf")
    with duckdb.connect(tmp_path / "p.vf", read_only=True) as db:
        assert ("cluster_names",) not in db.sql("SELECT key FROM meta").fetchall()
    with_note = replace(stored_model._state.log[-1], note="x")
    assert with_note.said.endswith(": x")


def test_samples_that_are_in_no_cluster_for_sure_have_no_name(run: Run) -> None:
    X = 2 * np.eye(4)[np.arange(200) % 4] + np.random.default_rng(0).normal(size=(200, 4))
    model = ViewFold(4, random_state=0).fit(X).rename(3, LATE)  # the last, which −1 would count as
    least = float(np.median(model.to_frame()["confidence"]))
    frame = model.to_frame(min_confidence=least)
    named = frame["name"] == LATE
    assert named.tolist() == (frame["cluster"] == 3).tolist()
    assert named.any()
    assert (frame["cluster"] == -1).sum() > 10
    model.save("s.vf")
    code, out, said = run(f"labels s.vf --min-confidence {least}")
    assert code == 0, said
    rows = [line.split(",") for line in out.splitlines()[1:]]
    assert {(row[1] == "3") == (row[2] == LATE) for row in rows} == {True}
    assert any(row[1] == "-1" for row in rows)
