"""The server of `viewfold ui`: what it answers, one piece of work at a time."""

from __future__ import annotations

import io
import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("starlette")

from report_models import few_draws  # noqa: F401
from ui_pages import MARKUP, Page, csv

import viewfold
from commands import runner
from viewfold import store
from viewfold.web import session as _session
from viewfold.web.data import changes_since
from viewfold.web.routes import _Api
from viewfold.web.words import from_line

ROOT = Path(__file__).resolve().parents[1]


# ---- the interface ------------------------------------------------------------------------------


def test_the_documentation_lists_the_interface(ui_page: Page) -> None:
    text = (ROOT / "docs" / "ui.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(GET|POST|PUT|DELETE)` \| `api/([^`?]+)", text, re.MULTILINE)
    assert listed == [(method, path) for method, path, _ in _Api(ui_page.session).table()]


def test_a_state_begins_with_the_first_file(ui_page: Page) -> None:
    status = ui_page.get("status")
    assert (status["exists"], status["samples"], status["entry"]) == (False, 0, 0)
    for path in ("summary", "columns/x", "explain", "undo"):
        assert ui_page.get(path)["status"] == 404, path
    assert ui_page.job("recluster", clusters=3)["error"]["code"] == "not-found"
    key = ui_page.upload("labs.csv", csv("labs", range(90)))
    found = ui_page.job("inspect", upload=key)["answer"]
    (view,) = found["views"]
    assert (found["file"], view["view"], view["rows"]) == ("labs.csv", "labs", 90)
    assert view["ids"] == {
        **{"column": "patient", "proposed": True, "candidates": ["patient"], "given": True}
    }
    assert str(ui_page.session.folder) not in json.dumps(found)
    without = ui_page.job("fold", upload=key, id_column="patient")
    assert "how many" in without["error"]["message"]
    assert not ui_page.session.state.exists()
    done = ui_page.job("fold", upload=key, id_column="patient", clusters="auto")
    assert done["state"] == "done", done
    assert done["answer"]["evidence"].startswith("3 clusters stand out most")
    assert done["answer"]["samples"] == 90
    assert ui_page.get("status")["views"] == ["labs"]
    assert list(ui_page.session.folder.iterdir()) == []


def test_a_file_is_looked_at_tried_and_folded_and_what_moved_is_told(ui_folded: Page) -> None:
    before = ui_folded.session.state.read_bytes()
    key = ui_folded.upload("scan.csv", csv("scan", range(60, 150)))
    (view,) = ui_folded.job("inspect", upload=key)["answer"]["views"]
    assert (view["samples"]["known"], view["samples"]["new"]) == (30, 60)
    asked = {"upload": key, "id_column": "patient", "view": "mri"}
    tried = ui_folded.job("fold", **asked, dry_run=True)["answer"]
    assert ui_folded.session.state.read_bytes() == before
    done = ui_folded.job("fold", **asked)["answer"]
    for told in (tried, done):
        del told["seconds"], told["dry_run"], told["changes"]["text"]
    assert tried == done
    (fold,) = done["folds"]
    assert (fold["view"], fold["new"], fold["shared"]) == ("mri", 60, 30)
    assert done["changes"]["new"] == 60
    assert sum(flow["count"] for flow in done["changes"]["flow"]) == 150
    again = ui_folded.get("changes", entry=1)
    assert again["events"] == done["changes"]["events"]
    assert ui_folded.get("summary")["n"] == 150


def test_what_is_proposed_is_said_back_to_fold_the_file(ui_page: Page) -> None:
    content = csv("labs", range(90)).replace(b"\np1,", b"\nP2,").replace(b",", b";")
    key = ui_page.upload("labs.csv", content.replace(b".", b","))
    (view,) = ui_page.job("inspect", upload=key, id_column="patient")["answer"]["views"]
    assert view["options"] == {"similar_ids": "match"}
    assert "are the same sample" in view["refused"]  # both are in the file: the user chooses
    said = {"upload": key, "id_column": "patient", **view["options"], "similar_ids": "new"}
    (view,) = ui_page.job("inspect", **said)["answer"]["views"]
    assert (view["refused"], view["options"]) == (None, {"similar_ids": "new"})
    assert ui_page.job("fold", **said, clusters=3)["answer"]["samples"] == 90


