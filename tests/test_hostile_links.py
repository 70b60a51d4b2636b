"""Files that lead out of themselves, or in circles: nothing else is read."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
from hostile_files import h5ad, mat73

from viewfold import as_views
from viewfold.data import files as io


def external_link(file: h5py.File) -> None:
    file["X"] = h5py.ExternalLink("secret.h5", "/X")


def hidden_link(file: h5py.File) -> None:
    file["X"] = h5py.SoftLink("/deep/er/X")
    file.create_group("deep")["er"] = h5py.ExternalLink("secret.h5", "/")


def external_data(file: h5py.File) -> None:
    secret = str(Path(file.filename).parent / "secret.bin")
    file.create_dataset("X", (4, 4), "u1", external=[(secret, 0, 16)])


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((4, 4), "f8")
    layout[:] = h5py.VirtualSource("secret.h5", "X", (4, 4))
    file.create_virtual_dataset("X", layout)


def referred(file: h5py.File) -> None:
    secret = str(Path(file.filename).parent / "secret.bin")
    hidden = file.create_dataset("#refs#/a", (4, 4), "u1", external=[(secret, 0, 16)])
    file.create_dataset("X", data=np.full((1, 1), hidden.ref, dtype=h5py.ref_dtype))


def plugin(file: h5py.File) -> None:
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_chunk((4, 4))
    how.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, ())
    kind, space = h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((4, 4))
    h5py.h5d.create(file.id, b"X", kind, space, how)


WAYS_OUT = {
    external_link: "X is a link in another file",
    hidden_link: "/deep/er is a link in another file",
    external_data: "X is data in another file",
    virtual: "X is a virtual dataset in another file",
    referred: "/#refs#/a is data in another file",
    plugin: "X is packed with filter 32015",
}


@pytest.mark.parametrize("suffix", ["mat", "h5ad", "h5mu"])
@pytest.mark.parametrize("way", WAYS_OUT, ids=lambda way: way.__name__)
def test_nothing_outside_of_a_file_is_read(way, suffix: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.bin").write_bytes(b"root:x:0:0:root:")
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["X"] = np.arange(16.0).reshape(4, 4)
    path = tmp_path / f"trap.{suffix}"
    (mat73 if suffix == "mat" else h5ad)(path, way)
    with pytest.raises(io.FileError, match=re.escape(WAYS_OUT[way])) as error:
        as_views(path)
    assert str(path) in str(error.value)


def cell_of_itself(file: h5py.File) -> None:
    cell = file.create_dataset("X", (1, 50), dtype=h5py.ref_dtype)
    cell[:] = cell.ref


def test_circles_end(tmp_path: Path) -> None:
    path = tmp_path / "circle.mat"
    with h5py.File(path, "w") as file:
        file["A"] = np.arange(12.0).reshape(3, 4)
        group = file.create_group("g")
        group["up"] = file["/"]
        file["one"], file["two"] = h5py.SoftLink("/two"), h5py.SoftLink("/one")
    with pytest.raises(io.FileError, match=r"circle\.mat"):
        as_views(path)
    with h5py.File(path, "r+") as file:
        del file["one"], file["two"]
        cell_of_itself(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (view,) = as_views(path)
    assert view.shape == (4, 3)


def test_links_within_a_file_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "inside.mat"
    with h5py.File(path, "w") as file:
        file["#refs#/a"] = np.arange(12.0).reshape(3, 4)
        file["X"] = h5py.SoftLink("/#refs#/a")
    assert as_views(path)[0].shape == (4, 3)
    with h5py.File(path, "w") as file:
        file.create_dataset("#refs#/a", (10**9, 10**3), "f8", chunks=(1000, 10))
        file["X"] = h5py.SoftLink("/#refs#/a")
    with pytest.raises(io.FileError, match="8 TB"):
        as_views(path)
