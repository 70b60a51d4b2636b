"""What the .vf file promises: an exact copy, plain SQL, and nothing of a view."""

import json
import shutil
import stat
import struct
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from conftest import Data
from every_estimator import ESTIMATORS, folded
from sklearn.base import clone
from store_models import HERE, bits

import viewfold
from commands import runner
from viewfold import FCMVC, ViewFold
from viewfold.store import file
from viewfold.store.tables import FORMAT


# Each of the two methods in both precisions.
@pytest.mark.parametrize(
    ("estimator", "dtype"), [*zip(ESTIMATORS, [np.float32, np.float64] * 2, strict=True)], ids=str
)
def test_save_and_load_equals_never_having_stopped(
    estimator: Any, dtype: Any, data: Data, tmp_path: Path
) -> None:
    straight, stopped = clone(estimator), clone(estimator)
    for name, (X, ids) in data.parts().items():
        straight.partial_fit(X.astype(dtype), ids=ids, view=name)
        stopped.partial_fit(X.astype(dtype), ids=ids, view=name).save(tmp_path / "model.vf")
        stopped = viewfold.load(tmp_path / "model.vf")
        assert bits(stopped) == bits(straight)


def test_everything_a_model_can_hold_comes_back(data: Data, tmp_path: Path) -> None:
    counts = np.random.default_rng(0).poisson(0.05, size=(160, 300)).astype(float)
    frame = pd.DataFrame(data.views["labs"]).add_prefix("lab ")
    for model in (
        ViewFold(4),
        ViewFold(1).fit(data.views),
        ViewFold(4, n_init=1, n_components=5).fit(data.views),
        ViewFold(4, n_init=1, keep_encoders=False).fit(data.views),
        ViewFold(4, n_init=1, scale=None).fit([frame, data.views["scan"], counts]),
        ViewFold(np.int64(4), n_init=1, encoder="landmarks").fit({"né\n'": counts}),
        ViewFold(4, n_init=1, encoder="linear").fit({"counts": counts, "labs": frame}),
        ViewFold(4, n_init=1, n_components=1).fit(
            data.views["labs"], ids=[*range(80), *map(str, range(80))], similar_ids="new"
        ),
        FCMVC(4, n_init=1, random_state=np.random.RandomState(3), tol=1e-3).fit(data.views),
    ):
        model.save(tmp_path / "model.vf")
        back = viewfold.load(tmp_path / "model.vf")
        assert bits(back) == bits(model)


def test_extend_and_forget_go_on_after_loading(
    stored_model: Any, model_file: Path, data: Data
) -> None:
    back = viewfold.load(model_file)
    for one in (stored_model, back):
        one.extend(data.views["labs"][:3], ids=["a", "b", "c"], view="labs").forget(["s3", "b"])
    assert bits(back) == bits(stored_model)
    back.save(model_file)
    assert bits(viewfold.load(model_file)) == bits(stored_model)


def test_tables_can_be_read_with_plain_sql(stored_model: Any, model_file: Path) -> None:
    with duckdb.connect(model_file, read_only=True) as db:
        frame = db.sql("SELECT id, label, confidence FROM samples").df().set_index("id")
        views = db.sql("SELECT name, n_new, n_shared FROM views ORDER BY fold").fetchall()
        moves = db.sql("SELECT id, previous, label FROM labels_history WHERE entry = 3").fetchall()
        meta = dict(db.sql("SELECT key, value FROM meta").fetchall())
        second = db.sql("SELECT count(*) FROM samples WHERE views_seen[2]").fetchall()
    assert frame["label"].equals(stored_model.to_frame()["cluster"].astype("int32"))
    np.testing.assert_allclose(
        frame["confidence"], stored_model.to_frame()["confidence"], rtol=1e-6
    )
    assert views == [(v.name, v.n_new, v.n_shared) for v in stored_model.views_]
    before, now = stored_model.history_["scan"], stored_model.history_["text"]
    assert sorted(moves) == sorted(
        (i, None if before[i] < 0 else before[i], now[i]) for i in now.index[before != now]
    )
    assert json.loads(meta["version"]) == FORMAT
    assert second == [(int(stored_model.seen_["scan"].sum()),)]


def test_only_the_owner_may_read_a_new_file_and_a_mode_is_kept(
    stored_model: Any, tmp_path: Path
) -> None:
    path = tmp_path / "new.vf"
    stored_model.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    stored_model.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def pairs_of(X: np.ndarray) -> np.ndarray:
    """Return the numbers above each other in a column, of four bytes each, as one."""
    return (X[:-1].astype(np.float32) + np.complex64(1j) * X[1:].astype(np.float32)).ravel()


