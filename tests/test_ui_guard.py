"""The server of `viewfold ui`: who may ask, and what the wrong and the hostile get."""

from __future__ import annotations

import errno
import io
import json
import re
import threading
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

pytest.importorskip("starlette")

from report_models import few_draws  # noqa: F401
from ui_pages import MARKUP, PORT, TOKEN, Page, csv

from viewfold.web.jobs import Job
from viewfold.web.routes import _Api
from viewfold.web.server import HEADERS

# ---- who may ask --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": ""},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {TOKEN}é".encode()},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": f"Bearer {TOKEN}", "Origin": "https://example.org"},
        {"Authorization": f"Bearer {TOKEN}", "Origin": "null"},
        {"Authorization": f"Bearer {TOKEN}", "Origin": f"http://localhost:{PORT}"},
        {"Authorization": f"Bearer {TOKEN}", "Origin": f"http://127.0.0.1:{PORT + 1}"},
        {"Authorization": f"Bearer {TOKEN}", "Sec-Fetch-Site": "cross-site"},
        {"Authorization": f"Bearer {TOKEN}", "Sec-Fetch-Site": "same-site"},
        {"Authorization": f"Bearer {TOKEN}", "Host": f"rebound.example.org:{PORT}"},
        {"Authorization": f"Bearer {TOKEN}", "Host": f"127.0.0.1:{PORT + 1}"},
        {"Authorization": f"Bearer {TOKEN}", "Host": "127.0.0.1"},
    ],
)
def test_strangers_are_refused_at_every_address(ui_page: Page, headers: dict[str, Any]) -> None:
    ui_page.client.headers = {}
    for method, path, _ in _Api(ui_page.session).table():
        answer = ui_page.client.request(method, f"/api/{path}", headers=headers)
        assert answer.status_code == 403, path
        assert answer.json()["error"]["code"] == "refused"
        assert HEADERS.items() <= dict_of(answer.headers).items()
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert list(ui_page.session.folder.iterdir()) == []


@pytest.mark.parametrize("name", ["Host", "Authorization", "Origin"])
@pytest.mark.parametrize("wrong", ["first", "second", "none"])
def test_a_header_that_decides_is_there_once(ui_page: Page, name: str, wrong: str) -> None:
    own = {
        "Host": f"127.0.0.1:{PORT}",
        "Authorization": f"Bearer {TOKEN}",
        "Origin": f"http://127.0.0.1:{PORT}",
    }
    values = [own[name], own[name]]
    if wrong != "none":
        values[wrong == "second"] = "evil.example"
    ui_page.client.headers = {}
    rest = [(key, value) for key, value in own.items() if key != name]
    ask = partial(ui_page.client.get, "/api/status")
    assert ask(headers=[*rest, (name, own[name])]).status_code == 200
    twice = ask(headers=[*rest, *((name, value) for value in values)])
    same_origins = (name, wrong) == ("Origin", "none")  # of which none is another page's
    assert twice.status_code == (200 if same_origins else 403)


def dict_of(headers: Any) -> dict[str, str]:
    return {name: headers[name] for name in HEADERS if name in headers}


def test_the_page_itself_is_let_in_under_both_names_of_this_machine(ui_page: Page) -> None:
    for name in ("127.0.0.1", "localhost"):
        host = f"{name}:{PORT}"
        more = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
        answer = ui_page.client.get("/api/status", headers=more)
        assert answer.status_code == 200
        assert HEADERS.items() <= dict_of(answer.headers).items()


