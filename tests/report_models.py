"""Models to draw, and what is found in a page."""

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from viewfold import ViewFold
from viewfold.estimators import answers, selection
from viewfold.method import clusters
from viewfold.state.clusters import Clusters
from viewfold.state.state import State, ViewRecord
from viewfold.web import report

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
        ViewRecord(name, m, 9, m, 0, 1, agreement=None if v == 0 else v / n_views, entry=v + 1)
        for v, (name, m) in enumerate(zip(names, counts, strict=True))
    ]
    state = State(
        ids=np.arange(n),
        embedding=embedding,
        seen=seen,
        history=history.astype(np.int32),
        added=np.ones(n, np.int32),
        fingerprints=np.zeros(seen.shape, np.int32),
        evidence=np.full((n, 0), -128, np.int8),
        novelty=np.zeros(n, np.uint8),
        steps=tuple(range(1, n_views + 1)),
        views=tuple(records),
        clusters=Clusters(np.eye(8), centers[None]),
    )
    return ViewFold(k)._keep(state)


@pytest.fixture(scope="module", autouse=True)
def few_draws() -> Iterator[None]:
    """Draw less often where many draws make a better number, and not another kind of number."""

    def drawn_twice(engine, state, method, n_resamples, seed) -> pd.DataFrame:
        return clusters.stability_table(engine, state, method, min(n_resamples, 2), seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "TREES", 8)
        patch.setattr(answers, "stability_table", drawn_twice)
        yield


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


class Reader(HTMLParser):
    """All tags with their attributes, the text of table rows, and the data of the page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.rows: list[list[str]] = []
        self.scripts: dict[str, str] = {}
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
        tag, attrs = self.tags[-1] if self.tags else ("", {})
        if tag == "script" and "id" in attrs:
            self.scripts.setdefault(attrs["id"], data)
        if self.in_cell:
            self.rows[-1][-1] += data.strip()

    def values(self, name: str) -> list[str]:
        return [attrs[name] for _, attrs in self.tags if name in attrs]

    @property
    def summary(self) -> dict:
        return json.loads(self.scripts["summary"])

    def column(self, name: str) -> np.ndarray | list[str]:
        data = gzip.decompress(base64.b64decode(self.scripts[f"column-{name}"]))
        kind = self.summary["columns"][name]
        if kind == "text":
            return data.decode().split("\n")
        return np.frombuffer(data, {"uint8": "u1", "uint16": "<u2"}[kind])
