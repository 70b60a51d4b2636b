"""Files that claim or unpack to a thousand times their size: no memory is taken for them."""

from __future__ import annotations

import gzip
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hostile_files import MARKET, MEGA, attack, h5ad, mat73
from scipy import sparse

from viewfold import as_views
from viewfold.data import files as io
from viewfold.data import guard


def npy_header(shape: tuple[int, ...], version: int = 1) -> bytes:
    text = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    size = struct.pack("<H", len(text) + 1) if version == 1 else struct.pack("<I", 2**31)
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + b"\n"


def npz(path: Path, shape: tuple[int, ...], data: int = 0, version: int = 1) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as member,
    ):
        member.write(npy_header(shape, version))
        for _ in range(data):
            member.write(bytes(MEGA))


def write_zst(path: Path, piece: bytes, times: int, first: bytes = b"") -> None:
    with pa.CompressedOutputStream(str(path), "zstd") as sink:
        sink.write(first)
        for _ in range(times):
            sink.write(piece)


def line_of_json(path: Path) -> None:
    parts = [b'{"x": "', *[b"1" * MEGA] * 300, b'"}\n']
    packed = {part: gzip.compress(part) for part in set(parts)}
    path.write_bytes(b"".join(packed[part] for part in parts))


def keys_of_json(path: Path) -> None:
    path.write_text("\n".join(json.dumps({f"k{i}": 1.0}) for i in range(20_000)))


def mat5(path: Path, size: int, content: bytes) -> None:
    """Write a packed element that says it has so many bytes, and the beginning of it."""
    packed = zlib.compress(struct.pack("<II", 14, size) + content, 6)
    tag = struct.pack("<II", 15, len(packed))
    path.write_bytes(b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + tag + packed)


