"""`viewfold ui` in a browser: from a dropped file to undo, two people at once, markup as text."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from browser_tabs import keep_picture
from ui_pages import MARKUP, csv, server

import viewfold


class Tab:
    """A window of the page, which must not complain, ask elsewhere or run what is in data."""

    def __init__(self, browser: Any, address: str) -> None:
        size = {"width": 1300, "height": 900}
        self.page = browser.new_page(viewport=size, reduced_motion="reduce")
        self.page.set_default_timeout(60_000)
        self.wrong: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda box: (self.wrong.append(box.message), box.dismiss()))
        self.page.on("request", self._asked)
        self.own = address.partition("#")[0]
        self.page.goto(address)
        self.button("Add a file").wait_for()

    def _heard(self, message: Any) -> None:
        if message.type == "error":
            self.wrong.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.own, "data:", "blob:")):
            self.wrong.append(request.url)

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name)

    def field(self, name: str) -> Any:
        return self.page.locator(".panel").get_by_label(name, exact=True)

    def give(self, name: str, content: bytes, *, drop: bool = False) -> None:
        """Choose a file, or drop it on the page; wait until it was understood."""
        if drop:
            self.page.evaluate(
                """([name, text]) => {
                    const data = new DataTransfer();
                    data.items.add(new File([text], name));
                    for (const kind of ["dragover", "drop"])
                        document.body.dispatchEvent(new DragEvent(kind,
                            { dataTransfer: data, bubbles: true, cancelable: true }));
                }""",
                [name, content.decode()],
            )
        else:
            file = {"name": name, "mimeType": "text/csv", "buffer": content}
            self.page.locator("input[type=file]").set_input_files(file)
        self.button("Fold it").wait_for()

    def fold(self) -> None:
        self.button("Fold it").click()
        self.button("Done").wait_for()
        self.page.locator("#clusters tbody tr").first.wait_for()

    def says(self, words: str) -> Any:
        return self.page.get_by_text(words).first.wait_for()

    def shoot(self, name: str) -> None:
        """Look at both widths: nothing is wider than a phone."""
        for width in (1300, 390):
            self.page.set_viewport_size({"width": width, "height": 900})
            wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert self.page.evaluate(wide) <= 0, (name, width)
            keep_picture(self.page, f"ui-{name}-{width}")
        self.page.set_viewport_size({"width": 1300, "height": 900})

    def close(self) -> None:
        assert self.wrong == []
        self.page.close()


@pytest.mark.slow
def test_from_a_dropped_file_to_undo(chromium: Any, tmp_path: Path) -> None:
    state = tmp_path / "patients.vf"
    with server(state) as (address, _):
        tab = Tab(chromium, address)
        assert tab.page.url == tab.own  # the token is not in the address any more
        tab.says("Drop a file here")
        tab.shoot("empty")
        tab.give("labs.csv", csv("labs", range(90)), drop=True)
        tab.says("column “patient”, as it seems")
        tab.shoot("understood")
        tab.field("clusters").fill("3")
        tab.fold()
        tab.button("Done").click()
        tab.give("scan.csv", csv("scan", range(60, 150)))
        tab.says("30 known, 60 new")
        tab.field("view").fill("mri")
        tab.button("Try it, change nothing").click()
        tab.says("What would happen")
        assert len(viewfold.load(state).views_) == 1
        tab.fold()
        tab.says("150 samples · 2 views · 3 clusters")
        tab.page.locator("#views tbody tr").nth(1).wait_for()
        tab.shoot("moved")
        clusters_named_and_counted(tab)
        tab.button("Undo …").click()
        tab.says("This takes back entry 4 (recluster to 2")
        tab.shoot("undo")
        tab.button("Take it back").click()
        tab.says("150 samples · 2 views · 3 clusters")
        model = viewfold.load(state)
        assert [view.name for view in model.views_] == ["labs", "mri"]
        assert model.cluster_names_ == {1: "late responders"}
        tab.page.reload()  # the tab still has the token
        tab.says("late responders")
        tab.close()


def clusters_named_and_counted(tab: Tab) -> None:
    tab.button("Rename cluster 1").click()
    tab.page.get_by_label("Name of cluster 1").fill("late responders")
    tab.page.keyboard.press("Enter")
    tab.page.locator("#clusters .name", has_text="late responders").wait_for()
    tab.button("Clusters …").click()
    tab.button("Which number stands out?").click()
    tab.says("3 clusters stand out most")
    tab.shoot("clusters")
    tab.field("clusters").fill("2")
    tab.button("Find clusters").click()
    tab.says("There are 2 clusters now; there were 3.")
    with tab.page.expect_download() as got:
        tab.button("Export …").click()
        tab.button("Download").click()
    assert got.value.suggested_filename == "patients-clusters.csv"
    lines = Path(got.value.path()).read_text().splitlines()
    assert (
        lines[0] == "id,cluster,confidence,novelty,hangs_on,views_seen"
    )  # the name went with its cluster
    assert len(lines) == 151


@pytest.mark.slow
def test_two_people_at_once_lose_nothing_and_see_each_other(chromium: Any, tmp_path: Path) -> None:
    state = tmp_path / "patients.vf"
    with server(state) as (one, _), server(state) as (other, _):
        first, second = Tab(chromium, one), Tab(chromium, other)
        first.give("labs.csv", csv("labs", range(90)))
        first.field("clusters").fill("3")
        first.fold()
        second.says("patients.vf was changed by another program: fold of labs")
        second.shoot("changed")
        second.button("Show it as it is now").click()
        second.says("90 samples · 1 view · 3 clusters")
        first.button("Done").click()
        for tab, view in ((first, "scan"), (second, "text")):
            tab.give(f"{view}.csv", csv(view, range(60, 150)))
        for tab in (first, second):  # both at the same time
            tab.button("Fold it").click()
        for tab in (first, second):
            tab.button("Done").wait_for()
        assert {view.name for view in viewfold.load(state).views_} == {"labs", "scan", "text"}
        with viewfold.store.writing(state):
            first.says("Another program is writing")
        second.button("Done").click()
        viewfold.undo(state)
        second.says("was changed by another program")
        second.button("Rename cluster 0").click()
        second.page.get_by_label("Name of cluster 0").fill("mine")
        second.page.keyboard.press("Enter")
        second.says("Nothing was done: look at it again first.")
        second.wrong = [line for line in second.wrong if "409" not in line]
        for tab in (first, second):
            tab.close()


@pytest.mark.slow
def test_markup_in_files_ids_views_and_clusters_is_text(chromium: Any, tmp_path: Path) -> None:
    state, script = tmp_path / "s.vf", "<script>alert(1)</script>"
    content = csv("labs", range(60), ids=MARKUP + "{}").replace(b"labs0", script.encode())
    (tmp_path / "labs.csv").write_bytes(content)
    with viewfold.edit(state, new=viewfold.ViewFold(2, random_state=0)) as model:
        model.partial_fit(tmp_path / "labs.csv", ids="patient", view=f"{script}{MARKUP}")
        model.rename(0, MARKUP)
    with server(state) as (address, _):
        tab = Tab(chromium, address)
        tab.page.locator("#clusters .name", has_text=MARKUP).wait_for()
        tab.give(f"{MARKUP}.csv", content)
        tab.says(f"Add {MARKUP}.csv")
        tab.says(f"View “{MARKUP}”")
        tab.button("Leave it").click()
        tab.says("Written by viewfold")  # the end of the page
        tab.page.get_by_label("Find").fill(f"{MARKUP}7")
        tab.page.keyboard.press("Enter")
        tab.button("Why here?").click()
        tab.page.locator(".selection pre").wait_for()
        tab.page.get_by_role("button", name="Forget", exact=True).click()
        tab.says("This cannot be undone.")
        tab.shoot("forget")
        tab.button("Forget 1 sample for good").click()
        tab.says("1 sample forgotten; 59 samples left.")
        assert tab.page.locator("img[src=x]").count() == 0
        assert tab.page.evaluate("document.scripts.length") == 2
        tab.close()


@pytest.mark.slow
def test_what_turns_text_around_is_shown_and_does_not(chromium: Any, tmp_path: Path) -> None:
    name = "fdp\u202eexe"
    content = csv("labs", range(60), ids=name + "{}").replace(b"labs0", name.encode())
    (tmp_path / "labs.csv").write_bytes(content)
    with viewfold.edit(tmp_path / "s.vf", new=viewfold.ViewFold(2, random_state=0)) as model:
        model.partial_fit(tmp_path / "labs.csv", ids="patient", view=name)
    with server(tmp_path / "s.vf") as (address, _):
        tab = Tab(chromium, address)
        tab.says("Written by viewfold")  # the end of the page

        def check() -> None:
            assert "\u202e" not in tab.page.locator("body").inner_text()
            assert "\u202e" not in tab.page.title()
            hidden = tab.page.locator("[title*='\u202e'], [aria-label*='\u202e']")
            assert hidden.count() == 0

        check()
        tab.give(f"{name}2.csv", content)
        tab.says(r"Add fdp\u202eexe2.csv")
        tab.says(r"View “fdp\u202eexe2”")
        check()
        tab.button("Leave it").click()
        tab.page.get_by_label("Find").fill(r"fdp\u202eexe7")
        tab.page.keyboard.press("Enter")
        tab.button("Why here?").click()
        tab.page.locator(".selection pre").wait_for()
        check()
        tab.button("Undo").click()
        tab.says("This takes back")
        check()
        tab.close()


@pytest.mark.slow
def test_the_page_is_loaded_again_after_a_link_to_a_section(chromium: Any, tmp_path: Path) -> None:
    (tmp_path / "labs.csv").write_bytes(csv("labs", range(90)))
    with viewfold.edit(tmp_path / "s.vf", new=viewfold.ViewFold(3, random_state=0)) as model:
        model.partial_fit(tmp_path / "labs.csv", ids="patient")
    with server(tmp_path / "s.vf") as (address, _):
        tab = Tab(chromium, address)
        tab.says("Written by viewfold")  # the end of the page
        tab.page.get_by_role("link", name="Clusters").click()
        assert tab.page.evaluate("location.hash") == "#clusters"
        for _ in range(2):
            tab.page.reload()
            tab.says("Written by viewfold")
        tab.close()


@pytest.mark.slow
def test_a_state_that_is_replaced_or_gone_is_told_as_that(chromium: Any, tmp_path: Path) -> None:
    state, other = tmp_path / "s.vf", tmp_path / "other.vf"
    for path, view in ((state, "labs"), (other, "scan")):
        (tmp_path / f"{view}.csv").write_bytes(csv(view, range(90)))
        with viewfold.edit(path, new=viewfold.ViewFold(3, random_state=0)) as model:
            model.partial_fit(tmp_path / f"{view}.csv", ids="patient")
        time.sleep(1.1)  # entries are told by the second
    with server(state) as (address, _):
        tab = Tab(chromium, address)
        tab.says("Written by viewfold")  # the end of the page
        other.replace(state)
        tab.says("s.vf was changed by another program.")
        tab.button("Show it as it is now").click()
        tab.says("last: fold of scan")
        tab.page.locator("#views table", has_text="scan").wait_for()
        state.unlink()
        tab.says("s.vf is not there any more.")
        tab.button("Show it as it is now").click()
        tab.says("Drop a file here")
        tab.close()


def test_ctrl_c_ends_the_server_and_leaves_nothing(tmp_path: Path) -> None:
    import urllib.request

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / ".viewfold-ui.abcdefgh.part").mkdir()  # of a server that was killed
    with server(tmp_path / "s.vf", scratch) as (address, process):
        base, _, token = address.partition("#")
        request = urllib.request.Request(
            f"{base}api/uploads?name=labs.csv",
            csv("labs", range(90)),
            {"Authorization": f"Bearer {token}"},
            method="PUT",
        )
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 201
        (folder,) = scratch.iterdir()
        assert len(list(folder.iterdir())) == 1
        assert folder.stat().st_mode & 0o077 == 0
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "Traceback" not in said
    assert list(scratch.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["scratch"]
