"""Encoder files: the answers of the model to the last bit, without samples, without pandas."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from test_cli import Run, run  # noqa: F401

import viewfold
from viewfold import FCMVC, ViewFold
from viewfold.errors import DamagedFileError, NewerFormatError, StateFileError
from viewfold.rows import DiskEngine, using

N = 120
ASKED = ("transform", "predict", "predict_proba")


def table(seed: int = 0, prefix: str = "patient-", rows: int = N) -> pd.DataFrame:
    rng, group = np.random.default_rng(seed), np.arange(rows) % 4
    frame = pd.DataFrame(rng.normal(size=(rows, 5)) + 4 * np.eye(5)[group], columns=list("abcde"))
    frame["ward"] = np.array(["ER", "ICU", "Lab", "ER"])[group]
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(rows) % 90, "D")
    return frame.set_axis([f"{prefix}{i}" for i in range(rows)])


def scan(seed: int = 0, rows: int = N) -> np.ndarray:
    rng, group = np.random.default_rng((seed, 1)), np.arange(rows) % 4
    return rng.normal(size=(rows, 12)) + 4 * np.eye(12)[group]


def folded(model: Any) -> Any:
    """Fold two views, and so many more rows of the second that it gets another encoder."""
    model.partial_fit(table(), view="labs")
    model.partial_fit(scan(), ids=table().index, view="scan")
    more = table(1, "late-", 60).index
    return model.partial_fit(scan(1, 60), ids=more, view="scan").rename(1, "calm")


def exported(model: Any, folder: Path) -> viewfold.ExportedEncoder:
    model.export_encoder(folder / "m.vfe")
    return viewfold.load_encoder(folder / "m.vfe")


@pytest.fixture(scope="module")
def model() -> ViewFold:
    return folded(ViewFold(4, random_state=0))


@pytest.fixture
def encoder(model: ViewFold, tmp_path: Path) -> viewfold.ExportedEncoder:
    return exported(model, tmp_path)


def agree(model: Any, X: Any, encoder: Any, rows: Any, **how: Any) -> None:
    for question in ASKED:
        expected = getattr(model, question)(X, **how)
        found = getattr(encoder, question)(rows, **how)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected), question


MODELS = {
    "mix": ViewFold(4, random_state=0),
    "linear": ViewFold(4, encoder="linear", random_state=0),
    "landmarks": ViewFold(4, encoder="landmarks", random_state=0),
    "FCMVC": FCMVC(4, random_state=0),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", MODELS)
def test_answers_are_those_of_the_model_to_the_last_bit(kind: str, tmp_path: Path) -> None:
    model = folded(MODELS[kind])
    encoder, new, X = exported(model, tmp_path), table(2), scan(2)
    for n in (1, 2, N):
        agree(model, X[:n], encoder, X[:n], view="scan")
        agree(model, X[:n].astype(np.float32), encoder, X[:n].astype(np.float32), view="scan")
        agree(model, X[:n].tolist(), encoder, X[:n].tolist(), view="scan")
        agree(model, new[:n], encoder, new[:n].to_dict("records"), view="labs")
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    agree(model, gaps, encoder, gaps, view="scan")
    assert model.predict(X, view="scan", min_confidence=0.9).tolist() == (
        encoder.predict(X, view="scan", min_confidence=0.9).tolist()
    )
    together = {"labs": new.to_dict("records"), "scan": X}
    for question in ASKED:
        expected = getattr(model, question)({"labs": new, "scan": X}, ids=False)
        assert np.array_equal(getattr(encoder, question)(together), expected)


def test_the_largest_probability_is_the_confidence(model: ViewFold) -> None:
    found = model.predict_proba(scan(2), view="scan")
    frame = model.predict_frame(scan(2), view="scan")
    np.testing.assert_allclose(found.max(axis=1), frame["confidence"], rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    assert found.argmax(axis=1).tolist() == frame["cluster"].tolist()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_whatever_the_model_takes_is_understood(
    model: ViewFold, encoder: viewfold.ExportedEncoder, tmp_path: Path
) -> None:
    path = tmp_path / "labs.csv"
    table(2).rename_axis("id").to_csv(path)
    agree(model, path, encoder, path, ids="id", view="labs")
    agree(model, table(2), encoder, table(2), view="labs")
    agree(model, sparse.csr_array(scan(2)), encoder, sparse.csr_array(scan(2)), view=1)
    both = {"labs": table(2)[:60], "scan": pd.DataFrame(scan(2), table(2).index)[30:]}
    agree(model, both, encoder, both)
    records = table(2).to_dict("records")
    pd.testing.assert_frame_equal(
        encoder.predict_frame(records, view="labs"),
        model.predict_frame(pd.DataFrame(records), view="labs"),
    )
    assert "name" in encoder.predict_frame(table(2), view="labs")
    assert encoder.cluster_names == {1: "calm"}


def test_mistakes_are_those_of_the_model(
    model: ViewFold, encoder: viewfold.ExportedEncoder
) -> None:
    X = scan(2)
    for rows, view in [
        (X, None),
        (X, "scans"),
        (X[:, :3], "scan"),
        (X[0], "scan"),
        ([[1.0], [1.0, 2.0]], "scan"),
        (np.where(X > 3, np.inf, X), "scan"),
        (np.full_like(X, np.nan), "scan"),
        (X[:0], "scan"),
    ]:
        with pytest.raises((ValueError, TypeError)) as expected:
            model.predict(rows, view=view)
        with pytest.raises(type(expected.value)) as found:
            encoder.predict(rows, view=view)
        assert str(found.value) == str(expected.value)


def test_records_may_lack_columns_and_have_others(
    model: ViewFold, encoder: viewfold.ExportedEncoder
) -> None:
    new = table(2).assign(ward="Gym").drop(columns="b")
    with pytest.warns(UserWarning, match="'note'") as told:
        expected = model.transform(new.assign(note="x"), view="labs")
    with pytest.warns(UserWarning, match="'note'") as also_told:
        found = encoder.transform(new.assign(note="x").to_dict("records"), view="labs")
    assert np.array_equal(found, expected)
    assert {str(one.message) for one in also_told} == {str(one.message) for one in told}
    with pytest.raises(ValueError, match="no column of this view"):
        encoder.predict([{"x": 1.0}], view="labs")
    dated = [{**row, "day": row["day"].isoformat()} for row in table(2).to_dict("records")]
    assert np.array_equal(
        encoder.transform(dated, view="labs"), model.transform(table(2), view="labs")
    )


def test_rows_of_zeros_are_absent_if_they_were_in_the_view(tmp_path: Path) -> None:
    X = np.random.default_rng(0).poisson(2.0, size=(N, 30)).astype(float)
    X[::10] = 0
    with pytest.warns(UserWarning, match="nothing but zeros"):
        model = ViewFold(3, random_state=0).fit({"counts": X})
    encoder = exported(model, tmp_path)
    agree(model, X[1:9], encoder, X[1:9])
    with pytest.raises(ValueError, match="zeros, which in this view mean"):
        encoder.predict(X[:9])


def test_a_model_on_disk_and_a_loaded_one_export_the_same_file(
    model: ViewFold, tmp_path: Path
) -> None:
    model.save(tmp_path / "m.vf")
    expected = exported(model, tmp_path).predict(scan(2), view="scan")
    loaded = exported(viewfold.load(tmp_path / "m.vf"), tmp_path)
    assert loaded.predict(scan(2), view="scan").tolist() == expected.tolist()
    with using(DiskEngine(4, str(tmp_path))):
        other = folded(ViewFold(4, random_state=0))
        found = exported(other, tmp_path).predict(scan(2), view="scan")
    assert found.tolist() == other.predict(scan(2), view="scan").tolist()


# -- the file


def test_no_sample_is_in_the_file(model: ViewFold, tmp_path: Path) -> None:
    model.export_encoder(tmp_path / "m.vfe")
    data = (tmp_path / "m.vfe").read_bytes()
    assert b"patient-" not in data
    assert b"late-" not in data
    with np.load(tmp_path / "m.vfe", allow_pickle=False) as held:
        shapes = [one.shape for name, one in held.items() if name != "facts"]
    assert all(N not in shape and N + 60 not in shape for shape in shapes)
    assert (tmp_path / "m.vfe").stat().st_mode & 0o077 == 0


def test_views_without_encoders_cannot_be_asked(tmp_path: Path) -> None:
    private = ViewFold(3, random_state=0, keep_encoders=False).fit({"scan": scan()})
    with pytest.raises(ValueError, match="nothing to export"):
        private.export_encoder(tmp_path / "m.vfe")
    assert not (tmp_path / "m.vfe").exists()
    few = ViewFold(3, random_state=0).fit({"scan": scan()})
    few.partial_fit(scan(1, 5), ids=range(5), view="few")
    with pytest.raises(ValueError, match="'few' has no encoder"):
        exported(few, tmp_path).predict(scan(1, 5), view="few")


def test_damaged_foreign_and_newer_files_are_refused(model: ViewFold, tmp_path: Path) -> None:
    path, broken = tmp_path / "m.vfe", tmp_path / "broken.vfe"
    model.export_encoder(path)
    data = path.read_bytes()
    answers = model.predict(scan(2), view="scan").tolist()
    places = [data.index(b"n_features"), data.index(b"shape"), data.index(b"shape") + 999]
    for at in (*places, *np.random.default_rng(0).integers(0, len(data), 60)):
        changed = bytearray(data)
        changed[at] ^= 1
        broken.write_bytes(changed)
        found = None
        with contextlib.suppress(StateFileError):
            found = viewfold.load_encoder(broken).predict(scan(2), view="scan").tolist()
        # Some bytes of the archive say nothing about what is in it.
        assert found in (None, answers)
        assert found is None or at not in places
    broken.write_bytes(data[:-1])
    with pytest.raises(DamagedFileError, match="damaged"):
        viewfold.load_encoder(broken)
    with np.load(path) as held:
        parts = dict(held)
    facts = json.loads(parts.pop("facts").tobytes()) | {"format": 2}
    with broken.open("wb") as file:
        np.savez(file, facts=np.frombuffer(json.dumps(facts).encode(), np.uint8), **parts)
    with pytest.raises(NewerFormatError, match="newer viewfold"):
        viewfold.load_encoder(broken)
    model.save(tmp_path / "m.vf")
    for other in (b"", b"1234567", b"\xff" * 100, (tmp_path / "m.vf").read_bytes()):
        broken.write_bytes(other)
        with pytest.raises(StateFileError, match="no encoder file"):
            viewfold.load_encoder(broken)
    with pytest.raises(FileNotFoundError):
        viewfold.load_encoder(tmp_path / "none.vfe")


SERVICE = """
import sys
import viewfold
encoder = viewfold.load_encoder("m.vfe")
assert encoder.predict([{"a": 1.0, "ward": "ER", "day": "2024-02-03"}], view="labs").size == 1
assert encoder.predict_proba([[0.5] * 12], view="scan").shape == (1, 4)
heavy = "pandas sklearn duckdb pyarrow narwhals scipy.linalg click"
print([name for name in heavy.split() if name in sys.modules])
"""


def test_a_service_imports_none_of_the_large_packages(model: ViewFold, tmp_path: Path) -> None:
    model.export_encoder(tmp_path / "m.vfe")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SERVICE],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.stdout == "[]\n", done.stderr


def test_export_writes_an_encoder(run: Run) -> None:  # noqa: F811
    table().rename_axis("id").to_csv("labs.csv")
    assert run("add s.vf labs.csv --id id --clusters 4")[0] == 0
    code, out, said = run("export s.vf --encoder s.vfe --json")
    assert code == 0, said
    assert json.loads(out)["views"] == ["labs"]
    found = viewfold.load_encoder("s.vfe").predict(table(2), view="labs")
    assert found.tolist() == viewfold.load("s.vf").predict(table(2), view="labs").tolist()
    for wrong in ("--encoder s.vf", "--encoder s.csv", "--encoder t.vfe -o t.csv"):
        assert run(f"export s.vf {wrong}")[0] == 1
    assert not Path("t.vfe").exists()