def test_the_shell_needs_no_token_and_holds_nothing(ui_folded: Page) -> None:
    ui_folded.client.headers = {}
    for path in ("/", "/page.js", "/ui.js", "/ui.css", "/page.css"):
        answer = ui_folded.client.get(path)
        assert answer.status_code == 200, path
        assert HEADERS.items() <= dict_of(answer.headers).items()
        assert "s.vf" not in answer.text
        for other in ({"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert ui_folded.client.get(path, headers=other).status_code == 403
    assert ui_folded.client.get("/../pyproject.toml").status_code == 404
    shell = ui_folded.client.get("/").text
    assert not re.search(r"<script(?![^>]*src=)|\bon\w+=", shell)


def test_what_is_not_served_is_said_as_json(ui_page: Page) -> None:
    for method, path, status in (("GET", "nowhere", 404), ("POST", "status", 405)):
        answer = ui_page.client.request(method, f"/api/{path}")
        assert answer.status_code == status
        assert answer.json()["error"]["code"] == "not-found"
    simple = ui_page.client.post(
        "/api/forget", content='{"ids": ["p1"]}'
    )  # as a form could send it
    assert simple.status_code == 400
    assert "Content-Type" in simple.json()["error"]["message"]


# ---- wrong, large and hostile -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "said", "message"),
    [
        ("fold", {}, "'upload' is missing"),
        ("fold", {"upload": "../../s.vf"}, "not here any more"),
        ("fold", {"upload": "x", "path": "/etc/passwd"}, "no 'path'"),
        ("fold", {"upload": "x", "clusters": "many"}, "'clusters' should be"),
        ("fold", {"upload": "x", "clusters": True}, "'clusters' should be"),
        ("fold", {"upload": "x", "seed": -1}, "'seed' should be"),
        ("fold", {"upload": "x", "columns": "a"}, "list of texts"),
        ("fold", {"upload": "x", "min_shared": 1.5}, "whole number of samples"),
        ("inspect", {"upload": "x", "decimal": 3}, "'decimal' should be a text"),
        ("rename", {"cluster": 99, "name": "a"}, "99"),
        ("rename", {"cluster": 0, "name": "a" * 61}, "60"),
        ("recluster", {"clusters": 10**6}, "samples"),
        ("forget", {"ids": [1.5]}, "list of sample ids"),
        ("undo", {}, "'entry' is missing"),
        ("suggest", {"from": 3}, "'from' and 'to' go together"),
        ("suggest", {"from": 9, "to": 3}, "'to' is the larger one"),
    ],
)
def test_errors_say_what_is_wrong_and_leave_the_state(
    ui_folded: Page, path: str, said: dict[str, Any], message: str
) -> None:
    before = ui_folded.session.state.read_bytes()
    long = path in ("fold", "inspect", "recluster", "suggest")
    found = (ui_folded.job if long else ui_folded.post)(path, **said)
    assert message in found["error"]["message"]
    assert found["error"]["code"] in ("bad-input", "not-found")
    assert ui_folded.session.state.read_bytes() == before


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("fold", '{"upload": "x", "min_shared": 1e999}'),
        ("fold", '{"upload": "x", "min_shared": NaN}'),
        ("fold", '{"upload": "x", "view": "\\ud800"}'),
        ("rename", '{"cluster": 0, "name": "\\udfff"}'),
        ("rename", "[" * 100_000),
    ],
)
def test_what_could_not_be_answered_is_not_taken(ui_folded: Page, path: str, body: str) -> None:
    kind = {"Content-Type": "application/json"}
    answer = ui_folded.client.post(f"/api/{path}", content=body, headers=kind)
    assert answer.status_code == 400
    assert "no JSON that can be read" in answer.json()["error"]["message"]
    assert ui_folded.get("job")["status"] == 404
    digits = ui_folded.get("status", entry="9" * 5000)
    assert "'entry' should be a whole number" in digits["error"]["message"]


def test_errors_name_the_state_without_its_folder(ui_folded: Page) -> None:
    where = str(ui_folded.session.state.parent)
    worker, hold = ui_folded.session.worker, threading.Event()
    job = Job("fold", f"writing {ui_folded.session.state}")
    job.words = ui_folded.session.named
    thread = worker.start(job, lambda job: {"held": hold.wait(60)})
    busy = ui_folded.post("rename", cluster=0, name="a")
    hold.set()
    thread.join()
    assert busy["error"]["message"].startswith("This page is at work already: writing s.vf.")
    ui_folded.session.state.unlink()
    gone = ui_folded.post("rename", cluster=0, name="a")
    assert "s.vf" in gone["error"]["message"]
    assert where not in gone["error"]["message"]


