"""The files of public sets become views: those of R, triples of words, matrices of cells."""

from __future__ import annotations

import base64
import gzip
import io
import lzma
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import r_files as r
from conftest import SHARED
from scipy import sparse
from web_server import Web

from viewfold_research.datasets import _rdata, _sources, fetch

# Written by R 4; from the tests of the package rdata (MIT). A matrix with names on both sides, and
# a data frame with a factor.
MATRIX = """
H4sIAAAAAAAABgtyiTDmiuBiYGBgZmBhYWZgZgUyGVhDQ9x0LRgYWJiAHEYGFgZOIC1WklpcEp9WmpMTn5eYm5oSn5tYUpRZ
wcDAxAuUZQOrBGoBYpAuVrCRYHEUU5hTMnOBFC9UGRNEGYoSDqASkA3FQGlhqBoBMA2RZwPKG8QboPAMoWqYkUQNUdQYAtUg
84zQbGWFWoliFUduZTxQNdwgGB9k3T8YBgC21JBiRAEAAA==
"""
FRAME = """
H4sIAAAAAAAABl1PywqCUBAduxooBEKLtv1Abtr0ASFu2kRBO5nyGpEPGK8Gfrw16jXqLoZ5nXNmznF/2XoXDwAE2LYA4XAJ
zvkUbnYA9owbC2xwOa+UrFScoMKUMJcxla+Cc8XUJa8ZKhaDTk8Z+j7+JOaZbGTGDPCH7Ti1cCquBt65ZVhN8K9IijdVElcd
h3lSmBL6x7+LWlc3DWa1HGnibRzzer/BYNgQdtl/8Csupv8OmNAjmWAhYfFMa1J64EeS2quk+xrzdYTUaiPdB2ZFez+LAQAA
"""
PLENTY = 10**7


def read(tmp_path: Path, data: bytes, most: int = PLENTY) -> dict[str, _rdata.RValue]:
    path = tmp_path / "held.rda"
    path.write_bytes(data)
    return _rdata.read(path, most)


# ---- files of R ---------------------------------------------------------------------------------


def test_files_that_r_has_written_are_read(tmp_path: Path) -> None:
    (held,) = read(tmp_path, base64.b64decode(MATRIX)).values()
    X, rows, columns = _rdata.matrix(held)
    assert X.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert (rows, columns) == (["dim0_0", "dim0_1"], ["dim1_0", "dim1_1", "dim1_2"])
    (held,) = read(tmp_path, base64.b64decode(FRAME)).values()
    assert _rdata.matrix(held)[1] == ["Madrid", "Frankfurt", "Herzberg am Harz"]
    codes, levels = _rdata.factor(held["class"])
    assert (codes.tolist(), levels) == ([0, 1, 1], ["a", "b"])
    with pytest.raises(ValueError, match="there is no 'size' among"):
        held["size"]


def test_matrices_and_data_frames_are_read_packed_or_not(tmp_path: Path) -> None:
    X = np.array([[1.5, np.nan, 3], [4, 5, -6]])
    data = r.saved(m=r.matrix(X, ["a", "b", "c"]), d=r.data_frame(X, ["a", "b", "c"]))
    for packed in (data, gzip.compress(data, mtime=0), lzma.compress(data)):
        held = read(tmp_path, packed)
        for name in ("m", "d"):
            found, _, columns = _rdata.matrix(held[name])
            assert np.array_equal(found, X, equal_nan=True)
            assert columns == ["a", "b", "c"]


