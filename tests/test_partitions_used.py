"""Models take views in partitions wherever they take rows, and answer in the order of the rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from partitions import CUTS, N, agree, frame, on_disk, written

from commands import Run, runner
from viewfold import FCMVC, ViewFold, as_view, inspect_views
from viewfold.estimators import base
from viewfold.rows import BucketRows, DiskEngine, LocalEngine, using


def model_of(**kwargs) -> ViewFold:
    return ViewFold(4, n_init=2, random_state=0, encoder="linear", **kwargs)


def test_predictions_are_in_the_order_of_partitions_and_rows(tmp_path: Path) -> None:
    table = frame(seed=3)
    new = written(tmp_path / "new", table, CUTS["empty"])
    expected = model_of().partial_fit(frame(), view="labs")
    with on_disk():
        model = model_of().partial_fit(frame(), view="labs")
        assert (
            model.predict(new, ids="id", view="labs").tolist() == expected.predict(table).tolist()
        )
        told = model.predict_frame(new, ids="id", view="labs")
        assert told.index.tolist() == table.index.tolist()
        assert told["cluster"].tolist() == expected.predict(table).tolist()
        assert np.allclose(
            np.abs(model.transform(new, ids="id", view="labs")), np.abs(expected.transform(table))
        )


class Apart(DiskEngine):
    """Does what a cluster does: whatever goes to a worker, and comes back, is sent as bytes."""

    def run(self, task, items, combine):
        pickled = pytest.importorskip("cloudpickle")

        def sent(held):
            return pickled.loads(pickled.dumps(held))

        return sent(super().run(sent(task), sent(items), combine))


def test_what_workers_need_can_be_sent_to_them(tmp_path: Path) -> None:
    table = frame()
    table["ward"] = np.where(np.arange(N) % 3, "ER", "ICU")
    table.iloc[::9, 2] = np.nan
    expected = as_view(table)
    path = written(tmp_path / "labs", table)
    with using(Apart(4)) as engine:
        view = as_view(path, ids="id")
        order = np.argsort(engine.collect(view.partitions.numbers))
        assert engine.collect(view.ids)[order].tolist() == table.index.tolist()
        rows, want = engine.collect(view.rows)[order], LocalEngine().collect(expected.rows)
        assert np.allclose(rows, want, rtol=0, atol=1e-12)
        with pytest.raises(FileNotFoundError, match=r"part\.9"):
            as_view([*sorted(path.iterdir()), path / "part.9.parquet"], ids="id")


def test_workers_read_for_models_that_are_on_another_engine(tmp_path: Path, monkeypatch) -> None:
    path, read = written(tmp_path / "labs", frame()), []
    read_view = base.read_view
    monkeypatch.setattr(base, "read_view", lambda *a: read.append(read_view(*a)) or read[-1])
    with on_disk():
        model = model_of().partial_fit(path, ids="id")
    model.partial_fit(written(tmp_path / "scan", frame(seed=1)), ids="id")  # out of `using`
    assert [isinstance(view.rows, BucketRows) for view in read] == [True, True]
    expected = model_of().partial_fit(frame(), view="labs").partial_fit(frame(seed=1), view="scan")
    agree(model, expected)


@pytest.mark.parametrize("numbered", [False, True])
def test_several_views_in_partitions_are_matched(numbered: bool, tmp_path: Path) -> None:
    labs, scan = frame(), frame(seed=1)[30:]
    if numbered:
        labs = labs.reset_index(drop=True)
        scan = frame(seed=1).reset_index(drop=True)
        labs.iloc[4], scan.iloc[9] = np.nan, np.nan
    expected = model_of().fit({"labs": labs, "scan": scan})
    held = dict(zip(("labs", "scan"), (labs, scan), strict=True))
    paths = {}
    for name, table in held.items():
        (tmp_path / name).mkdir()
        for i, some in enumerate(np.split(np.arange(len(table)), [50, 51])):
            part = table.iloc[some]
            part = part if numbered else part.reset_index()
            part.to_parquet(tmp_path / name / f"part.{i}.parquet", index=False)
        paths[name] = tmp_path / name
    ids = None if numbered else "id"
    with on_disk():
        model = model_of().fit(paths, ids=ids)
        agree(model, expected)
        for given in (paths, {**paths, "scan": scan}):
            of = ids if given is paths else {"labs": ids}
            told, want = model.predict_frame(given, ids=of), expected.predict_frame(held)
            assert told.index.tolist() == want.index.tolist()
            assert told["cluster"].tolist() == want["cluster"].tolist()


def test_rows_get_labels_in_their_order_when_they_are_fitted(tmp_path: Path) -> None:
    table = frame()
    table.iloc[77] = np.nan
    path = written(tmp_path / "labs", table, CUTS["unequal"])
    with pytest.warns(UserWarning, match="1 of 240 rows"):
        labels = model_of().fit_predict(table)
    with pytest.warns(UserWarning, match="1 of 240 rows"):
        embedding = model_of().fit_transform(table)
    with on_disk():
        for X, ids in ((path, "id"), (table, None)):  # in files, and in memory
            with pytest.warns(UserWarning, match="1 of 240 rows"):
                assert model_of().fit_predict(X, ids=ids).tolist() == labels.tolist()
            with pytest.warns(UserWarning, match="1 of 240 rows"):
                found = model_of().fit_transform(X, ids=ids)
            assert np.allclose(np.abs(found), np.abs(embedding), equal_nan=True)


def test_more_rows_of_a_known_view_come_in_partitions(tmp_path: Path) -> None:
    first, later = frame()[:150], frame()[100:]
    later.iloc[10] += 0.5
    expected = model_of().partial_fit(first, view="labs").partial_fit(later, view="labs")
    with on_disk():
        model = model_of().partial_fit(written(tmp_path / "labs", first, (9,)), ids="id")
        model.partial_fit(written(tmp_path / "more", later, (9, 10)), ids="id", view="labs")
        came, want = model.delivery_, expected.delivery_
        assert replace(came, comparison=None) == replace(want, comparison=None)
        found, distance = came.comparison, want.comparison.distance  # but for rounding
        assert np.allclose(found.distance.columns, distance.columns, rtol=0, atol=1e-9)
        assert found.distance.total == pytest.approx(distance.total, abs=1e-9)
        assert np.allclose(found.tally.counts, want.comparison.tally.counts)
        assert (found.n, found.findings) == (want.comparison.n, want.comparison.findings)
        assert (model.delivery_.n_new, model.delivery_.n_corrected) == (90, 1)
        agree(model, expected)
        new = frame(seed=5)[:20].set_axis([f"q{i}" for i in range(20)])
        new.index.name = "id"
        columns = new[new.columns[::-1]]  # put in order by name
        model.extend(written(tmp_path / "new", columns, (5,)), ids="id", view="labs")
        agree(model, expected.extend(new, view="labs"))


def test_ids_can_be_given_beside_partitions(tmp_path: Path) -> None:
    table = frame()
    path = written(tmp_path / "labs", table.reset_index(drop=True), (7, 100))
    for part in path.iterdir():
        pd.read_parquet(part).drop(columns="index").to_parquet(part, index=False)
    expected = FCMVC(4, n_init=2, random_state=0).partial_fit(table, view="labs")
    with on_disk():
        agree(FCMVC(4, n_init=2, random_state=0).partial_fit(path, ids=table.index), expected)


def test_views_in_partitions_are_inspected(tmp_path: Path) -> None:
    path = written(tmp_path / "labs", frame())
    with on_disk():
        model = model_of().partial_fit(path, ids="id")
        (found,) = inspect_views(path, model=model, ids="id")
    assert (found.n_rows, found.samples.n_known, found.refused) == (N, N, "")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


def test_commands_take_folders_and_patterns(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "labs", frame())
    code, out, said = run("add s.vf 'labs/*.parquet' --id id --clusters 4 --json")
    assert code == 0, said
    assert json.loads(out)["folds"][0]["view"] == "labs"
    code, out, said = run("predict s.vf labs --id id --json")
    assert code == 0, said
    assert [row["id"] for row in json.loads(out)] == frame().index.tolist()
    with on_disk():
        code, of_buckets, said = run("predict s.vf 'labs/*.parquet' --id id --json")
        assert code == 0, said
        assert json.loads(of_buckets) == json.loads(out)
        code, out, said = run("inspect labs --json")
        assert code == 0, said
        code, _, said = run("predict s.vf labs --id patient")
    assert code == 1
    assert "there is no column 'patient'" in said
