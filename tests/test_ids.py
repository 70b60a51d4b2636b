"""Ids: what is almost a known sample, no id at all, or a column of ids taken for a feature."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from conftest import SHARED
from sklearn import datasets

import viewfold
from viewfold import FCMVC, as_view, as_views, cli
from viewfold.core.admission import admit
from viewfold.core.state import State, ViewRecord
from viewfold.engine import LocalEngine
from viewfold.ids import is_called_id

N = 12
RECORD = ViewRecord("labs", 1, 1, 1, 0, 1)
TEXTS = [f"p{i}" for i in range(N)]


def rows(n: int = N, d: int = 3) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, d))


def folded(ids: Any, **options: Any) -> FCMVC:
    return FCMVC(2, random_state=0).partial_fit(rows(len(ids)), ids=ids, view="labs", **options)


# ---- ids that are almost known ------------------------------------------------------------------

ALMOST = {
    "space after": ("p1", "p1 "),
    "space before": ("p1", "\tp1"),
    "space of another kind": ("p1", "p1\u00a0"),
    "invisible": ("p1", "\ufeffp1"),
    "case": ("p1", "P1"),
    "leading zeros": ("7", "007"),
    "decimals": ("7", "7.0"),
    "sign": ("7", "+7"),
    "composed": ("Zo\u00eb", "Zoe\u0308"),
    "sharp s": ("Strau\u00df", "STRAUSS"),
}


@pytest.mark.parametrize("case", ALMOST)
def test_ids_that_are_almost_known_are_refused_matched_or_new(case: str) -> None:
    known, came = ALMOST[case]
    model = folded([known, *TEXTS[2:]])
    before = model.to_frame()
    again = [came, *TEXTS[2:]]
    message = f"View 'scan': {came!r} in row 0 is almost {known!r}"
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        model.partial_fit(rows(N - 1), ids=again, view="scan")
    assert "--similar-ids match" in str(error.value)
    assert "--similar-ids new" in str(error.value)
    pd.testing.assert_frame_equal(model.to_frame(), before)
    model.partial_fit(rows(N - 1), ids=again, view="scan", similar_ids="match")
    assert model.ids_.tolist() == [known, *TEXTS[2:]]
    assert model.views_[-1].n_shared == N - 1
    model.partial_fit(rows(N - 1), ids=again, view="text", similar_ids="new")
    assert model.ids_.tolist() == [known, *TEXTS[2:], came]
    both = [known, *TEXTS[2:], came]  # both are known now
    assert model.partial_fit(rows(N), ids=both, view="more").views_[-1].n_shared == N


@pytest.mark.parametrize("case", ALMOST)
def test_almost_the_same_ids_in_one_view_are_refused_with_their_rows(case: str) -> None:
    one, other = ALMOST[case]
    ids = [*TEXTS[2:], one, other]
    with pytest.raises(ValueError, match=re.escape(f"{other!r} in row 11 is almost {one!r} in ")):
        FCMVC(2).fit(rows(), ids=ids)
    with pytest.raises(ValueError, match="are the same sample, if similar ids are matched"):
        FCMVC(2).fit(rows(), ids=ids, similar_ids="match")
    assert FCMVC(2).fit(rows(), ids=ids, similar_ids="new").ids_.tolist() == ids


def test_three_examples_are_shown_and_all_are_counted() -> None:
    with pytest.raises(ValueError, match=re.escape("(12 in all)")) as error:
        folded(TEXTS).partial_fit(rows(), ids=[name.upper() for name in TEXTS])
    assert str(error.value).count("is almost") == 3


def test_rows_are_counted_as_they_came() -> None:
    X = rows()
    X[0] = np.nan  # a sample that the view lacks
    with pytest.raises(ValueError, match="'P5' in row 5 is almost 'p5'"):
        folded(TEXTS).partial_fit(X, ids=[*TEXTS[:5], "P5", *TEXTS[6:]])


def test_matching_needs_one_answer() -> None:
    model = folded(["p1", "P1", *TEXTS[2:]], similar_ids="new")
    with pytest.raises(ValueError, match="'p1 ' may be 'p1' or 'P1'"):
        model.partial_fit(rows(2), ids=["p1 ", "p2"], similar_ids="match")
    with pytest.raises(ValueError, match="'p1' in row 0 and 'p1 ' in row 1 are the same sample"):
        folded(TEXTS).partial_fit(rows(2), ids=["p1", "p1 "], similar_ids="match")


def test_extend_refuses_what_is_almost_known() -> None:
    model = folded(TEXTS)
    with pytest.raises(ValueError, match="'P1' in row 1 is almost 'p1'"):
        model.extend(rows(2), ids=["q1", "P1"])
    assert model.extend(rows(2), ids=["q1", "P1"], similar_ids="new").ids_.size == N + 2


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(ValueError, match="'refuse', 'match' or 'new', got 'maybe'"):
        folded(TEXTS, similar_ids="maybe")


# ---- the kind of ids ----------------------------------------------------------------------------


def test_the_kind_of_ids_is_fixed_by_the_first_view() -> None:
    numbers, texts = list(range(N)), TEXTS
    for first, then, message in [
        (numbers, texts, "ids that are texts ('p0'), but the samples folded so far have whole num"),
        (texts, numbers, "ids that are whole numbers (0), but the samples folded so far have text"),
        (numbers, [*numbers[1:], "x"], "ids that are texts ('x')"),
    ]:
        model = folded(first)
        for way in ("refuse", "new"):
            with pytest.raises(ValueError, match=re.escape(message)):
                model.partial_fit(rows(), ids=then, view="scan", similar_ids=way)
        with pytest.raises(ValueError, match="but the samples folded so far have"):
            model.extend(rows(2), ids=["y", "z"] if first is numbers else [90, 91])
        assert model.ids_.tolist() == first


def test_mixed_ids_stay_mixed() -> None:
    model = folded([*range(6), *TEXTS[6:]])
    model.partial_fit(rows(), ids=[*range(6), *TEXTS[6:]], view="scan")
    assert model.extend(rows(2), ids=[77, "q"], view="labs").ids_.size == N + 2


def test_numbers_are_matched_with_texts_and_take_their_kind() -> None:
    model = folded([str(i) for i in range(N)])
    with pytest.raises(ValueError, match="3 in row 0 is almost '3'") as error:
        model.partial_fit(rows(), ids=range(3, 3 + N), view="scan")
    assert "similar_ids='new'" not in str(error.value)  # it would not help
    model.partial_fit(rows(), ids=range(3, 3 + N), view="scan", similar_ids="match")
    assert model.ids_.tolist() == [str(i) for i in range(N + 3)]
    model = folded(np.arange(N))
    model.partial_fit(rows(), ids=[f"{i:03}" for i in range(3, 3 + N)], similar_ids="match")
    assert model.ids_.tolist() == list(range(N + 3))
    assert model.ids_.dtype == np.int64


# ---- what is no id ------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["", " ", "N/A", "NA", "nan", "NaN", "null", "None", "<NA>"])
def test_words_for_nothing_are_no_ids(word: str, tmp_path: Path) -> None:
    ids = ["7", word, "9"]
    with pytest.raises(ValueError, match=f"row 1: the id {word!r} says that there is none"):
        as_view(rows(3), ids=ids)
    frame = pd.DataFrame(rows(3), columns=list("abc")).assign(id=ids)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    for name, place in (("a.csv", "line 3"), ("a.parquet", "row 1"), ("a.jsonl", "line 2")):
        with pytest.raises(ValueError, match=f"{name}, {place}: (there is no id|the id .* says)"):
            as_view(tmp_path / name, ids="id")


def test_numbers_beyond_64_bits_do_not_wrap(tmp_path: Path) -> None:
    large = np.array([1, 2**63, 2**64 - 1], np.uint64)
    for ids in (large, pd.Index(large), [1, 2**70, 3], pl.Series(large)):
        with pytest.raises(ValueError, match=r"row 1: the id \d+ has more than 64 bits"):
            as_view(rows(3), ids=ids)
    pyarrow.parquet.write_table(pa.table({"id": large, "x": [1.0, 2, 3]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a.parquet: the id 18446744073709551615 has more than"):
        as_view(tmp_path / "a.parquet", ids="id")
    assert as_view(rows(3), ids=np.array([1, 2, 3], np.uint64)).ids.tolist() == [1, 2, 3]


# ---- a column of ids that nobody named ----------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["id", "ID", "patient_id", "PatientID", "sampleId", "id_patient", "index", "Unnamed: 0", "pid"],
)
def test_a_column_of_ids_is_no_feature(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(rows(), columns=list("abc"))
    frame[name] = np.arange(1000, 1000 + N)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    message = f"column {name!r} looks like ids: whole numbers that are all different. Pass ids="
    for held in (frame, pl.from_pandas(frame), tmp_path / "a.csv", tmp_path / "a.parquet"):
        for take in (as_view, as_views, FCMVC(2).fit, FCMVC(2).partial_fit):
            with pytest.raises(ValueError, match=re.escape(message)):
                take(held)
        assert as_view(held, ids=False).shape == (N, 4)
        assert as_view(held, ids=False).ids.tolist() == list(range(N))
        assert as_view(held, ids=name).shape == (N, 3)


def test_who_it_is_tells_in_the_first_column() -> None:
    frame = pd.DataFrame({"patient": np.arange(5, 5 + N), "iron": rows()[:, 0]})
    with pytest.raises(ValueError, match="column 'patient' looks like ids"):
        as_view(frame)
    assert as_view(frame[["iron", "patient"]]).shape == (N, 2)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"id": [1, 1, 2, 2, 3, 3], "x": 1.0}),  # not different
        pd.DataFrame({"id": [0.5, 1.5, 2.5], "x": 1.0}),  # not whole
        pd.DataFrame({"acid": [1, 2, 3], "grid": [4, 5, 6], "paid": [7, 8, 9]}),  # not called so
        pd.DataFrame({"time": [1, 2, 3], "day": [1, 2, 3], "patients": [10, 20, 30]}),
        pd.DataFrame({"id": [1, 2, 3], "x": 1.0}, index=["a", "b", "c"]),  # ids are given
        pd.DataFrame(rows().round()),
    ],
)
def test_ordinary_columns_raise_no_alarm(frame: pd.DataFrame) -> None:
    assert as_view(frame).shape == frame.shape


@pytest.mark.parametrize(
    "name", ["iris", "wine", "breast_cancer", "diabetes", "digits", "linnerud"]
)
def test_no_alarm_on_tables_of_scikit_learn(name: str) -> None:
    frame = getattr(datasets, f"load_{name}")(as_frame=True)
    assert as_view(frame.data).shape == frame.data.shape
    assert not any(is_called_id(column, first=False) for column in frame.data)


def test_no_alarm_on_the_shared_sets() -> None:
    paths = sorted((SHARED / "data").glob("*.npz"))
    if not paths:
        pytest.skip("the shared data sets are not here")
    for path in paths:
        with pytest.warns(UserWarning, match="left out"):
            assert as_views(path)


def test_an_index_can_be_said_to_be_no_ids() -> None:
    frame = pd.DataFrame(rows(), index=TEXTS)
    assert as_view(frame, ids=False).length == N
    assert as_views([frame, frame], ids=False)[1].length == N


def test_a_column_that_holds_known_ids_is_named() -> None:
    model = folded(np.arange(100, 100 + N))
    frame = pd.DataFrame({"age": rows()[:, 0], "nr": np.arange(100, 100 + N)})
    with pytest.raises(ValueError, match=re.escape("Column 'nr' holds ids that are known: pass")):
        model.partial_fit(frame)


# ---- how many are known -------------------------------------------------------------------------


def test_too_few_known_samples_are_refused() -> None:
    model = folded(TEXTS)
    ids = [*TEXTS[:3], *(f"q{i}" for i in range(9))]
    for least, fine in ((3, True), (4, False), (0.25, True), (0.26, False), (0, True)):
        fresh = folded(TEXTS)
        if fine:
            assert fresh.partial_fit(rows(), ids=ids, min_shared=least).views_[-1].n_shared == 3
        else:
            with pytest.raises(ValueError, match="3 of its 12 samples are known, fewer than asked"):
                fresh.partial_fit(rows(), ids=ids, min_shared=least)
            pd.testing.assert_frame_equal(fresh.to_frame(), model.to_frame())
    upper = [name.upper() for name in TEXTS]
    model.partial_fit(rows(), ids=upper, similar_ids="match", min_shared=1.0)
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match="min_shared must be"):
            model.partial_fit(rows(), ids=ids, min_shared=wrong)


# ---- on the command line ------------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)

    def command(line: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["viewfold", *line.split()])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return command


def write(path: str, ids: Any, **columns: Any) -> None:
    frame = pd.DataFrame(rows(len(ids)), columns=list("abc")).assign(**columns)
    frame.insert(0, "patient", ids)
    frame.to_csv(path, index=False)


def test_nothing_is_guessed_on_the_command_line(run: Callable[..., Any]) -> None:
    write("labs.csv", range(100, 130))
    code, _, said = run("add p.vf labs.csv --clusters 3")
    assert code
    assert "column 'patient' looks like ids" in said
    assert "--id patient" in said
    assert "--no-id" in said
    assert not Path("p.vf").exists()
    assert run("add p.vf labs.csv --id patient --clusters 3")[0] == 0
    assert run("add q.vf labs.csv --no-id --clusters 3")[0] == 0
    assert viewfold.load("q.vf").views_[0].n_features == 4
    assert run("predict q.vf labs.csv --no-id")[0] == 0
    assert "Choose one" in run("add q.vf labs.csv --no-id --id patient")[2]
    state = Path("p.vf").read_bytes()
    write("scan.csv", [*(f"{i:04}" for i in range(100, 129)), "129"])
    code, _, said = run("add p.vf scan.csv --id patient")
    assert code
    assert "'0100' in row 0 is almost 100" in said
    write("late.csv", [*range(100, 129), "N/A"])
    code, _, said = run("add p.vf late.csv --id patient")
    assert code
    assert "late.csv, line 31: the id 'N/A'" in said
    write("other.csv", range(125, 155))
    code, _, said = run("add p.vf other.csv --id patient --min-shared 50%")
    assert code
    assert "5 of its 30 samples are known, fewer than asked for (50 % of them)" in said
    assert "--min-shared 'half'" in run("add p.vf other.csv --id patient --min-shared half")[2]
    assert Path("p.vf").read_bytes() == state
    assert "0 of its 30" in run("add n.vf labs.csv --id patient --clusters 3 --min-shared 1")[2]
    assert not Path("n.vf").exists()
    assert run("add p.vf other.csv --id patient --min-shared 5")[0] == 0
    out = json.loads(run("add p.vf scan.csv --id patient --similar-ids match --json")[1])
    assert out["folds"][0]["new"] == 0


def test_extend_takes_the_option_too(run: Callable[..., Any]) -> None:
    write("labs.csv", [f"p{i}" for i in range(30)])
    write("more.csv", ["P1", "q1"])
    run("add p.vf labs.csv --id patient --clusters 3")
    assert "'P1' in row 0 is almost 'p1'" in run("extend p.vf more.csv --id patient")[2]
    assert run("extend p.vf more.csv --id patient --similar-ids new")[0] == 0
    assert viewfold.load("p.vf").ids_.size == 32


def test_ids_are_looked_at_only_if_texts_are_new(monkeypatch) -> None:
    for room in ("ids", "core.admission"):
        monkeypatch.setattr(f"viewfold.{room}.normal_forms", lambda ids: pytest.fail("looked at"))
    X = np.random.default_rng(0).normal(size=(N, 4))
    for ids in (np.array(TEXTS, object), np.arange(N)):
        state = State(ids, X, X[:, :1] > 9, np.zeros((N, 1), np.int32), ids, views=(RECORD,))
        later = ids[::-1] if ids.dtype == object else ids + 5
        admitted = admit(LocalEngine(), state, as_view(X, ids=later))
        assert admitted.ids.tolist() == later.tolist()
