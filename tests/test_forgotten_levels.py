"""No state in a file names a level of a category that only forgotten samples may have had."""

import gzip
import shutil
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import viewfold
from viewfold import FCMVC, ViewFold
from viewfold.rows import DiskEngine

RARE = "Zanzibarward"


def wards(n: int = 120, rare: int = 1) -> pd.DataFrame:
    """Return a table in which the first `rare` samples, and nobody else, have one level."""
    rng = np.random.default_rng(0)
    ward = [RARE] * rare + [("ER", "ICU")[i % 2] for i in range(n - rare)]
    table = pd.DataFrame({"iron": rng.normal(size=n), "salt": rng.normal(size=n), "ward": ward})
    return table.set_index(pd.Index([f"p{i}" for i in range(n)], name="id"))


def says(path: Path, word: str) -> bool:
    """Tell whether any byte of a file or folder, or anything plain SQL reads in it, has a word.

    Levels are held as numbers of letters, names of features as text.
    """
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    forms = [word.encode(form) for form in ("utf-8", "utf-16-le", "utf-32-le")]
    for file in files:
        held = [file.read_bytes()]
        if held[0][:2] == b"\x1f\x8b":
            held.append(gzip.decompress(held[0]))
        if file.suffix == ".parquet":
            rows = duckdb.sql(f"SELECT * FROM '{file}'").fetchall()
            held += [_bytes(rows)]
        if file.suffix == ".vf":
            with duckdb.connect(str(file), read_only=True) as db:
                found = db.sql(
                    "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal"
                )
                for schema, table in found.fetchall():
                    rows = db.sql(f'SELECT * FROM "{schema}"."{table}"').fetchall()
                    held.append(_bytes(rows))
        if any(form in one for form in forms for one in held):
            return True
    return False


def _bytes(rows: list[tuple[Any, ...]]) -> bytes:
    cells = [cell for row in rows for cell in row]
    return b"\0".join(c if isinstance(c, bytes) else str(c).encode() for c in cells)