def nested(depth: int) -> bytes:
    held = r.texts("a")
    for _ in range(depth):
        held = r.value(r.LIST, 1, held)
    return held


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not in the binary format"),
        (b"RDA2\nA\n", "not in the binary format"),
        (gzip.compress(b"RDX2\nX\n", mtime=0)[:15], "cannot be read as a file of R"),
        (r.saved(x=r.texts("a"))[:-7], "ends before its last value"),
        (r.saved(x=r.value(r.REAL, 2**30, b"")), "ends before its last value"),
        (r.saved(x=r.value(r.REAL, -1, b"")), "ends before its last value"),
        (r.saved(x=r.value(r.LIST, 2**30, b"")), "ends before its last value"),
        (r.saved(x=r.whole(3)), r"more than numbers, texts and lists \(type 3 of R\)"),
        (r.saved(x=r.whole(0x9FF)), "refers to a name that it does not have"),
        (r.saved(x=nested(100)), "more than 40 deep"),
        (
            gzip.compress(r.saved(x=r.value(r.REAL, 10**7, bytes(8 * 10**7))), mtime=0),
            "unpacks to more",
        ),
    ],
)
def test_damaged_and_hostile_files_of_r_are_refused(
    tmp_path: Path, data: bytes, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read(tmp_path, data)


def test_every_beginning_of_a_file_of_r_is_refused(tmp_path: Path) -> None:
    data = r.saved(x=r.named(a=r.matrix(np.eye(2), ["p", "q"]), b=r.factor(np.array([0]), "u")))
    assert read(tmp_path, data)
    for end in range(len(data)):
        with pytest.raises(ValueError, match=r"."):
            read(tmp_path, data[:end])


# ---- the sets, made into their files again ------------------------------------------------------


def shared(name: str) -> tuple[list[object], np.ndarray]:
    """What `fetch` reads of a set that is here already."""
    if not (SHARED / "data" / f"{name}.npz").exists():
        pytest.skip("the shared data sets are not here")
    held = fetch(name, data_home=SHARED / "data")
    return list(held.views.values()), held.target


def served(web: Web, name: str, files: dict[str, bytes], home: Path):
    web.files = {f"/{name}/{file}": data for file, data in files.items()}
    return fetch(name, data_home=home, mirror=web.address)


def test_tumours_come_out_of_the_file_of_r(web: Web, tmp_path: Path) -> None:
    views, target = shared("tcga-breast")
    names = [[f"{v}{j}" for j in range(X.shape[1])] for v, X in enumerate(views)]
    train, test = slice(0, 150), slice(150, 220)

    def part(rows: slice, which: dict[str, int]) -> bytes:
        tables = {view: r.matrix(views[v][rows], names[v]) for view, v in which.items()}
        return r.named(**tables, subtype=r.factor(target[rows], "Basal", "Her2", "LumA"))

    held = r.named(
        **{
            "data.train": part(train, {"mirna": 1, "mrna": 0, "protein": 2}),
            "data.test": part(test, {"mirna": 1, "mrna": 0}),
        }
    )
    data = gzip.compress(r.saved(**{"breast.TCGA": held}), 1, mtime=0)
    found = served(web, "tcga-breast", {"breast.TCGA.rda": data}, tmp_path)
    assert found.feature_names["protein"][:2] == ["20", "21"]
    assert np.isnan(found.views["protein"][150:]).all()


def test_news_come_out_of_triples(web: Web, tmp_path: Path) -> None:
    views, target = shared("3sources")
    files = {"3sources_truth": "\n".join(map(str, target + 1)).encode()}
    for paper, X in zip(("bbc", "guardian", "reuters"), views, strict=True):
        where = sparse.csc_array(X).tocoo()  # by term, as it is published
        lines = zip(where.col + 1, where.row + 1, where.data, strict=True)
        files[f"3sources_{paper}.out"] = "".join(f"{t} {s} {c:.4f}\n" for t, s, c in lines).encode()
    found = served(web, "3sources", files, tmp_path)
    assert found.target_names[found.target[1]] == "tech"


@pytest.mark.slow
def test_cells_come_out_of_matrices_and_a_table(web: Web, tmp_path: Path) -> None:
    views, target = shared("mouse-cortex")
    finer = {whole: parts.split()[-1] for whole, parts in _sources._BROADER.items()}
    types = [_sources.SOURCES["mouse-cortex"].classes[c] for c in target]
    table = pd.DataFrame({"Batch": "09A", "Ident": [finer.get(name, name) for name in types]})
    files = {"meta_c1.csv": table.to_csv().encode()}
    for part, X in zip("GRB", views, strict=True):
        held = io.BytesIO()
        sparse.save_npz(held, sparse.csc_matrix(X.T), compressed=False)
        files[f"{part}xC1.npz"] = held.getvalue()
    found = served(web, "mouse-cortex", files, tmp_path)
    for gene, kind in {"Slc1a2": "Astro", "Plp1": "Oligo", "Sst": "Sst"}.items():  # known to go
        counts = found.views["rna"][:, [found.feature_names["rna"].index(gene)]].toarray()
        of_kind = found.target == found.target_names.index(kind)
        assert counts[of_kind].mean() > 3 * counts.mean()


def test_a_type_of_cells_that_nobody_knows_is_refused(web: Web, tmp_path: Path) -> None:
    held = io.BytesIO()
    sparse.save_npz(held, sparse.csc_matrix(np.eye(2)))
    files = {f"{part}xC1.npz": held.getvalue() for part in "GRB"}
    files["meta_c1.csv"] = b",Ident\na,Ast\nb,Martian\n"
    with pytest.raises(ValueError, match="'mouse-cortex' are not as they were published"):
        served(web, "mouse-cortex", files, tmp_path)


def test_a_file_of_r_with_something_else_in_it_is_refused(web: Web, tmp_path: Path) -> None:
    for held in (r.texts("a"), r.named(**{"data.train": r.texts("a")}), r.whole(0x1FF)):
        data = r.saved(**{"breast.TCGA": held})
        with pytest.raises(ValueError, match="'tcga-breast' are not as they were published"):
            served(web, "tcga-breast", {"breast.TCGA.rda": data}, tmp_path)
    with pytest.raises(ValueError, match=r"not as they were published: 'breast\.TCGA'"):
        served(web, "tcga-breast", {"breast.TCGA.rda": r.saved(x=r.texts("a"))}, tmp_path)


def test_all_genes_have_names() -> None:
    names = _sources.genes()
    assert len(names) == len(set(names)) == _sources.SOURCES["mouse-cortex"].views["rna"]
