"""Public methods in any order, with parameters that change in between.

`test_any_order.py` runs this file in a process of its own: what it looks for may end the process.
"""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from scipy import sparse
from sklearn.exceptions import NotFittedError

import viewfold
from viewfold import FCMVC, ViewFold
from viewfold._util import constants
from viewfold.estimators import selection
from viewfold.estimators.selection import suggest_n_clusters

EXPECTED = ValueError, TypeError, NotFittedError, AttributeError
ROWS = 150
COMMON: dict[str, list[Any]] = {
    "n_init": [1, 3],
    "random_state": [None, 0, 7],
    "keep_encoders": [True, False],
}
OWN: dict[type, dict[str, list[Any]]] = {
    ViewFold: {
        "encoder": ["auto", "linear", "landmarks", "mix"],
        "n_components": [None, 1, 2, 7, 30],
        "scale": ["auto", "zscore", "l2", "tfidf", "counts", None],
    },
    FCMVC: {
        "z_step": ["paper", "exact"],
        "solver": ["auto", "gram", "direct"],
        "scale": ["zscore", None],
        "tol": [0.0, 1e-5, 1.0],
        "max_iter": [1, 3, 100],
    },
}
MOSTLY = st.sampled_from([True, True, True, False])
FEATURES = st.sampled_from([1, 2, 3, 9])
SEEDS = st.integers(0, 3)
KINDS = st.sampled_from(["dense", "dense", "single", "sparse", "counts", "constant"])
PEOPLE = st.sampled_from([(0, 110), (40, 150), (0, 150), (5, 6), (140, 152)])


def rows(seed: int, n: int, d: int, kind: str) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3 * rng.normal(size=(3, d))[np.arange(n) % 3]
    if kind == "constant":
        return np.ones((n, d))
    if kind == "counts":
        return sparse.csr_array(rng.poisson(0.3, size=(n, d)))
    if kind == "sparse":
        return sparse.csr_array(np.where(X > 1, X, 0))
    return X.astype(np.float32) if kind == "single" else X


