"""What the .vf file promises: an exact copy, one step at a time, and nothing of a view."""

import json
import shutil
import stat
import struct
import subprocess
import sys
import threading
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from conftest import Data
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from test_contracts import every_estimator, folded

import viewfold
from viewfold import FCMVC, StateFileError, ViewFold, store
from viewfold.core.log import Event
from viewfold.store.tables import FORMAT

HERE = Path(__file__).parent


@pytest.fixture
def model(data: Data) -> Any:
    return folded(ViewFold(4, random_state=0), data.parts())


@pytest.fixture
def path(model: Any, tmp_path: Path) -> Path:
    model.save(tmp_path / "model.vf")
    return tmp_path / "model.vf"


def bits(thing: Any) -> Any:
    """Everything about a model or a part of it, down to the layout of its arrays."""
    if isinstance(thing, viewfold.estimators.FoldingEstimator):
        return bits(getattr(thing, "_state", None)), bits(thing.get_params())
    if isinstance(thing, Event):  # two models that do the same do it at different times
        return replace(thing, time=None)
    if is_dataclass(thing):
        return type(thing), {f.name: bits(getattr(thing, f.name)) for f in fields(thing)}
    if isinstance(thing, np.random.RandomState):
        return bits(thing.get_state()[1])
    if isinstance(thing, np.ndarray):
        values = thing.tolist() if thing.dtype == object else thing.tobytes()
        layout = thing.strides if thing.size else None
        return thing.dtype, thing.shape, layout, thing.flags.writeable, values
    if isinstance(thing, dict):
        return {name: bits(value) for name, value in thing.items()}
    return [bits(item) for item in thing] if isinstance(thing, tuple) else thing


def learned(model: Any) -> Any:
    """The bits of a model, but for its log and the numbers of entries."""
    state = model._state
    views = tuple(replace(view, entry=0) for view in state.consensus.views)
    consensus = replace(state.consensus, views=views)
    return bits(replace(state, consensus=consensus, added=None, log=())), bits(model.get_params())


def changed(path: Path, *statements: str) -> Path:
    """Change a file with SQL."""
    with duckdb.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    return path


@every_estimator
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
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
        ViewFold(4, n_components=5).fit(data.views),
        ViewFold(4, keep_encoders=False).fit(data.views),
        ViewFold(4, scale=None).fit([frame, data.views["scan"], counts]),
        ViewFold(np.int64(4), encoder="landmarks").fit({"né\n'": counts}),
        ViewFold(4).fit(
            data.views["labs"], ids=[*range(80), *map(str, range(80))], similar_ids="new"
        ),
        FCMVC(4, random_state=np.random.RandomState(3), tol=1e-3).fit(data.views),
    ):
        model.save(tmp_path / "model.vf")
        back = viewfold.load(tmp_path / "model.vf")
        assert bits(back) == bits(model)


def test_extend_and_forget_go_on_after_loading(model: Any, path: Path, data: Data) -> None:
    back = viewfold.load(path)
    for one in (model, back):
        one.extend(data.views["labs"][:3], ids=["a", "b", "c"], view="labs").forget(["s3", "b"])
    assert bits(back) == bits(model)
    back.save(path)
    assert bits(viewfold.load(path)) == bits(model)


def test_tables_can_be_read_with_plain_sql(model: Any, path: Path) -> None:
    with duckdb.connect(path, read_only=True) as db:
        frame = db.sql("SELECT id, label, confidence FROM samples").df().set_index("id")
        views = db.sql("SELECT name, n_new, n_shared FROM views ORDER BY fold").fetchall()
        moves = db.sql("SELECT id, previous, label FROM labels_history WHERE entry = 3").fetchall()
        meta = dict(db.sql("SELECT key, value FROM meta").fetchall())
        second = db.sql("SELECT count(*) FROM samples WHERE views_seen[2]").fetchall()
    assert frame["label"].equals(model.to_frame()["cluster"].astype("int32"))
    np.testing.assert_allclose(frame["confidence"], model.to_frame()["confidence"], rtol=1e-6)
    assert views == [(v.name, v.n_new, v.n_shared) for v in model.views_]
    before, now = model.history_["scan"], model.history_["text"]
    assert sorted(moves) == sorted(
        (i, None if before[i] < 0 else before[i], now[i]) for i in now.index[before != now]
    )
    assert json.loads(meta["version"]) == FORMAT
    assert second == [(int(model.seen_["scan"].sum()),)]


