"""Nothing is done twice: cells are checked, files parsed and spooled, states converted once."""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Data

from viewfold import ViewFold, as_view, cli, edit, inspect_views, load, store, undo
from viewfold.data import opening
from viewfold.method import clusters
from viewfold.state import updates


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], list[Any]]:
    """Replace a function by one that notes its first argument in the list that is returned."""

    def counted(owner: Any, name: str) -> list[Any]:
        called, original = [], getattr(owner, name)

        def noting(*args: Any, **options: Any) -> Any:
            called.append(args[0] if args else None)
            return original(*args, **options)

        monkeypatch.setattr(owner, name, noting)
        return called

    return counted


@pytest.fixture
def model(data: Data) -> ViewFold:
    return ViewFold(4, random_state=0).fit({"labs": data.views["labs"]})


def _command(monkeypatch: pytest.MonkeyPatch, *line: object) -> None:
    monkeypatch.setattr(sys, "argv", ["viewfold", *map(str, line)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code


@pytest.mark.parametrize("command", ["predict", "add --only-new"])
def test_commands_check_the_cells_of_a_file_once(
    command: str, data: Data, count, tmp_path: Path, monkeypatch
) -> None:
    state, file = tmp_path / "p.vf", tmp_path / "labs.parquet"
    frame = pd.DataFrame(data.views["labs"]).add_prefix("x")
    ViewFold(4, random_state=0).fit({"labs": frame}).save(state)
    frame.assign(id=range(1000, 1160)).to_parquet(file, index=False)
    blocks = count(type(as_view(np.ones((2, 2))).rows), "read")
    name, *more = command.split()
    _command(monkeypatch, name, state, file, "--id", "id", *more)
    # The view is one block: it is read when its cells are checked, when it is embedded, and when
    # its novelty is measured (a pass gives one array for all rows, and these are two); and for the
    # fingerprints, the comparison with earlier deliveries, which may refuse the file before it is
    # embedded, and the moments of samples that stay, by the clusters that they got.
    assert sum(rows.X is blocks[0].X for rows in blocks) == 3 + 3 * (name == "add")


def test_a_view_that_was_checked_is_not_checked_again(data: Data, model: ViewFold, count) -> None:
    view = as_view(data.views["labs"])
    blocks = count(type(view.rows), "read")
    as_view(view)
    assert len(blocks) == 0
    model.predict(view)
    assert sum(rows.X is view.rows.X for rows in blocks) == 1


@pytest.mark.parametrize("name", ["one.npz", "one.npy"])
@pytest.mark.parametrize("verb", ["predict", "transform", "predict_frame"])
def test_a_file_is_parsed_once(
    verb: str, name: str, data: Data, model: ViewFold, count, tmp_path: Path
) -> None:
    save = np.savez if name.endswith("z") else np.save
    save(tmp_path / name, data.views["labs"])
    parsed = count(opening, "read_file")
    getattr(model, verb)(tmp_path / name)
    assert len(parsed) == 1


def test_a_file_of_several_views_is_parsed_once(data: Data, count, tmp_path: Path) -> None:
    model = ViewFold(4, random_state=0).fit(data.views)
    np.savez(tmp_path / "all.npz", **data.views)
    parsed = count(opening, "read_file")
    assert np.array_equal(model.predict(tmp_path / "all.npz"), model.predict(data.views))
    assert len(parsed) == 1


@pytest.mark.parametrize("name", ["labs.csv", "labs.parquet", "labs.xlsx", "both.xlsx"])
@pytest.mark.parametrize("known", [False, True])
def test_a_file_is_opened_once_to_be_inspected(
    name: str, known: bool, count, tmp_path: Path
) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
    frame = frame.assign(ward=["ER", "ICU", "ICU"] * 20, id=[f"p{i}" for i in range(60)])
    if name.endswith(".xlsx"):
        with pd.ExcelWriter(tmp_path / name) as book:
            for sheet in ("labs", "scan") if name == "both.xlsx" else ("labs",):
                frame.to_excel(book, sheet_name=sheet, index=False)
    else:
        getattr(frame, {"csv": "to_csv"}.get(name[5:], "to_parquet"))(tmp_path / name, index=False)
    model = ViewFold(2, random_state=0).partial_fit(frame, ids="id", view="labs")
    opened = count(opening, "read_file")
    found = inspect_views(tmp_path / name, ids="id", model=model if known else None)
    assert [one.refused for one in found] == [""] * len(found)
    assert [one.name for one in found] == (["labs", "scan"] if name == "both.xlsx" else ["labs"])
    assert len(opened) == 1


def test_large_row_groups_are_spooled_once(count, tmp_path: Path, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1000, 7)), columns=list("abcdefg")).assign(id=range(1000))
    # The last group is small: it is read at once, after three that are not.
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=330, index=False)
    monkeypatch.setattr("viewfold.data.columnar._SECTION_BYTES", 5000)
    monkeypatch.setattr("viewfold.data.source.BATCH_BYTES", 64)
    spooled = count(tempfile, "TemporaryFile")
    view = as_view(tmp_path / "a.parquet", ids="id")
    assert len(spooled) == 1
    assert np.array_equal(np.vstack([b for _, b in view.rows.blocks()]), frame.drop(columns="id"))
    assert np.array_equal(view.ids, frame["id"])


def test_an_edit_converts_only_the_new_state(
    data: Data, model: ViewFold, count, tmp_path: Path
) -> None:
    path = tmp_path / "p.vf"
    model.save(path)
    converted = count(store.file, "to_tables")
    with edit(path) as edited:
        edited.partial_fit(data.views["scan"], view="scan")
    assert len(converted) == 1
    assert [record.name for record in load(path).views_] == ["labs", "scan"]
    back = undo(path)
    assert back.labels_.tobytes() == model.labels_.tobytes()
    assert back.embedding_.tobytes() == model.embedding_.tobytes()


def test_labels_of_samples_that_did_not_change_are_not_made_anew(
    data: Data, count, monkeypatch
) -> None:
    X, ids = data.views["labs"], [f"s{i}" for i in range(160)]
    model = ViewFold(4, random_state=0).partial_fit(X[:150], ids=ids[:150], view="labs")
    clustered, assigned = count(clusters, "cluster"), []
    assign = updates.assign

    def noting(engine: Any, clusters: Any, rows: Any) -> Any:
        assigned.append(len(rows))
        return assign(engine, clusters, rows)

    monkeypatch.setattr(updates, "assign", noting)
    model.partial_fit(X[:150], ids=ids[:150], view="labs").recluster(4)
    assert not assigned
    model.partial_fit(X[100:155], ids=ids[100:155], view="labs")
    assert assigned == [5]
    assert not clustered