class AnyOrder(RuleBasedStateMachine):
    """A model, and everything that can be done to it."""

    @initialize(kind=st.sampled_from([ViewFold, FCMVC]), k=st.integers(2, 6), begun=MOSTLY)
    def start(self, kind: type, k: int, begun: bool) -> None:
        constants.TREE = 20  # trees see a part of the rows only
        selection.TREES = 3  # many trees make a better suggestion, not another kind of one
        self.model = kind(k, n_init=3, random_state=0)
        self.new = 1000
        self.checked = None
        if begun:
            self.model.partial_fit(rows(k, ROWS, 9, "dense"), ids=np.arange(ROWS))

    def check(self) -> None:
        """Check what holds whatever was called."""
        state = getattr(self.model, "_state", None)
        if state is None or state is self.checked:
            return
        self.checked = state
        n, k = len(self.model.ids_), len(self.model.cluster_centers_)
        assert self.model.labels_.shape == (n,)
        assert 0 <= self.model.labels_.min() <= self.model.labels_.max() < k
        assert np.isfinite(self.model.embedding_).all()
        history = self.model.history_
        assert history.shape == (n, len(self.model._state.steps))
        assert set(history.columns) >= {record.name for record in self.model.views_}
        assert np.array_equal(history.iloc[:, -1], self.model.labels_)
        frame = self.model.to_frame()
        assert frame["confidence"].between(0, 1).all()

    def attempt(self, call: Any) -> None:
        """Call something; if it raises, nothing has changed."""
        before = getattr(self.model, "_state", None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                call()
            except EXPECTED as error:
                said = str(error)
                if not said or getattr(self.model, "_state", None) is not before:
                    raise AssertionError("an error without words, or with consequences") from error
        self.check()

    def sized(self, which: int) -> tuple[str, int]:
        """Return name and width of a known view."""
        views = self.model.views_
        return views[which % len(views)].name, views[which % len(views)].n_features

    def set_params(self, data: Any) -> None:
        choices = {**COMMON, **OWN[type(self.model)]}
        name = data.draw(st.sampled_from(sorted(choices)))
        self.model.set_params(**{name: data.draw(st.sampled_from(choices[name]))})

    @rule(data=st.data(), seed=SEEDS, d=FEATURES, people=PEOPLE)
    def change_and_fold(self, data: Any, seed: int, d: int, people: tuple[int, int]) -> None:
        self.set_params(data)
        self.partial_fit(seed, d, "dense", people)

    @rule(k=st.sampled_from([1, 2, 3, 5, 8, 200]), seed=SEEDS, d=FEATURES, people=PEOPLE)
    def other_clusters(self, k: int, seed: int, d: int, people: tuple[int, int]) -> None:
        self.model.set_params(n_clusters=k)
        self.partial_fit(seed, d, "dense", people)

    @rule(seed=SEEDS, d=FEATURES, kind=KINDS)
    def fit(self, seed: int, d: int, kind: str) -> None:
        views = [rows(seed, ROWS, d, kind), rows(seed + 1, ROWS, 4, "dense")]
        self.attempt(lambda: self.model.fit(views, ids=[np.arange(ROWS)] * 2))

    @rule(seed=SEEDS, d=FEATURES, kind=KINDS, people=PEOPLE)
    def fold_one(self, seed: int, d: int, kind: str, people: tuple[int, int]) -> None:
        self.partial_fit(seed, d, kind, people)

    def partial_fit(self, seed: int, d: int, kind: str, people: tuple[int, int]) -> None:
        ids = np.arange(*people)
        X = rows(seed, ids.size, d, kind)
        self.attempt(lambda: self.model.partial_fit(X, ids=ids))

    @precondition(lambda self: hasattr(self.model, "_state"))
    @rule(which=st.integers(0, 9), seed=SEEDS, kind=KINDS, people=PEOPLE, few=st.booleans())
    def deliver(self, which: int, seed: int, kind: str, people: tuple[int, int], few: bool) -> None:
        """Give more rows of a known view, then the same ones again: these change nothing."""
        name, d = self.sized(which)
        ids = np.arange(*people)[: 3 if few else None]
        X = rows(seed, ids.size, d, kind)
        before = self.model._state
        self.attempt(lambda: self.model.partial_fit(X, ids=ids, view=name))
        if self.model._state is not before:
            now = self.model._state
            self.attempt(lambda: self.model.partial_fit(X, ids=ids, view=name))
            assert self.model._state is now

    @rule(value=st.sampled_from([np.nan, np.inf, 1e200]))
    def fold_what_is_broken(self, value: float) -> None:
        X = rows(0, ROWS, 4, "dense")
        X[3, 1] = value
        self.attempt(lambda: self.model.partial_fit(X, ids=np.arange(ROWS)))

    @precondition(lambda self: hasattr(self.model, "_state"))
    @rule(which=st.integers(0, 9), seed=SEEDS, n=st.sampled_from([1, 5]))
    def ask(self, which: int, seed: int, n: int) -> None:
        name, d = self.sized(which)
        X = rows(seed, n, d, "dense")
        self.attempt(lambda: self.model.predict(X, view=name))
        self.attempt(lambda: self.model.transform(X, view=name))
        self.attempt(lambda: self.model.predict_frame(X, view=name))
        self.attempt(lambda: self.model.movers(name))

    @precondition(lambda self: hasattr(self.model, "_state"))
    @rule(which=st.integers(0, 9), seed=SEEDS, n=st.sampled_from([1, 5]))
    def extend(self, which: int, seed: int, n: int) -> None:
        name, d = self.sized(which)
        ids = np.arange(self.new, self.new + n)
        self.new += n
        self.attempt(lambda: self.model.extend(rows(seed, n, d, "dense"), ids=ids, view=name))

    @precondition(lambda self: hasattr(self.model, "_state"))
    @rule(most=st.sampled_from([1, 5, 30]), unknown=st.booleans())
    def forget(self, most: int, unknown: bool) -> None:
        ids = [*self.model.ids_[:most].tolist(), *([-5] if unknown else [])]
        self.attempt(lambda: self.model.forget(ids))

    @rule(k=st.sampled_from([0, 1, 2, 5, 8, 200]))
    def recluster(self, k: int) -> None:
        self.attempt(lambda: self.model.recluster(k))

    @rule()
    def ask_too_early_or_not(self) -> None:
        X = np.ones((2, 4))
        for call in (self.model.to_frame, self.model.movers, lambda: self.model.predict(X)):
            self.attempt(call)
        self.attempt(lambda: self.model.seen_)
        self.attempt(lambda: self.model.get_feature_names_out())
        self.attempt(lambda: suggest_n_clusters(self.model, [2, 3]))

    @rule()
    def save_and_load(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.vf"
            self.model.save(path)
            again = viewfold.load(path)
        assert again.get_params() == self.model.get_params()
        if hasattr(self.model, "_state"):
            assert np.array_equal(again.embedding_, self.model.embedding_)
            assert np.array_equal(again.labels_, self.model.labels_)
        self.model = again
        self.check()


SETTINGS = settings(
    max_examples=8,
    stateful_step_count=15,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # shrinking takes minutes, and the steps are short
    suppress_health_check=list(HealthCheck),
)

if __name__ == "__main__":
    warnings.filterwarnings("error", category=RuntimeWarning, module="viewfold")
    run_state_machine_as_test(AnyOrder, settings=SETTINGS)