def test_a_refused_file_stays_for_another_try_and_names_no_folder_of_ours(ui_folded: Page) -> None:
    before = ui_folded.session.state.read_bytes()
    name = f"..\\../etc/{MARKUP}.csv"
    key = ui_folded.upload(name, csv("scan", range(60, 150)))
    failed = ui_folded.job("fold", upload=key, id_column="nobody")
    assert "there is no column 'nobody'" in failed["error"]["message"]
    assert f"{MARKUP}.csv" in failed["error"]["message"]
    assert str(ui_folded.session.folder) not in json.dumps(failed)
    assert ui_folded.session.state.read_bytes() == before
    assert [p.parent for p in ui_folded.session.folder.iterdir()] == [ui_folded.session.folder]
    done = ui_folded.job("fold", upload=key, id_column="patient", view=MARKUP)
    assert done["answer"]["folds"][0]["view"] == MARKUP
    assert ui_folded.get("summary")["views"][1]["name"] == MARKUP


@pytest.mark.usefixtures("quick_pages")
@pytest.mark.parametrize(
    ("name", "shown", "state"),
    [
        ("la\x1b[31mbs.csv", r"la\x1b[31mbs.csv", "s.vf"),
        ("la\u202ebs.csv", r"la\u202ebs.csv", "s.vf"),
        ("la\nbs\0.csv", r"la bs\x00.csv", "s.vfd"),
        ("CON.csv", "CON.csv", "s.vf"),
        ("NUL.csv", "NUL.csv", "s.vf"),
        ("C:a|b<c>?*.csv", "C:a|b<c>?*.csv", "s.vfd"),
        ("labs [2024].csv", "labs [2024].csv", "s.vf"),
        ("-.csv", "-.csv", "s.vf"),
        ("é" * 300 + ".csv", "é" * 251 + ".csv", "s.vfd"),
    ],
)
def test_any_name_of_a_file_is_shown_and_none_is_used_as_a_path(
    tmp_path: Path, name: str, shown: str, state: str
) -> None:
    page = Page(tmp_path / state, tmp_path / "uploads")
    key = page.upload(name, csv("labs", range(90)))
    (path,) = page.session.folder.iterdir()
    assert path.name == f"{key}.csv"
    assert page.job("inspect", upload=key)["answer"]["file"] == shown
    failed = page.job("fold", upload=key, id_column="nobody", clusters=3)
    assert shown in failed["error"]["message"]
    assert failed["error"]["message"].isprintable()
    done = page.job("fold", upload=key, id_column="patient", clusters=3)
    assert done["answer"]["folds"][0]["view"] == shown.removesuffix(".csv")
    assert page.get("summary")["views"][0]["name"]
    assert page.get("status")["samples"] == 90


def test_files_that_cannot_be_read_or_are_too_large_leave_nothing(tmp_path: Path) -> None:
    page = Page(tmp_path / "s.vf", tmp_path / "uploads", limit=1000)
    for name, content, status in (
        ("labs.exe", b"MZ", 400),
        ("labs", b"a,b", 400),
        ("labs.csv", b"", 400),
        ("labs.csv", b"x" * 1001, 413),
    ):
        answer = page.client.put("/api/uploads", params={"name": name}, content=content)
        assert answer.status_code == status, name
    parts = (b"x" * 300 for _ in range(4))  # that does not say how long it is
    answer = page.client.put("/api/uploads", params={"name": "labs.csv"}, content=parts)
    assert answer.status_code == 413
    assert list(page.session.folder.iterdir()) == []
    key = page.upload("labs.parquet", b"PAR1, or so it says")
    assert page.job("inspect", upload=key)["error"]["code"] == "bad-input"
    assert page.client.delete(f"/api/uploads/{key}").json() == {"removed": True}
    assert list(page.session.folder.iterdir()) == []