def test_only_the_owner_may_read_a_new_file_and_a_mode_is_kept(path: Path, model: Any) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    model.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_no_value_of_a_view_and_no_forgotten_sample_is_in_the_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    views = {"a": rng.normal(size=(600, 3)), "b": rng.poisson(40, size=(600, 5)) + 0.123456789}
    ids = [f"patient-{i:04}-marker" for i in range(600)]
    path = tmp_path / "model.vf"
    with viewfold.edit(path, new=ViewFold(3, scale=None)) as model:
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
            for X in views.values():
                assert not np.isin(X, found).any()
                assert not np.isin(X.astype(np.float32), found).any()


def test_private_files_hold_no_encoder(data: Data, tmp_path: Path) -> None:
    model = folded(ViewFold(4, keep_encoders=False), data.parts())
    model.save(tmp_path / "model.vf")
    with duckdb.connect(tmp_path / "model.vf", read_only=True) as db:
        names = [name for (name,) in db.sql("SELECT name FROM arrays").fetchall()]
    assert sorted(names) == ["centers", "projection"]


def test_undo_returns_to_the_state_before_the_last_fold(data: Data, tmp_path: Path) -> None:
    path, parts = tmp_path / "model.vf", data.parts()
    for name, (X, ids) in parts.items():
        with viewfold.edit(path, new=ViewFold(4, random_state=0)) as model:
            before = None if name == "labs" else learned(model)
            model.partial_fit(X, ids=ids, view=name)
        undone = viewfold.undo(path)
        if before is None:
            assert not hasattr(undone, "labels_")
        else:
            assert learned(undone) == before == learned(viewfold.load(path))
        with pytest.raises(StateFileError, match="nothing to undo"):
            viewfold.undo(path)
        with viewfold.edit(path) as model:
            model.partial_fit(X, ids=ids, view=name)
    assert learned(viewfold.load(path)) == learned(folded(ViewFold(4, random_state=0), parts))


def test_undo_returns_to_a_generator_as_it_was(data: Data, tmp_path: Path) -> None:
    path = tmp_path / "model.vf"
    FCMVC(4, random_state=np.random.RandomState(3)).fit(data.views).save(path)
    before = learned(viewfold.load(path))
    with viewfold.edit(path) as model:
        model.partial_fit(data.views["labs"], view="again")
    assert learned(model) != before
    assert learned(viewfold.undo(path)) == before


def test_undo_does_not_bring_back_the_forgotten(path: Path, data: Data) -> None:
    with viewfold.edit(path) as model:
        model.partial_fit(data.views["labs"], ids=[f"s{i}" for i in range(160)], view="more")
    with viewfold.edit(path) as model:
        model.forget(["s3", "s4"])
    undone = viewfold.undo(path, entry=4)
    assert [view.name for view in undone.views_] == list(data.views)
    assert undone.ids_.size == 158
    assert "s3" not in undone.ids_


def test_an_error_leaves_the_file_as_it_was(path: Path) -> None:
    content = path.read_bytes()
    with pytest.raises(ValueError, match="was folded already"), viewfold.edit(path) as model:
        model.forget(["s3"]).partial_fit(np.eye(6), ids=list("abcdef"), view="labs")
    with viewfold.edit(path) as model:
        model.predict(np.ones((2, 7)), view="text")
    assert path.read_bytes() == content
    assert sorted(p.name for p in path.parent.iterdir()) == [".model.vf.lock", "model.vf"]


# -- files that are not what they should be


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE samples SET label = 1 - label",
        "UPDATE samples SET embedding = (SELECT embedding FROM samples LIMIT 1)",
        "UPDATE samples SET id = 's0'",
        "UPDATE samples SET id = id || 'x' WHERE id = 's5'",
        "DELETE FROM samples WHERE id = 's5'",
        "DROP VIEW labels_history; DROP TABLE samples",
        "DROP TABLE arrays",
        "DELETE FROM arrays WHERE name = 'centers'",
        "UPDATE arrays SET dtype = 'object' WHERE name = 'centers'",
        "UPDATE arrays SET type = 'popen' WHERE name = 'encoder/1'",
        "UPDATE arrays SET shape = [3, 4000000000] WHERE name = 'centers'",
        "UPDATE views SET name = 'other' WHERE fold = 1",
        "UPDATE meta SET value = '{' WHERE key = 'params'",
        "DELETE FROM meta WHERE key = 'digest'",
        "DELETE FROM meta",
        "DROP VIEW labels_history; ALTER TABLE samples DROP embedding",
        "DROP VIEW labels_history; ALTER TABLE samples RENAME TO s; CREATE VIEW samples AS FROM s, "
        "read_text('/etc/hostname')",
    ],
)
def test_a_tampered_file_is_refused(path: Path, statement: str) -> None:
    changed(path, *statement.split(";"))
    with pytest.raises(StateFileError, match=r"model\.vf"):
        viewfold.load(path)