@pytest.fixture(scope="module")
def three_states(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Write a file with states to return to; one of the same samples is computed once."""

    @cache
    def made(ending: str, n: int, rare: int, kind: Any, private: bool) -> Path:
        path, table = tmp_path_factory.mktemp("states") / f"s{ending}", wards(n, rare)
        new = kind(3, n_init=2, random_state=0, keep_encoders=not private)
        scan = pd.DataFrame(np.random.default_rng(1).normal(size=(len(table), 3)), table.index)
        engine = DiskEngine(n_buckets=3) if ending == ".vfd" else None
        with viewfold.edit(path, new=new, keep=3, engine=engine) as model:
            model.partial_fit(table, view="stay")
        for name in ("scan", "more"):
            with viewfold.edit(path) as model:
                model.partial_fit(scan, view=name)
        return path

    def write(
        path: Path, n: int = 120, rare: int = 1, kind: Any = ViewFold, private: bool = False
    ) -> None:
        source = made(path.suffix, n, rare, kind, private)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, path)

    return write


@pytest.mark.parametrize(
    ("ending", "rare", "kind"),
    [(".vf", 1, ViewFold), (".vfd", 12, ViewFold), (".vf", 12, FCMVC), (".vfd", 1, FCMVC)],
)
def test_a_level_goes_with_the_last_sample_that_has_it(
    tmp_path: Path, three_states: Callable[..., None], ending: str, rare: int, kind: Any
) -> None:
    path, table = tmp_path / f"s{ending}", wards(rare=rare)
    three_states(path, rare=rare, kind=kind)
    assert says(path, RARE)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        if rare > 1:
            viewfold.forget(path, table.index[: rare - 1])
            assert says(path, RARE)  # one sample has it still
        viewfold.forget(path, [table.index[rare - 1]])
    assert not says(path, RARE)
    assert viewfold.verify(path).whole
    model = viewfold.load(path)
    assert "ward=ER" in model.views_[0].features
    assert not any("forgotten" in name for name in model.features(top=99)["feature"].astype(str))


@pytest.mark.parametrize(("n", "private"), [(8, False), (120, True)])
def test_also_of_small_and_of_private_views(
    tmp_path: Path, three_states: Callable[..., None], private: bool, n: int
) -> None:
    path = tmp_path / "s.vf"
    three_states(path, n=n, private=private)
    assert not (private and says(path, RARE))  # there it is never kept
    viewfold.forget(path, ["p0"])
    assert not says(path, RARE)
    assert viewfold.verify(path).whole


def test_a_file_that_becomes_private_loses_its_levels(
    tmp_path: Path, three_states: Callable[..., None]
) -> None:
    path = tmp_path / "s.vf"
    three_states(path)
    with viewfold.edit(path) as model:
        model.set_params(keep_encoders=False)
    assert not says(path, RARE)
    assert not says(path, "ICU")


def test_what_was_forgotten_is_not_known_to_rows_that_come_later(
    tmp_path: Path, three_states: Callable[..., None]
) -> None:
    path, table = tmp_path / "s.vf", wards()
    three_states(path)
    with pytest.warns(UserWarning, match="1 level of 'ward' in view 'stay'") as said:
        viewfold.forget(path, ["p0"])
    assert not any(RARE in str(one.message) for one in said)
    model = viewfold.load(path)
    same = table.iloc[1:]
    assert model.predict(same, view="stay").shape == (119,)
    with pytest.warns(UserWarning, match="1 of 'ward'"):
        model.predict(table, view="stay")
    model.partial_fit(same, view="stay")
    assert model.delivery_.n_same == 119


def test_rows_that_come_later_count_and_corrections_count_against_a_level() -> None:
    table = wards(rare=3)
    model = ViewFold(3, random_state=0).partial_fit(table, view="stay")

    def least() -> dict[str, int]:
        ward = model.views_[0].columns[2]
        return dict(zip(ward.levels, ward.counts, strict=True))

    assert least() == {"ER": 59, "ICU": 58, RARE: 3}
    late = table.iloc[:5].rename("late{}".format)
    late.index = [f"late{i}" for i in range(5)]
    model.partial_fit(late, view="stay")
    assert least() == {"ER": 60, "ICU": 59, RARE: 6}
    model.partial_fit(table, view="stay")  # nothing new
    assert least() == {"ER": 60, "ICU": 59, RARE: 6}
    changed = table.iloc[[0, 10]].assign(ward="ER")
    model.partial_fit(changed, view="stay")
    # Either of the two corrected samples may have had any level.
    assert least() == {"ER": 60, "ICU": 57, RARE: 4}
    more = late.set_index(pd.Index([f"more{i}" for i in range(5)]))
    model.extend(more, view="stay")
    assert least()[RARE] == 7
    model.forget(["p5"])
    assert least()[RARE] == 6


def test_a_sample_that_lacks_the_view_costs_it_nothing() -> None:
    table = wards()
    scan = pd.DataFrame(np.random.default_rng(1).normal(size=(130, 3)))
    scan.index = pd.Index([f"p{i}" for i in range(130)])
    model = ViewFold(3, random_state=0).partial_fit(table, view="stay")
    model.partial_fit(scan, view="scan").forget([f"p{i}" for i in range(120, 130)])
    assert f"ward={RARE}" in model.views_[0].features


def test_of_levels_that_were_never_counted_each_may_be_one_of_the_forgotten() -> None:
    from dataclasses import replace

    model = ViewFold(3, random_state=0).partial_fit(wards(), view="stay")
    record = model._state.views[0]
    old = tuple(replace(column, counts=()) for column in record.columns)
    model._keep(replace(model._state, views=(replace(record, columns=old),)))
    with pytest.warns(UserWarning, match="3 levels of 'ward' in view 'stay'"):
        model.forget(["p7"])
    assert not any("ER" in name or "ICU" in name for name in model.views_[0].features)
    assert len(set(model.views_[0].features)) == 5