def test_ids_are_told_as_they_are_and_never_as_markup(ui_page: Page) -> None:
    key = ui_page.upload("labs.csv", csv("labs", range(60), ids=MARKUP + "{}"))
    assert ui_page.job("fold", upload=key, id_column="patient", clusters=3)["state"] == "done"
    answer = ui_page.client.get("/api/columns/ids")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert f"{MARKUP}7" in answer.text.split("\n")
    assert ui_page.get("explain", id=f"{MARKUP}7")["id"] == f"{MARKUP}7"


def test_several_views_of_a_file_are_folded_together(ui_page: Page) -> None:
    buffer, rng = io.BytesIO(), np.random.default_rng(0)
    X = 5 * rng.normal(size=(3, 4))[np.arange(60) % 3] + rng.normal(size=(60, 4))
    np.savez(buffer, labs=X, scan=X[:, ::-1] ** 2)
    key = ui_page.upload("both.npz", buffer.getvalue())
    views = ui_page.job("inspect", upload=key)["answer"]["views"]
    assert [view["view"] for view in views] == ["labs", "scan"]
    done = ui_page.job("fold", upload=key, clusters=3)["answer"]
    assert [fold["view"] for fold in done["folds"]] == ["labs", "scan"]
    buffer = io.BytesIO()
    np.savez(buffer, one=X)
    key = ui_page.upload("third.npz", buffer.getvalue())
    assert ui_page.job("fold", upload=key)["answer"]["folds"][0]["view"] == "third"


def test_twenty_files_wait_and_of_more_the_oldest_that_nobody_uses_goes(ui_page: Page) -> None:
    def waiting() -> list[bool]:
        held = {path.name.removesuffix(".csv") for path in ui_page.session.folder.iterdir()}
        return [key in held for key in keys]

    keys = [ui_page.upload(f"{i}.csv", b"a,b\n1,2\n") for i in range(20)]
    assert waiting() == [True] * 20
    keys.append(ui_page.upload("20.csv", b"a,b\n1,2\n"))
    assert waiting() == [False] + [True] * 20
    assert "not here any more" in ui_page.job("inspect", upload=keys[0])["error"]["message"]
    with ui_page.session.uploads.using(keys[1]):
        keys.append(ui_page.upload("21.csv", b"a,b\n1,2\n"))
        assert waiting() == [False] + [True] * 21  # one is used, and twenty wait
        keys.append(ui_page.upload("22.csv", b"a,b\n1,2\n"))
        assert waiting() == [False, True, False] + [True] * 20
        assert ui_page.client.delete(f"/api/uploads/{keys[1]}").json() == {"removed": False}


@pytest.mark.parametrize("at", ["write", "close"])
def test_a_full_disk_is_said_and_half_a_file_is_not_left(
    ui_folded: Page, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    opened = Path.open

    def full(path: Path, *args: Any, **more: Any) -> Any:
        file = opened(path, *args, **more)
        if path.parent == ui_folded.session.folder:

            def fail(*_: Any) -> None:
                opened_close()
                raise OSError(errno.ENOSPC, "No space left on device", str(path))

            opened_close = file.close
            found = MagicMock(wraps=file)
            found.__enter__ = lambda self: self
            found.__exit__ = lambda self, *_: fail() if at == "close" else opened_close()
            if at == "write":
                found.write.side_effect = fail
            return found
        return file

    before = ui_folded.session.state.read_bytes()
    monkeypatch.setattr(Path, "open", full)
    answer = ui_folded.client.put("/api/uploads", params={"name": "a.csv"}, content=b"a,b\n")
    monkeypatch.undo()
    assert (answer.status_code, answer.json()["error"]["code"]) == (507, "no-space")
    assert answer.json()["error"]["message"].startswith("a.csv was not taken: the disk is full")
    assert str(ui_folded.session.folder) not in answer.text
    assert list(ui_folded.session.folder.iterdir()) == []
    assert ui_folded.upload("a.csv", b"a,b\n")
    assert ui_folded.session.state.read_bytes() == before