def test_columns_are_those_of_the_summary_or_refused(ui_folded: Page) -> None:
    summary = ui_folded.get("summary")
    model = viewfold.load(ui_folded.session.state)
    ids = ui_folded.client.get("/api/columns/ids", params={"entry": 1}).text.split("\n")
    assert sorted(ids) == sorted(model.ids_)
    found = ui_folded.client.get("/api/columns/cluster").content
    labels = dict(zip(model.ids_, model.labels_, strict=True))
    kind = summary["columns"]["cluster"]
    assert np.frombuffer(found, kind).tolist() == [labels[one] for one in ids]
    assert ui_folded.get("columns/nothing")["status"] == 404
    with viewfold.edit(ui_folded.session.state) as other:
        other.recluster(2)
    same = ui_folded.client.get("/api/columns/ids", params={"entry": 1})
    assert same.text.split("\n") == ids  # of what the page shows
    assert ui_folded.get("summary")["entry"] == 2
    late = ui_folded.get("columns/ids", entry=1)
    assert (late["status"], late["error"]["code"]) == (409, "busy")


def test_clusters_are_named_counted_anew_and_explained(ui_folded: Page) -> None:
    assert ui_folded.get("summary")["entry"] == 1
    named = ui_folded.post("rename", cluster=1, name=MARKUP, entry=1)
    assert named["cluster_names"] == {"1": MARKUP}
    shown = ui_folded.get("summary")
    assert shown["clusters"][1]["name"] == MARKUP
    ui_folded.session._shown = None  # a name is put into what was shown: that is what would be
    assert ui_folded.get("summary") == shown
    done = ui_folded.job("suggest")["answer"]
    assert (done["clusters"], done["suggested"]) == (3, 3)
    done = ui_folded.job("recluster", clusters=2, entry=2)["answer"]
    assert (done["clusters"], done["before"]) == (2, 3)
    assert {event["kind"] for event in done["changes"]["events"]} <= {
        "step",
        "merged",
        "born",
        "grew",
    }
    assert ui_folded.job("recluster", clusters="auto")["answer"]["clusters"] == 3
    told = ui_folded.get("explain", id="p7", top=3)
    assert told["id"] == "p7"
    assert len(told["features"]) == 3
    assert {row["cluster"] for row in ui_folded.get("explain", cluster=1)["features"]} == {1}
    assert ui_folded.get("explain", cluster=1, id="p7")["status"] == 400


def test_undo_names_what_it_takes_back_and_takes_back_no_other(ui_folded: Page) -> None:
    ui_folded.fold("scan", range(60, 150))
    would = ui_folded.get("undo")
    assert would["entry"] == 2
    assert would["said"].startswith("entry 2 (fold of scan")
    wrong = ui_folded.post("undo", entry=1)
    assert (wrong["status"], wrong["error"]["code"]) == (409, "not-usable")
    assert ui_folded.post("undo", entry=2)["views"] == ["labs"]
    assert ui_folded.get("undo")["status"] == 409
    assert [e["here"] for e in ui_folded.get("status", entry=0)["since"]] == [False, True, True]


def test_who_looks_like_another_on_the_page_is_forgotten_and_the_other_is_not(
    ui_page: Page,
) -> None:
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), [f"p{i}" for i in range(40)])
    rows = rows.rename(index={"p1": "a b", "p2": "a\tb"})
    with viewfold.edit(ui_page.session.state, new=viewfold.ViewFold(2, random_state=0)) as model:
        model.partial_fit(rows, view="labs", similar_ids="new")
    lines = ui_page.client.get("/api/columns/ids").text.split("\n")
    (tab,) = (from_line(line) for line in lines if from_line(line) == "a\tb")
    assert ui_page.get("explain", id=tab)["id"] == "a\tb"
    assert ui_page.post("forget", ids=[tab])["forgotten"] == 1
    left = viewfold.load(ui_page.session.state).ids_.tolist()
    assert ("a b" in left, "a\tb" in left) == (True, False)


