"""A state behind the server of `viewfold ui`, and who asks it."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from children import start

import viewfold

PORT, TOKEN = 8765, "the-token"
ADDRESS = f"http://127.0.0.1:{PORT}"
MARKUP = "<img src=x onerror=alert(1)>"


def csv(view: str, samples: range, *, clusters: int = 3, ids: str = "p{}") -> bytes:
    """A view of clear clusters as a CSV file; samples have the same cluster in every view."""
    rng = np.random.default_rng(sum(map(ord, view)))
    y = np.arange(200) % clusters
    X = 5 * rng.normal(size=(clusters, 5))[y] + rng.normal(size=(200, 5))
    index = pd.Index([ids.format(i) for i in range(200)], name="patient")
    frame = pd.DataFrame(X, index, [f"{view}{j}" for j in range(5)])
    buffer = io.StringIO()
    frame.iloc[list(samples)].round(4).to_csv(buffer)
    return buffer.getvalue().encode()


class Page:
    """What a page does, without a browser."""

    def __init__(self, state: Path, folder: Path, **settings: Any) -> None:
        from starlette.testclient import TestClient

        from viewfold.web.routes import app_of
        from viewfold.web.server import Guard
        from viewfold.web.session import Session, Settings

        folder.mkdir(exist_ok=True)
        self.session = Session(state, folder, Settings(**settings))
        guard = Guard(app_of(self.session), PORT, TOKEN)  # type: ignore[arg-type]
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self.client = TestClient(guard, base_url=ADDRESS, headers=headers)  # type: ignore[arg-type]

    def get(self, path: str, /, **said: Any) -> Any:
        return self._told(self.client.get(f"/api/{path}", params=said))

    def post(self, path: str, /, **said: Any) -> Any:
        return self._told(self.client.post(f"/api/{path}", json=said))

    @staticmethod
    def _told(answer: Any) -> Any:
        facts = answer.json()
        return {"status": answer.status_code, **facts} if answer.status_code >= 400 else facts

    def upload(self, name: str, content: bytes) -> str:
        answer = self.client.put("/api/uploads", params={"name": name}, content=content)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["upload"])

    def job(self, path: str, /, **said: Any) -> Any:
        """Begin something, and wait for what comes of it."""
        begun = self.post(path, **said)
        if begun.get("error"):
            return begun
        while True:
            found = self.get("job")
            assert found["job"] == begun["job"]
            if found["state"] != "running":
                return found
            time.sleep(0.02)

    def fold(self, view: str, samples: range, **said: Any) -> Any:
        said = {"id_column": "patient", **said}
        return self.job("fold", upload=self.upload(f"{view}.csv", csv(view, samples)), **said)


# As `viewfold`, but drawing less often where many draws make a better number, not another kind.
FEW_DRAWS = """
import sys, tempfile
tempfile.tempdir = sys.argv.pop(1)
from viewfold import cli
from viewfold.estimators import answers, selection
from viewfold.method.clusters import stability_table
from viewfold.web import layout
selection.TREES = 8
layout.tsne = lambda rows: rows[:, :2]
answers.stability_table = lambda *asked: stability_table(*asked[:3], 2, asked[4])
cli.main()
"""


@contextmanager
def server(state: Path, scratch: Path | None = None) -> Iterator[tuple[str, Any]]:
    """Run `viewfold ui` in a process of its own; give its address and the process."""
    process = start(FEW_DRAWS, scratch or tempfile.gettempdir(), "ui", state, "--no-browser")
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + process.stderr.read()
        yield found[0], process
        if process.poll() is None:
            process.terminate()
            _, said = process.communicate(timeout=60)
            assert (process.returncode, "Traceback" in said) == (0, False), said
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def ui_page(tmp_path: Path) -> Page:
    """A page of a state that is not there yet."""
    return Page(tmp_path / "s.vf", tmp_path / "uploads")


@pytest.fixture(scope="session")
def _one_view(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ui")
    Path(folder, "labs.csv").write_bytes(csv("labs", range(90)))
    with viewfold.edit(folder / "s.vf", new=viewfold.ViewFold(3, random_state=0)) as model:
        model.partial_fit(folder / "labs.csv", ids="patient")
    return folder / "s.vf"


@pytest.fixture
def ui_folded(_one_view: Path, ui_page: Page) -> Page:
    """A page of a state with one view."""
    shutil.copy(_one_view, ui_page.session.state)
    return ui_page
