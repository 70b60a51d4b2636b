"""Public sets are fetched whole, once, and right, or not at all: from a server on this machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse
from web_server import Web

from viewfold.datasets import load
from viewfold_research.bench.cli import app
from viewfold_research.datasets import Source, _fetch, fetch, listed, sources
from viewfold_research.datasets._fetch import check_redirect, digest

X = np.array([[1.5, np.nan], [2.0, 3.0], [0.0, 4.0]], np.float32)
S = sparse.csr_array(np.array([[0, 1, 0], [2, 0, 0], [0, 0, 3]]))
Y = np.array([0, 1, 1])
FILES = {"dense.csv": b"1.5,nan\n2,3\n0,4\n", "classes.csv": b"0\n1\n1\n"}


def parse(folder: Path):
    dense = np.loadtxt(folder / "dense.csv", np.float32, delimiter=",")
    return [dense, S], np.loadtxt(folder / "classes.csv", np.int64), {"dense": ["iron", "zinc"]}


@pytest.fixture
def tiny(web: Web, monkeypatch: pytest.MonkeyPatch) -> Web:
    """A server that has a set of two files, which `fetch` knows."""
    web.files = {f"/data/{name}": held for name, held in FILES.items()}
    at = {name: f"{web.address}/data/{name}" for name in FILES}
    views, page = {"dense": 2, "counts": 3}, "https://data.invalid/tiny"
    sha = digest([X, S], Y)
    source = Source("tiny", 3, views, ("a", "b"), page, "A set.", sha, at, 1000, parse)
    monkeypatch.setitem(_fetch.SOURCES, "tiny", source)
    return web


def left(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*"))


def test_a_set_is_fetched_once_and_then_read_from_its_file(tiny: Web, tmp_path: Path) -> None:
    held = fetch("tiny", data_home=tmp_path / "new" / "folder")
    assert list(held.views) == ["dense", "counts"]
    assert np.array_equal(held.views["dense"], X, equal_nan=True)
    assert (held.views["counts"] != S).nnz == 0
    assert held.target.tolist() == [0, 1, 1]
    assert held.target_names == ["a", "b"]
    assert held.feature_names == {"dense": ["iron", "zinc"]}
    assert left(tmp_path / "new" / "folder") == ["tiny.npz"]
    assert list(load(held.filename).views) == ["view_0", "view_1"]
    again = fetch("tiny", data_home=tmp_path / "new" / "folder")
    assert again.feature_names == held.feature_names
    assert len(tiny.asked) == 2


def test_the_folder_is_the_one_of_the_environment_or_that_of_scikit_learn(
    tiny: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "sklearn"))
    assert fetch("tiny").filename == str(tmp_path / "sklearn" / "viewfold" / "tiny.npz")
    monkeypatch.setenv("VIEWFOLD_DATA", str(tmp_path / "own"))
    assert fetch("tiny").filename == str(tmp_path / "own" / "tiny.npz")


def changed(web: Web) -> None:
    web.files["/data/dense.csv"] = b"1.5,nan\n0,4\n2,3\n"


def of_another_shape(web: Web) -> None:
    web.files["/data/dense.csv"] = b"1.5,nan\n2,3\n"


def no_table(web: Web) -> None:
    web.files["/data/dense.csv"] = b"<html>Please log in</html>"


def gone(web: Web) -> None:
    web.files["/data/classes.csv"] = 404


def broken_off(web: Web) -> None:
    web.short.add("/data/dense.csv")


def too_large(web: Web) -> None:
    web.files["/data/classes.csv"] = b"0" * 1001


def too_large_and_silent_about_it(web: Web) -> None:
    too_large(web)
    web.unsized.add("/data/classes.csv")


def in_circles(web: Web) -> None:
    web.files["/data/dense.csv"] = "/data/dense.csv"


def to_another_protocol(web: Web) -> None:
    web.files["/data/dense.csv"] = "ftp://127.0.0.1/dense.csv"


def to_a_file(web: Web) -> None:
    web.files["/data/dense.csv"] = "file:///etc/passwd"


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (changed, ValueError, r"digest \w{64}, not \w{64}"),
        (of_another_shape, ValueError, r"\[\(3, 2\), \(3, 3\)\], but these are \[\(2, 2\), \(3, 3"),
        (no_table, ValueError, "not as they were published"),
        (gone, OSError, r"classes.csv of 'tiny' did not come .*404: Not Found"),
        (broken_off, OSError, "broke off after 8 of 16 bytes"),
        (too_large, ValueError, "has 1,001 bytes, where 1,000"),
        (too_large_and_silent_about_it, ValueError, "more than the 1,000 bytes"),
        (in_circles, OSError, "infinite loop"),
        (to_another_protocol, ValueError, "sends on to ftp://127.0.0.1/dense.csv, which is less"),
        (to_a_file, OSError, "file:///etc/passwd' is not allowed"),
    ],
)
def test_what_is_not_the_set_is_refused_and_leaves_nothing(
    tiny: Web, tmp_path: Path, wrong, kind: type[Exception], message: str
) -> None:
    wrong(tiny)
    with pytest.raises(kind, match=message) as told:
        fetch("tiny", data_home=tmp_path)
    if kind is OSError:
        assert f"By hand: get dense.csv, classes.csv from {tiny.address}/data/" in str(told.value)
    assert left(tmp_path) == []


def test_a_redirection_to_another_host_is_followed(tiny: Web, tmp_path: Path) -> None:
    tiny.files["/moved.csv"] = tiny.files["/data/dense.csv"]
    tiny.files["/data/dense.csv"] = tiny.address.replace("127.0.0.1", "localhost") + "/moved.csv"
    assert fetch("tiny", data_home=tmp_path).target.size == 3
    for weaker in ("http://data.org/a", "ftp://data.org/a", "file:///a", "//"):
        with pytest.raises(ValueError, match="less safe"):
            check_redirect("https://data.org/a", weaker)


def test_a_mirror_is_asked_instead(
    tiny: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.files = {f"/mirror/tiny/{name}": held for name, held in FILES.items()}
    fetch("tiny", data_home=tmp_path / "a", mirror=f"{tiny.address}/mirror/")
    monkeypatch.setenv("VIEWFOLD_MIRROR", f"{tiny.address}/mirror")
    fetch("tiny", data_home=tmp_path / "b")
    for address in ("file:///etc", "ftp://data.org", "data.org"):
        with pytest.raises(ValueError, match="no address that begins with https"):
            fetch("tiny", data_home=tmp_path / "c", mirror=address)


def test_files_got_by_hand_are_used_without_a_network(tiny: Web, tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    for name, held in FILES.items():
        (tmp_path / "tiny" / name).write_bytes(held)
    assert fetch("tiny", data_home=tmp_path).target.size == 3
    assert tiny.asked == []
    assert left(tmp_path) == ["tiny", "tiny.npz", "tiny/classes.csv", "tiny/dense.csv"]


def test_a_damaged_file_of_the_folder_is_not_taken_for_the_set(tiny: Web, tmp_path: Path) -> None:
    path = Path(fetch("tiny", data_home=tmp_path).filename)
    np.savez(path, view_0=X + 1, view_1=S.toarray(), y=Y)
    with pytest.raises(ValueError, match=r"tiny\.npz: the content .*Remove it and fetch it again"):
        fetch("tiny", data_home=tmp_path)
    assert fetch("tiny", data_home=tmp_path, verify=False).views["dense"][1, 0] == 3
    np.savez(path, view_0=X, y=Y)
    with pytest.raises(ValueError, match="is not 'tiny': views or classes are missing"):
        fetch("tiny", data_home=tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_folder_that_cannot_be_written_serves_if_the_set_is_in_it(
    tiny: Web, tmp_path: Path
) -> None:
    fetch("tiny", data_home=tmp_path)
    tmp_path.chmod(0o500)
    assert fetch("tiny", data_home=tmp_path).target.size == 3


def test_the_digest_sees_values_places_and_order_but_not_types() -> None:
    same = digest([X.astype(float), S.astype(float).tocoo().tocsc()], Y.astype(np.int8))
    assert same == digest([X, S], Y)
    moved, zero = X.copy(), S.copy()
    moved[[1, 2]] = moved[[2, 1]]
    zero.data = zero.data * [1, 0, 1]
    others = [([moved, S], Y), ([X, zero], Y), ([S, X], Y), ([X, S], Y[::-1]), ([X, S.T], Y)]
    assert same not in {digest(views, target) for views, target in others}


def test_the_command_fetches_and_lists(tiny: Web, tmp_path: Path) -> None:
    def run(*words: object) -> Any:
        return CliRunner().invoke(app, ["datasets", *map(str, words)])

    said = run("--fetch", "tiny", "--folder", tmp_path).stderr
    assert "tiny.npz has tiny: dense 3 × 2, counts 3 × 3." in said
    told = run("--fetch", "tiny", "--json", "--folder", tmp_path).stdout
    assert json.loads(told)["views"] == {"dense": [3, 2], "counts": [3, 3]}
    rows = {row["name"]: row for row in json.loads(run("--json").stdout)}
    assert rows["tcga-breast"]["features"] == [200, 184, 142]
    assert [name for name, row in rows.items() if row["fetch"]][:2] == ["tcga-breast", "3sources"]
    assert "3sources: 169 samples, 3 views, 6 classes; fetched by" in run().stdout
    assert "There is no set 'tony'" in str(run("--fetch", "tony").exception)


def test_all_sources_are_of_the_web_and_have_sizes_and_digests() -> None:
    assert len(listed()) == 8 + len(sources())
    for source in sources():
        assert len(source.digest) == 64
        assert bool(source.files) == (source.parse is not None) == (source.most > 0)
        assert all(address.startswith("https://") for address in source.files.values())
        assert all(address.endswith(f"/{name}") for name, address in source.files.items())


def test_a_set_that_cannot_be_downloaded_says_where_it_is(web: Web, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"github.com/wenyiwy99.*Make a file .*bdgp\.npz"):
        fetch("bdgp", data_home=tmp_path)