def test_a_newer_or_foreign_file_says_so(path: Path, tmp_path: Path) -> None:
    changed(path, f"UPDATE meta SET value = '{FORMAT + 1}' WHERE key = 'version'")
    with pytest.raises(StateFileError, match=rf"format {FORMAT + 1} .* newer viewfold"):
        viewfold.load(path)
    changed(tmp_path / "other.vf", "CREATE TABLE meta (key VARCHAR, value VARCHAR)")
    with pytest.raises(StateFileError, match="not one of viewfold"):
        viewfold.load(tmp_path / "other.vf")
    (tmp_path / "notes.txt").write_text("dear diary")
    with pytest.raises(StateFileError, match="not written by viewfold"):
        viewfold.load(tmp_path / "notes.txt")
    with pytest.raises(StateFileError, match="not written by viewfold"):
        ViewFold(3).save(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "dear diary"
    with pytest.raises(FileNotFoundError, match=r"nobody\.vf"):
        viewfold.load(tmp_path / "nobody.vf")
    with pytest.raises(FileNotFoundError, match="no folder"):
        ViewFold(3).save(tmp_path / "nowhere" / "model.vf")


def test_a_truncated_file_is_refused(path: Path) -> None:
    content = path.read_bytes()
    for length in (0, 1, 11, 12, 4096, 12288, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(StateFileError):
            viewfold.load(path)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_changed_bytes_are_refused_or_do_not_matter(path: Path, model: Any, data: Any) -> None:
    content = bytearray(path.read_bytes())
    copy = path.with_name("copy.vf")
    for _ in range(data.draw(st.integers(1, 8))):
        where = data.draw(st.integers(0, len(content) - 1))
        content[where] = data.draw(st.integers(0, 255))
    copy.write_bytes(content)
    try:
        back = viewfold.load(copy)
    except StateFileError:
        return
    assert bits(back) == bits(model)


def test_files_of_every_version_open_forever() -> None:
    for version in range(1, FORMAT + 1):
        expected = json.loads((HERE / "formats" / f"{version}.json").read_text())
        model = viewfold.load(HERE / "formats" / f"{version}.vf")
        assert type(model).__name__ == expected["method"]
        assert model.to_frame()["cluster"].to_dict() == expected["labels"]
        assert [view.name for view in model.views_] == expected["views"]
        log = ["fold", "fold"] if version == 1 else expected["log"]
        assert model.log_["what"].tolist() == log
        if version > 1:
            assert model._state.added.tolist() == expected["added"]
            assert viewfold.verify(HERE / "formats" / f"{version}.vf").whole
        rows = np.array(expected["rows"])
        frame = pd.DataFrame(rows, columns=model.views_[0].features)
        assert model.predict(frame, view=0).tolist() == expected["predicted"]
        more = np.random.default_rng(1).normal(size=(len(model.ids_), 4))
        assert len(model.partial_fit(more, ids=model.ids_, view="more").views_) == 3


# -- several at once, and crashes


def test_a_writer_that_may_not_wait_says_so(path: Path) -> None:
    content = path.read_bytes()
    with store.writing(path):
        done = []

        def try_it() -> None:
            with pytest.raises(StateFileError, match="being written by another"):
                viewfold.load(path).save(path, wait=0.1)
            done.append(True)

        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    assert done
    assert path.read_bytes() == content


def test_readers_are_not_kept_waiting_and_see_whole_states(path: Path) -> None:
    seen = set()
    with duckdb.connect(path, read_only=True) as reader:
        with viewfold.edit(path) as model:
            ids = [f"s{i}" for i in range(160)]
            model.partial_fit(np.random.default_rng(0).normal(size=(160, 4)), ids=ids)
            seen.add(len(viewfold.load(shutil.copy(path, path.with_name("copy.vf"))).views_))
        assert reader.sql("SELECT count(*) FROM views").fetchall() == [(3,)]
    assert seen == {3}
    assert len(viewfold.load(path).views_) == 4


def test_killed_and_simultaneous_writers_leave_a_whole_file() -> None:
    script = HERE.parent / "benchmarks" / "crash.py"
    asked = ["--times", "7", "--pairs", "2", "--samples", "2000"]
    done = subprocess.run([sys.executable, script, *asked], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 kills: " in done.stdout
    assert "2 folded both, 0 refused one, 0 wrong" in done.stdout
