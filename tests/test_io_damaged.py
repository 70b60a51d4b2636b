"""Damaged files raise nothing but clear errors."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from io_files import (
    ALL,
    FRAME,
    TABLES,
)
from ugly_files import UGLY, with_lists

from viewfold import as_view, as_views


@st.composite
def damages(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """Flip bytes, cut pieces out, repeat pieces, or throw everything away."""
    places = st.floats(0, 1, exclude_max=True)
    changes = draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=8))
    cut = draw(st.none() | st.tuples(places, places))
    again = draw(st.none() | st.tuples(places, places))
    fresh = draw(st.none() | st.none() | st.none() | st.binary(max_size=300))

    def damage(content: bytes) -> bytes:
        if fresh is not None:
            return fresh
        out = bytearray(content)
        for place, value in changes:
            out[int(place * len(out))] = value
        for spot, keep in ((cut, False), (again, True)):
            if spot is not None:
                low, high = sorted(int(place * len(out)) for place in spot)
                out[low:high] = out[low:high] * 2 if keep else b""
        return bytes(out)

    return damage


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*ALL, *UGLY} - {"labs.pq"}))  # .pq is .parquet
def test_damaged_files_raise_nothing_but_clear_errors(name: str, tmp_path: Path) -> None:
    (ALL | UGLY)[name](tmp_path / name)
    content = (tmp_path / name).read_bytes()
    path = tmp_path / f"damaged-{name}"

    @settings(
        max_examples=int(os.environ.get("VIEWFOLD_FUZZ", 20)),
        deadline=None,
        derandomize="VIEWFOLD_FUZZ" not in os.environ,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(damages(), st.sampled_from(["id", None]))
    def check(damage: Callable[[bytes], bytes], ids: str | None) -> None:
        path.write_bytes(damage(content))
        try:
            as_views(path, ids=ids if name in TABLES | UGLY else None)
        except (ValueError, FileNotFoundError) as error:
            assert path.name in str(error)  # noqa: PT017

    check()


def test_text_of_any_kind_is_a_view_or_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    pieces = st.sampled_from(
        ["id", "x", "1", "2.5", ",", ";", "\n", "\r\n", '"', " ", "é", "\0", "NA"]
    )

    @settings(max_examples=200, deadline=None, derandomize=True, database=None)
    @given(st.lists(pieces, max_size=30), st.sampled_from(["id", None]))
    def check(parts: list[str], ids: str | None) -> None:
        path.write_bytes("".join(parts).encode())
        try:
            as_view(path, ids=ids)
        except ValueError as error:
            assert "a.csv" in str(error)  # noqa: PT017

    check()


def test_gzip_that_ends_too_early_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    whole = gzip.compress(FRAME.to_csv(index=False).encode() * 1000)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=re.escape("a.csv.gz")):
        as_view(path, ids="id")


FOOTERS = r"""
import sys
from viewfold.data import files as io
path, content = sys.argv[1], open(sys.argv[1], "rb").read()
begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
for place in range(begin, begin + 120):  # what columns there are
    damaged = bytearray(content)
    damaged[place] = (damaged[place] + 1) % 256
    with open(path, "wb") as file:
        file.write(damaged)
    try:
        io.read(path, ids="id")
    except ValueError:
        pass
"""


def test_no_byte_of_the_schema_of_a_parquet_file_ends_the_process(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(with_lists(pa.list_(pa.float64())), tmp_path / "a.parquet")
    command = [sys.executable, "-c", FOOTERS, str(tmp_path / "a.parquet")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]