def test_forget_is_for_good_and_all_or_nothing(ui_folded: Page) -> None:
    before = ui_folded.session.state.read_bytes()
    assert ui_folded.post("forget", ids=["p1", "nobody"])["error"]["code"] == "bad-input"
    assert ui_folded.post("forget", ids=[])["status"] == 400
    assert ui_folded.session.state.read_bytes() == before
    assert ui_folded.post("forget", ids=["p1", "p2"])["samples"] == 88
    assert "p1" not in viewfold.load(ui_folded.session.state).ids_
    assert "cannot be taken back" in ui_folded.get("undo")["error"]["message"]


@pytest.mark.parametrize("path", ["fold", "recluster"])
def test_a_change_that_is_written_is_told_whoever_stops_it_then(
    ui_folded: Page, path: str, monkeypatch: Any
) -> None:
    def slowly(*args: Any) -> Any:
        job = ui_folded.session.worker.latest
        assert job is not None
        job.stopping = True
        job.done(0.5)  # as engines do on their way over many rows
        return changes_since(*args)

    monkeypatch.setattr(_session, "changes_since", slowly)
    said = {"clusters": 4}
    if path == "fold":
        said = {"upload": ui_folded.upload("b.csv", csv("b", range(90))), "id_column": "patient"}
    done = ui_folded.job(path, **said)
    assert (done["state"], done["error"]) == ("done", None)
    assert ui_folded.get("status")["entry"] == 2


def test_a_state_without_a_view_has_no_page_yet(ui_page: Page) -> None:
    viewfold.ViewFold(3).save(ui_page.session.state)
    assert ui_page.get("status")["samples"] == 0
    for path in ("summary", "columns/x", "explain"):
        found = ui_page.get(path)
        assert (found["status"], found["error"]["message"]) == (
            *(404, "s.vf is empty. Fold a file first."),
        )


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow", "xlsx", "jsonl"])
def test_clusters_are_exported_as_the_command_does(ui_folded: Page, ending: str) -> None:
    answer = ui_folded.client.get("/api/export", params={"format": ending})
    assert answer.status_code == 200, answer.text
    assert f'filename="s-clusters.{ending}"' in answer.headers["content-disposition"]
    if ending == "parquet":
        table = pd.read_parquet(io.BytesIO(answer.content)).set_index("id")
        expected = viewfold.load(ui_folded.session.state).to_frame()
        assert table["cluster"].equals(expected["cluster"].astype(table["cluster"].dtype))
    assert list(ui_folded.session.folder.iterdir()) == []
    assert ui_folded.get("export", format="vf")["status"] == 400


# ---- one at a time ------------------------------------------------------------------------------


def test_other_work_has_to_wait_and_work_can_be_stopped(ui_folded: Page, monkeypatch: Any) -> None:
    before, at, go = ui_folded.session.state.read_bytes(), threading.Event(), threading.Event()

    def slow(*args: Any) -> list[Any]:
        at.set()
        go.wait(30)
        return []

    monkeypatch.setattr("viewfold.app.folding._read_views", slow)
    key = ui_folded.upload("scan.csv", csv("scan", range(60, 150)))
    assert ui_folded.post("fold", upload=key)["state"] == "running"
    assert at.wait(30)
    busy = ui_folded.post("rename", cluster=0, name="a")
    assert (busy["status"], busy["error"]["code"]) == (423, "busy")
    assert "at work already" in busy["error"]["message"]
    assert ui_folded.get("status")["job"]["what"] == "fold"
    assert ui_folded.get("summary")["n"] == 90  # looking is always possible
    ui_folded.client.delete("/api/job")
    go.set()
    ui_folded.session.worker.stop()
    assert ui_folded.get("job")["error"]["code"] == "interrupted"
    assert ui_folded.session.state.read_bytes() == before
    assert ui_folded.post("rename", cluster=0, name="a")["cluster_names"] == {"0": "a"}


def test_a_change_is_refused_if_another_program_was_there_since(ui_folded: Page) -> None:
    with viewfold.edit(ui_folded.session.state) as other:
        other.recluster(2)
    found = ui_folded.post("rename", cluster=1, name="a", entry=1)
    assert (found["status"], found["error"]["code"]) == (409, "busy")
    found = ui_folded.job("recluster", clusters=4, entry=1)
    assert "was changed by another program" in found["error"]["message"]
    assert viewfold.load(ui_folded.session.state).n_clusters == 2
    (event,) = ui_folded.get("status", entry=1)["since"]
    assert (event["what"], event["here"]) == ("recluster", False)


