"""What a file must not tell: the attacks of privacy_attacks.py, and a few more, find nobody."""

import hashlib
import json
import struct
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from conftest import Data
from every_estimator import folded, folded_once
from privacy_attacks import (
    best_guess,
    by_subtraction,
    guessed,
    held,
    knowing,
    membership,
    off_span,
    standardised,
)
from privacy_attacks import to_landmarks as distance
from scipy import sparse
from test_cli import Run, run  # noqa: F401

import viewfold
from viewfold import FCMVC, ViewFold
from viewfold._util.constants import FEWEST
from viewfold.datasets import load_digits_views
from viewfold.datasets.missing import at_random, by_mask
from viewfold.method import balanced
from viewfold.method.landmarks import groups_of_ten
from viewfold.rows import LocalEngine, block_bytes
from viewfold.state.evidence import NONE

Written = Callable[[Any, int], Path]
FRESH = 200
SIZES = [30, 60, 400, 1797]


def people(n: int, d: int = 40) -> np.ndarray:
    """Rows of three clusters, the last of them of people who are never folded."""
    rng = np.random.default_rng(n)
    n += FRESH
    latent = 3 * rng.normal(size=(3, 8))[rng.integers(3, size=n)] + rng.normal(size=(n, 8))
    return latent @ rng.normal(size=(8, d)) + rng.normal(size=(n, d)) + 50


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Return what makes a state of some people, once, and forgets a third of them."""
    return cache(lambda kind, n: _write(kind, n, tmp_path_factory.mktemp("written") / "model.vf"))


def names(n: int) -> list[str]:
    """Return ids that are too long to be met in a file by chance."""
    return [f"patient-{i:05}" for i in range(n)]


def _write(kind: Any, n: int, path: Path) -> Path:
    """Fold two views in two steps, so that there is something to undo; forget some."""
    X, ids, gone = people(n)[:n], names(n), n // 3
    with viewfold.edit(path, new=kind(3, n_init=2, random_state=0)) as one:
        one.partial_fit(X, ids=ids, view="labs")
    with viewfold.edit(path) as one:
        one.partial_fit(X[:, ::2] ** 2, ids=ids, view="scan")
    with viewfold.edit(path) as one:
        one.forget(ids[:gone])
    return path


@pytest.mark.parametrize("n", SIZES)
def test_no_landmark_is_a_sample_that_was_forgotten(n: int, written: Written) -> None:
    X, path = people(n), written(ViewFold, n)
    for schema in ("main", "undo"):
        file = knowing(held(path, schema), 1, X[:n])
        forgotten, fresh = (distance(rows, file, 1) for rows in (X[: n // 3], X[n:]))
        assert forgotten.min() > 0.5 * fresh.min()  # a tenth of a mean is the row itself
        assert np.median(forgotten) > 0.85 * np.median(fresh)


@pytest.mark.parametrize("n", SIZES)
def test_the_kept_directions_do_not_span_those_who_were_folded(n: int, written: Written) -> None:
    X, path = people(n), written(ViewFold, n)
    file = knowing(held(path), 1, X[:n])
    assert file["encoder/1/directions"].shape[1] <= n // FEWEST
    forgotten, fresh = (off_span(rows, file, 1) for rows in (X[: n // 3], X[n:]))
    if n < 400:  # then 40 directions are all there are
        assert forgotten.min() > 0.5 * np.median(fresh)
    assert membership(forgotten, fresh) < 0.8


@pytest.mark.parametrize(
    ("kind", "n", "views"),
    [
        (kind, n, 1 if (i + j) % 2 else 3)  # every pair of two of the three
        for i, kind in enumerate([ViewFold, FCMVC])
        for j, n in enumerate(SIZES[:3])
    ],
)
def test_the_embedding_does_not_tell_a_row_that_is_missing(kind: Any, n: int, views: int) -> None:
    X = people(n)[:n]
    model = kind(6, random_state=0)
    for i in range(views):
        model.partial_fit(X[:, i : i + 20], ids=[f"p{j}" for j in range(n)], view=f"view{i}")
    guesses = [best_guess(deepcopy(model), i) for i in range(10)]
    assert np.mean(guesses) < 0.5
    assert max(guesses) < 0.99


def test_a_row_is_not_what_the_others_lack_of_the_mean(tmp_path: Path) -> None:
    X = next(iter(load_digits_views().views.values()))[:30].astype(np.float64)
    model = ViewFold(3, random_state=0).fit({"labs": X})
    error, energy = 0.0, 0.0
    for i in range(3):
        deepcopy(model).forget([i]).save(tmp_path / "model.vf")
        row = standardised(X[i], knowing(held(tmp_path / "model.vf"), 1, X), 1)
        error += ((by_subtraction(tmp_path / "model.vf", 1, X) - row) ** 2).sum()
        energy += (row**2).sum()
    assert error > 0.9 * energy


@pytest.mark.parametrize(
    ("kind", "n"), [*((ViewFold, n) for n in SIZES), (FCMVC, SIZES[0]), (FCMVC, SIZES[2])]
)
def test_no_number_of_a_forgotten_sample_is_in_the_file(
    kind: Any, n: int, written: Written
) -> None:
    X, gone, path = people(n)[:n], n // 3, written(kind, n)
    before = folded(kind(3, n_init=2, random_state=0), {"labs": (X, names(n))})
    rows = [X[:gone], before.embedding_[:gone]]
    rows += [standardised(X[:gone], knowing(held(path), 1, X), 1)] if kind is ViewFold else []
    content = path.read_bytes()
    numbers = np.concatenate([one.ravel() for one in rows])
    for sample in numbers[:: max(numbers.size // 500, 1)]:
        assert struct.pack("d", sample) not in content
    for schema in ("main", "undo"):
        found = np.concatenate([array.ravel() for array in held(path, schema).values()])
        assert not np.isin(numbers, found).any()
        for one in rows:  # nor anything near a row, among arrays that have room for one
            for array in held(path, schema).values():
                for table in (array, array.T):
                    if table.ndim == 2 and table.shape[1] == one.shape[1] and len(table):
                        apart = np.linalg.norm(one[:, None] - table, axis=2).min(axis=1)
                        assert (apart > 1e-6 * np.linalg.norm(one, axis=1)).all()
    assert not [name for name in names(n)[:gone] if name.encode() in content]
    with duckdb.connect(str(path), read_only=True) as db:  # which may compress what it holds
        for schema in ("main", "undo"):
            left = db.sql(f"SELECT id FROM {schema}.samples").fetchall()
            assert sorted(left) == [(name,) for name in names(n)[gone:]]


def test_landmarks_are_means_of_ten_samples() -> None:
    for n in (10, 19, 20, 30, 95, 400, 2500):
        rng = np.random.default_rng(n)
        cells = rng.integers(min(n, 400), size=n)
        rows = rng.normal(size=(n, 5))
        total, size = np.zeros((400, 5)), np.bincount(cells, minlength=400)
        np.add.at(total, cells, rows)
        group = groups_of_ten(total, size)
        members = np.bincount(group, size)
        assert members.min() >= FEWEST
        assert len(members) >= n // (2 * FEWEST)
        view = ViewFold(2, random_state=0).fit(np.vstack([rows, rows[:3] + 1])).views_[0]
        assert len(view.encoder.encode.landmarks.points) <= (n + 3) // FEWEST


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_the_centre_of_a_cluster_is_forgotten_with_its_last_sample(kind: Any) -> None:
    X = people(60)[:60]
    model = kind(4, random_state=0).fit({"labs": X})
    *others, last = np.flatnonzero(model.labels_ == 2)
    model.forget(others)
    labels = dict(zip(model.ids_, model.labels_, strict=True))
    assert (model.labels_ == 2).sum() == 1
    model.forget([last])
    assert model.labels_.tolist() == [labels[i] for i in model.ids_]
    centers = model.cluster_centers_
    assert np.linalg.norm(centers[2]) > 100 * np.linalg.norm(centers[[0, 1, 3]], axis=1).max()
    assert 2 not in model.predict(X)
    assert np.isfinite(model.to_frame()["confidence"]).all()
    model.partial_fit(X[:, :9], view="scan")
    assert model.ids_.size == 60


def test_clusters_depend_on_the_samples_that_are_left_only(data: Data) -> None:
    gone = ["s3", "s50", "s100"]
    one = folded_once(ViewFold(4, random_state=0), data).forget(gone)
    rows = one.embedding_.copy()
    # Whoever has the rows and labels that are left can make projection and centres himself.
    again = one._method().settle(LocalEngine(), rows, one.labels_, n_clusters=4)
    assert np.array_equal(again.centers, one._state.clusters.centers)
    assert np.array_equal(again.projection, one._state.clusters.projection)


def test_a_rare_word_is_not_told_from_one_that_ten_documents_have() -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.05, size=(200, 300))
    counts[:, :12] = 0
    for i in range(12):
        counts[rng.choice(200, i, replace=False), i] = 1
    idf = ViewFold(2).fit(sparse.csr_array(counts)).views_[0].encoder.encode.project.text.idf
    assert (idf[:11] == idf[0]).all()
    assert idf[11] < idf[0]


def test_the_mean_of_the_first_block_is_not_kept() -> None:
    X = people(60)[:60] + 1e7
    with block_bytes(2 * 40 * 8):
        project = ViewFold(3).fit(X).views_[0].encoder.encode.project
    assert np.allclose(project.shift, X.mean(axis=0), rtol=1e-12)
    assert not project.offset.any()


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_fewer_than_ten_samples_leave_no_encoder(kind: Any) -> None:
    X = people(30)
    model = kind(2, random_state=0).partial_fit(X[:30], ids=range(30), view="labs")
    model.partial_fit(X[:9, :7], ids=range(9), view="scan")
    assert [view.encoder is None for view in model.views_] == [False, True]
    with pytest.raises(ValueError, match="fewer than ten samples"):
        model.predict(X[:5, :7], view="scan")
    assert model.predict(X[30:], view="labs").shape == (FRESH,)


def test_encoders_hold_nothing_that_fewer_than_ten_shared_samples_explain() -> None:
    X = people(400)[:400]
    for n_shared in (3, 9, 10, 100):
        view = viewfold.as_view(X[:, ::2] ** 2, ids=np.arange(400) + 400 - n_shared, name="scan")
        known = ViewFold(3, random_state=0).partial_fit(X, ids=range(400))._state
        engine = LocalEngine()
        alignment = engine.join(known.ids, view.ids)
        found = balanced.combine(engine, known, view, alignment, n_components=9)
        # A part of an orthogonal matrix shortens every row; what others explain makes it longer.
        assert (np.linalg.norm(found.linear_map, 2) > 1 + 1e-9) == (n_shared >= FEWEST)


def test_a_fold_gives_the_same_bits_whatever_is_kept() -> None:
    views = {name: X[:500] for name, X in list(load_digits_views().views.items())[:3]}
    gone = at_random(500, 3, ratio=0.3, random_state=0)
    found = []
    for keep in (True, False):
        model = ViewFold(10, random_state=0, keep_encoders=keep)
        for view in by_mask(views, gone):
            model.partial_fit(view)
        found.append(hashlib.sha256(model.embedding_.tobytes()).hexdigest())
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", [ViewFold, FCMVC])
def test_predictions_are_the_same_after_forgetting_somebody(kind: Any, data: Data) -> None:
    model = folded_once(kind(4, random_state=0), data)
    before = {name: model.predict(X, view=name) for name, X in data.views.items()}
    model.forget(["s3"])
    for name, X in data.views.items():
        assert np.mean(model.predict(X, view=name) == before[name]) > 0.98
    Z = model.embedding_
    products = Z.T @ Z
    assert np.allclose(products, np.diag(np.diagonal(products)), atol=1e-9 * products.max())


def test_to_forget_nobody_changes_nothing(data: Data) -> None:
    model = folded_once(ViewFold(4, random_state=0), data)
    before = model._state
    assert model.forget([])._state is before


# -- private


def test_private_removes_the_encoders_of_earlier_views(data: Data, tmp_path: Path) -> None:
    path, parts = tmp_path / "model.vf", data.parts()
    names = list(parts)
    folded(ViewFold(4, random_state=0), {name: parts[name] for name in names[:2]}).save(path)
    assert any(name.startswith("encoder") for name in held(path))
    with viewfold.edit(path) as model:
        model.set_params(keep_encoders=False)
        X, ids = parts[names[2]]
        model.partial_fit(X, ids=ids, view=names[2])
        assert all(view.encoder is None for view in model.views_)
    for schema in ("main", "undo"):
        assert sorted(held(path, schema)) == ["centers", "embedding", "projection", "scatter"]
    back = viewfold.undo(path)
    assert not back.keep_encoders
    with pytest.raises(ValueError, match="has no encoder"):
        back.predict(parts[names[0]][0], view=names[0])


def test_a_model_that_is_to_keep_no_encoders_writes_none(data: Data, tmp_path: Path) -> None:
    model = folded_once(ViewFold(4, random_state=0), data).set_params(keep_encoders=False)
    model.save(tmp_path / "model.vf")
    assert sorted(held(tmp_path / "model.vf")) == ["centers", "embedding", "projection", "scatter"]
    file = tmp_path / "other.vf"
    folded_once(ViewFold(4, random_state=0), data).save(file)
    with viewfold.edit(file) as one:
        one.set_params(keep_encoders=False)
    assert sorted(held(file)) == ["centers", "embedding", "projection", "scatter"]


def test_status_and_add_say_per_view_whether_an_encoder_is_kept(
    run: Run,  # noqa: F811
    data: Data,
    tmp_path: Path,
) -> None:
    for name, (X, ids) in data.parts().items():
        rows = "\n".join(f"{i},{','.join(map(str, row))}" for i, row in zip(ids, X, strict=True))
        header = ",".join(["id", *(f"{name}{j}" for j in range(X.shape[1]))])
        (tmp_path / f"{name}.csv").write_text(f"{header}\n{rows}\n")
    assert run("add q.vf labs.csv --id id --clusters 4")[0] == 0

    def kept() -> tuple[bool, list[bool]]:
        status = json.loads(run("status q.vf --json")[1])
        return status["private"], [view["encoder"] for view in status["views"]]

    assert kept() == (False, [True])
    answer = json.loads(run("add q.vf scan.csv --id id --private --json")[1])
    assert (answer["private"], answer["encoders_removed"]) == (True, ["labs"])
    assert kept() == (True, [False, False])
    code, _, said = run("add q.vf text.csv --id id")
    assert code == 0
    assert "removed" not in said
    assert kept() == (True, [False, False, False])
    with duckdb.connect(tmp_path / "q.vf", read_only=True) as db:
        for schema in ("main", "undo"):
            arrays = f"SELECT count(*) FROM {schema}.arrays WHERE name LIKE 'encoder%'"
            assert db.sql(arrays).fetchall() == [(0,)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "no encoder" in run("predict q.vf labs.csv --id id --view labs")[2]


@pytest.mark.parametrize(("n_bits", "least", "most"), [(3, 1, 1), (8, 0.98, 1), (20, 0.03, 0.1)])
def test_rows_are_guessed_from_hashes_as_the_docs_say(
    n_bits: int, least: float, most: float
) -> None:
    """Sixteen bits leave 16 candidates for a row of 20 bits; of few rows they hide none."""
    assert least <= guessed(n_bits, short=True) <= most
    assert guessed(n_bits, short=False) >= 0.99


def test_making_a_state_private_removes_the_hashes_of_a_small_view(tmp_path: Path) -> None:
    X, path = np.random.default_rng(0).normal(size=(8, 3)), tmp_path / "small.vf"
    model = ViewFold(2, random_state=0).partial_fit(X, view="labs")
    assert model._fitted.fingerprints.any()
    model.set_params(keep_encoders=False).save(path)
    state = viewfold.load(path)._fitted
    assert not state.fingerprints.any()
    assert (state.evidence == NONE).all()
    assert state.directions is None


def test_a_private_file_gives_no_hash_to_guess_by(tmp_path: Path) -> None:
    X = np.random.default_rng(0).integers(2, size=(400, 3)).astype(float)
    for private in (False, True):
        path = tmp_path / f"{private}.vf"
        model = ViewFold(2, random_state=0, keep_encoders=not private)
        model.partial_fit(X, ids=[f"p{i}" for i in range(400)], view="yes", empty_rows="keep")
        model.save(path)
        with duckdb.connect(str(path), read_only=True) as db:
            rows = db.sql("SELECT fingerprints FROM samples").fetchall()
        prints = np.array([row for (row,) in rows])
        assert prints.any() != private
        assert prints.max() < 2**16