def test_no_value_of_a_view_and_no_forgotten_sample_is_in_the_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    views = {"a": rng.normal(size=(600, 3)), "b": rng.poisson(40, size=(600, 5)) + 0.123456789}
    ids = [f"patient-{i:04}-marker" for i in range(600)]
    path = tmp_path / "model.vf"
    with viewfold.edit(path, new=ViewFold(3, scale=None, random_state=0)) as model:
        for name, X in views.items():
            model.partial_fit(X, ids=ids, view=name)
    with viewfold.edit(path) as model:
        model.forget([ids[7]])
    content = path.read_bytes()
    for X in views.values():
        assert not [x for x in X[::10].ravel() if struct.pack("d", x) in content]
        short = X.astype(np.float32)  # four bytes may be there by chance, eight are not
        for pairs in (short[::10, :2], short[:2].T):
            assert not [pair for pair in pairs if pair.tobytes() in content]
    assert not any(repr(float(x)).encode() in content for x in views["a"][::10].ravel())
    # DuckDB may compress what it stores: look at the numbers themselves, too.
    with duckdb.connect(path, read_only=True) as db:
        for schema in ("main", "undo"):
            assert not db.sql(f"FROM {schema}.samples WHERE id = '{ids[7]}'").fetchall()
            arrays = db.sql(f"SELECT data, dtype FROM {schema}.arrays WHERE data IS NOT NULL")
            held = [np.frombuffer(data, kind).ravel() for data, kind in arrays.fetchall()]
            rows = db.sql(f"SELECT embedding, confidence FROM {schema}.samples").fetchall()
            held += [np.ravel(numbers) for row in rows for numbers in row]
            found = np.concatenate([*held, [0.0]])
            if schema == "main":  # what is there is found
                assert len(rows) == 599
                assert np.isin(model.embedding_, found).all()
            in_a_row = pairs_of(found[:, None])
            for X in views.values():
                assert not np.isin(X, found).any()
                # One of four bytes may be there by chance; two that follow each other are not.
                assert not np.isin(pairs_of(X), in_a_row).any()
                assert not np.isin(pairs_of(X.T), in_a_row).any()


def test_private_files_hold_no_encoder(data: Data, tmp_path: Path) -> None:
    model = folded(ViewFold(4, keep_encoders=False), data.parts())
    model.save(tmp_path / "model.vf")
    with duckdb.connect(tmp_path / "model.vf", read_only=True) as db:
        names = [name for (name,) in db.sql("SELECT name FROM arrays").fetchall()]
    assert sorted(names) == ["centers", "projection", "scatter"]


def test_files_of_every_version_open_forever() -> None:
    for version in ["4"]:
        expected = json.loads((HERE / "formats" / f"{version}.json").read_text())
        model = viewfold.load(HERE / "formats" / f"{version}.vf")
        assert type(model).__name__ == expected["method"]
        assert model.to_frame()["cluster"].to_dict() == expected["labels"]
        assert [view.name for view in model.views_] == expected["views"]
        assert model.log_["what"].tolist() == expected["log"]
        assert model._state.added.tolist() == expected["added"]
        assert viewfold.verify(HERE / "formats" / f"{version}.vf").whole
        rows = np.array(expected["rows"])
        frame = pd.DataFrame(rows, columns=model.views_[0].features)
        assert model.predict(frame, view=0).tolist() == expected["predicted"]
        more = np.random.default_rng(1).normal(size=(len(model.ids_), 4))
        assert len(model.partial_fit(more, ids=model.ids_, view="more").views_) == 3


@pytest.fixture(scope="module")
def renamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state of one view with a change to undo, its table and another one."""
    folder = tmp_path_factory.mktemp("renamed")
    rng = np.random.default_rng(0)
    for name in ("labs", "scan"):
        table = pd.DataFrame(rng.normal(size=(40, 4))).add_prefix(name)
        table.assign(id=range(40)).to_csv(folder / f"{name}.csv", index=False)
    ViewFold(3, n_init=1, random_state=0).partial_fit(folder / "labs.csv", ids="id").save(
        folder / "p.vf"
    )
    with viewfold.edit(folder / "p.vf") as model:
        model.rename(0, "early")
    return folder


@pytest.mark.parametrize(  # test_opened_once.py has those that only read
    "line",
    [
        "add p.vf labs.csv --id id",
        "add p.vf scan.csv --id id",
        "forget p.vf 3",
        "undo p.vf --yes",
        "rename p.vf 1 late",
        "recluster p.vf --clusters 2",
    ],
)
def test_a_command_opens_the_state_once_to_read_it(
    line: str,
    renamed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(renamed, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    read, made = [], []
    connected, making = file.connected, file.making
    monkeypatch.setattr(file, "connected", lambda *a: read.append(1) or connected(*a))
    monkeypatch.setattr(file, "making", lambda *a, **k: made.append(1) or making(*a, **k))
    code, _, err = runner(monkeypatch, capsys)(line)
    assert code == 0, err
    assert (len(read), len(made)) == (1, int("labs.csv" not in line))