def test_while_another_program_writes_nothing_is_lost(ui_folded: Page, monkeypatch: Any) -> None:
    monkeypatch.setattr("viewfold.web.session.SOON", 0.0)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with store.writing(ui_folded.session.state):
            held.set()
            done.wait(30)

    other = threading.Thread(target=hold)
    other.start()
    assert held.wait(30)
    try:
        for path, said in (("undo", {"entry": 1}), ("forget", {"ids": ["p1"]})):
            found = ui_folded.post(path, **said)
            assert (found["status"], found["error"]["code"]) == (423, "busy"), path
    finally:
        done.set()
        other.join()
    assert ui_folded.get("status")["entry"] == 1


def test_two_servers_fold_into_one_state_and_lose_nothing(ui_folded: Page, tmp_path: Path) -> None:
    other = Page(ui_folded.session.state, tmp_path / "others")
    pages = {"scan": ui_folded, "text": other}
    for view, page in pages.items():
        key = page.upload(f"{view}.csv", csv(view, range(60, 150)))
        assert page.post("fold", upload=key, id_column="patient")["state"] == "running"
    for page in pages.values():
        page.session.worker.wait()
        assert page.get("job")["state"] == "done"
    assert sorted(ui_folded.get("status")["views"]) == ["labs", "scan", "text"]
    made = [[e["here"] for e in page.get("status", entry=1)["since"]] for page in pages.values()]
    assert [sorted(one) for one in made] == [[False, True]] * 2
    assert made[0] != made[1]


def test_a_fold_that_waited_in_vain_can_be_tried_again(tmp_path: Path, ui_folded: Page) -> None:
    page = Page(ui_folded.session.state, tmp_path / "others", wait=0)
    key = page.upload("scan.csv", csv("scan", range(60, 150)))
    asked = {"upload": key, "id_column": "patient"}
    with store.writing(ui_folded.session.state):
        assert page.job("fold", **asked)["error"]["code"] == "busy"
        assert page.job("fold", **asked, dry_run=True)["state"] == "done"  # nobody has to wait
    assert page.job("fold", **asked)["state"] == "done"


def test_folders_of_buckets_are_served_too(tmp_path: Path) -> None:
    page = Page(tmp_path / "s.vfd", tmp_path / "uploads")
    assert page.get("status")["exists"] is False
    assert page.fold("labs", range(90), clusters=3)["state"] == "done"
    assert page.fold("scan", range(60, 150))["answer"]["changes"]["new"] == 60
    assert (page.get("status")["entry"], page.get("summary")["n"]) == (2, 150)
    assert page.post("undo", entry=2)["samples"] == 90


def test_without_the_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, said = runner(monkeypatch, capsys)(f"ui {tmp_path / 's.vf'} --no-browser")
    assert code == 8
    assert "pip install 'viewfold[ui]'" in said


def test_a_question_opens_the_state_once(ui_folded: Page, monkeypatch) -> None:
    from viewfold.store import file as state_file

    upload = ui_folded.upload("mri.csv", csv("mri", range(50, 200)))
    opened: list[str] = []
    attach = state_file._attach

    def noted(db: Any, path: Path, *how: Any) -> None:
        opened.append(Path(path).name)
        attach(db, path, *how)

    monkeypatch.setattr(state_file, "_attach", noted)
    questions = {
        "status": lambda: ui_folded.get("status"),
        "summary": lambda: ui_folded.get("summary"),
        "explain": lambda: ui_folded.get("explain", id="p3"),
        "changes": lambda: ui_folded.get("changes", entry=1),
        "inspect": lambda: ui_folded.job("inspect", upload=upload, id_column="patient"),
        "suggest": lambda: ui_folded.job("suggest"),
        "undo": lambda: ui_folded.get("undo"),
        "export": lambda: ui_folded.client.get("/api/export"),
    }
    state = Path(ui_folded.session.state).name
    found = {}
    for name, ask in questions.items():
        opened.clear()
        ask()
        found[name] = opened.copy()
    assert found == {name: [state] for name in questions}
    opened.clear()
    for known in ("status", "summary"):
        ui_folded.get(known)
    assert opened == []