def sparse_mat5(path: Path) -> None:
    """Write a sparse matrix of 2³¹ − 1 rows with one entry."""
    parts = [(6, struct.pack("<II", 5, 1)), (5, struct.pack("<ii", 2**31 - 1, 2)), (1, b"x")]
    parts += [
        (5, struct.pack("<i", 0)),
        (5, struct.pack("<iii", 0, 1, 1)),
        (9, struct.pack("<d", 1.0)),
    ]
    body = b"".join(
        struct.pack("<II", kind, len(held)) + held.ljust(-(-len(held) // 8) * 8, b"\0")
        for kind, held in parts
    )
    mat5(path, len(body), body)


def cells_of_one(file: h5py.File) -> None:
    """Refer 10,000 times to the same 8 MB."""
    one = file.create_dataset("#refs#/a", data=np.zeros((1024, 1024)), compression="gzip")
    cell = file.create_dataset("X", data=np.full((1, 10_000), one.ref, dtype=h5py.ref_dtype))
    cell.attrs["MATLAB_class"] = np.bytes_("cell")


def parquet(path: Path) -> None:
    table = pa.table({"x": np.zeros(MEGA)})
    with pyarrow.parquet.ParquetWriter(path, table.schema) as writer:
        for _ in range(40):
            writer.write_table(table)


def coo(path: Path) -> None:
    sparse.save_npz(path, sparse.coo_array(([1.0], ([5], [5])), shape=(10**9, 10**9)))


BOMBS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "large.mtx": (
        lambda p: p.write_text(MARKET.format("coordinate") + "9000000 9000000 1\n1 1 1.0\n"),
        "shape (9000000, 9000000) would take 4.32 GB",
    ),
    "dense.mtx": (
        lambda p: p.write_text(MARKET.format("array") + "1000000 1000000\n1.0\n"),
        "1,000,000,000,000 entries would take 8 TB",
    ),
    "line.mtx.zst": (
        lambda p: write_zst(p, b"0" * MEGA, 400, MARKET.format("array").encode() + b"1 1\n"),
        "a line of more than 16.8 MB",
    ),
    "line.jsonl.gz": (line_of_json, "a line of more than 16.8 MB"),
    "keys.jsonl": (keys_of_json, "20,000 lines × 20,000 keys would take 3.2 GB of disk"),
    "rows.npy": (lambda p: p.write_bytes(npy_header((10**12, 3))), "24,000,000,000,000 bytes"),
    "header.npy": (lambda p: p.write_bytes(npy_header((3, 3), 2)), "a header of 2,147,483,648"),
    "rows.npz": (lambda p: npz(p, (10**12, 3)), "24,000,000,000,000 bytes"),
    "zeros.npz": (lambda p: npz(p, (35 * MEGA, 1), 280), "would take 294 MB of memory"),
    "header.npz": (lambda p: npz(p, (3, 3), version=2), "a header of 2,147,483,648"),
    "coo.npz": (coo, "shape (1000000000, 1000000000) would take 480 GB"),
    "zeros.mat": (lambda p: mat5(p, 280 * MEGA, bytes(280 * MEGA)), "would take 294 MB of memory"),
    "claims.mat": (lambda p: mat5(p, 2**32 - 8, bytes(80)), "would take 4.29 GB of memory"),
    "sparse.mat": (sparse_mat5, "shape (2147483647, 2) would take 515 GB"),
    "rows73.mat": (
        lambda p: mat73(p, lambda f: f.create_dataset("X", (10**12, 5), "f8", chunks=(1000, 5))),
        "/X of shape (1000000000000, 5) would take 40 TB of memory",
    ),
    "cells73.mat": (lambda p: mat73(p, cells_of_one), "/#refs#/a of shape (1024, 1024) would take"),
    "rows.h5ad": (
        lambda p: h5ad(p, lambda f: f.create_dataset("X", (10**12, 5), "f8", chunks=(1000, 5))),
        "/X of shape (1000000000000, 5) would take 40 TB of memory",
    ),
    "rows.parquet": (parquet, "41,943,040 rows × 1 columns would take 336 MB of disk"),
    "zeros.csv.gz": (
        lambda p: p.write_bytes(gzip.compress((b"0" * 4095 + b"\n") * 256) * 400),
        "MB of text, but the file has",
    ),
    "columns.csv.zst": (lambda p: write_zst(p, b"," * MEGA, 40), "would take 41.9 GB of memory"),
}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, float]]:
    """What a process said to each file, and how much memory it took, in MB."""
    folder = tmp_path_factory.mktemp("bombs")
    for name, (write, _) in BOMBS.items():
        write(folder / name)
    found = attack((folder / name, None) for name in BOMBS)
    return {path.name: told for path, told in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_with_the_number_before_memory_is_taken(name: str, attacked) -> None:
    said, grown = attacked[name]
    assert said.startswith("FileError: ")
    assert name in said
    assert BOMBS[name][1] in said
    assert grown < 150  # MB: buffers; the smallest of these files would take twice that


def test_what_a_file_may_take_can_be_set(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "large.mtx"
    path.write_text(MARKET.format("coordinate") + "2000000 2000000 1\n1 1 1.0\n")
    with pytest.raises(io.FileError, match=r"960 MB.*VIEWFOLD_MEMORY=916M"):
        io.read(path)
    monkeypatch.setenv("VIEWFOLD_MEMORY", "916M")
    assert io.read(path)["large"].rows.shape == (2_000_000, 2_000_000)
    monkeypatch.setenv("VIEWFOLD_MEMORY", "1000")
    np.savez(tmp_path / "a.npz", x=np.eye(20))
    with pytest.raises(io.FileError, match=r"3\.2 KB of memory, but VIEWFOLD_MEMORY allows 1 KB"):
        io.read(tmp_path / "a.npz")
    monkeypatch.setenv("VIEWFOLD_MEMORY", "much")
    with pytest.raises(ValueError, match="'much' is no size"):
        io.read(tmp_path / "a.npz")


def test_what_is_not_free_is_not_taken(tmp_path: Path, monkeypatch) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros((3 * MEGA, 1)))
    monkeypatch.setattr(guard, "free_memory", lambda: 10 * MEGA)
    with pytest.raises(io.FileError, match=r"25.2 MB of memory, but 10.5 MB are free"):
        io.read(tmp_path / "a.npz")
    monkeypatch.setattr(guard, "free_memory", lambda: 100 * MEGA)
    assert io.read(tmp_path / "a.npz")["a"].rows.shape == (3 * MEGA, 1)
    pyarrow.parquet.write_table(pa.table({"x": np.zeros(3 * MEGA)}), tmp_path / "a.parquet")
    monkeypatch.setattr(guard, "free_disk", lambda: 20 * MEGA)
    with pytest.raises(io.FileError, match=r"25.2 MB of disk, but 21 MB are free.*TMPDIR"):
        io.read(tmp_path / "a.parquet")
    with gzip.open(tmp_path / "a.csv.gz", "wb", compresslevel=1) as file:
        file.write((b"1." + b"0" * 125 + b"\n") * (MEGA // 4))  # the text is larger than the disk
    monkeypatch.setenv("VIEWFOLD_MEMORY", "1M")  # of memory; neither text nor rows are kept in it
    assert as_views(tmp_path / "a.csv.gz")[0].shape == (MEGA // 4, 1)


def test_a_packed_file_of_commas_is_refused_by_its_cells_and_by_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packed, an empty cell is a thousandth of a byte; its number takes eight."""
    monkeypatch.setattr(guard, "HARMLESS", 2**20)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress((b"," * 999 + b"\n") * 900))
    with pytest.raises(ValueError, match=r"its rows would take .* of disk"):
        as_views(path, ids=False)
    monkeypatch.setattr(guard.gzip, "GzipFile", None)  # nothing is unpacked to know that
    path.write_bytes(gzip.compress(b"," * 4_000_000))
    with pytest.raises(ValueError, match=r"what is unpacked would take 4 MB of text"):
        as_views(path, ids=False)
