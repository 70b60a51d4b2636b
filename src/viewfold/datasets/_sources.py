"""Public sets: where their files are, and how these become views; what is known of the paper's.

Addresses name a commit, so that what they lead to cannot change. The digests are of what was read
from the files, not of the files: see `viewfold.datasets.fetch` for what that checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Views, classes, and names of features by view.
Parsed = tuple[list[Any], NDArray[np.int64], dict[str, list[str]]]


@dataclass(frozen=True)
class Source:
    """A public set that `viewfold.datasets.fetch` knows.

    Attributes
    ----------
    name : str
        What to call it.
    samples : int
        How many there are.
    views : dict of str to int
        Its views, and how many features each has.
    classes : tuple of str
        Names of the known classes, by number.
    address : str
        A page for people: where the set comes from.
    note : str
        What it is.
    files : dict of str to str
        Names of the files to download, and their addresses; empty if a user has to get them.
    most : int
        How many bytes a file may have.
    digest : str
        SHA-256 of views and classes.
    parse : callable
        Makes views of the files in a folder.
    """

    name: str
    samples: int
    views: dict[str, int]
    classes: tuple[str, ...]
    address: str
    note: str
    digest: str
    files: dict[str, str] = field(default_factory=dict)
    most: int = 0
    parse: Callable[[Path], Parsed] | None = field(default=None, repr=False)


def _at(repository: str, commit: str, folder: str, *names: str) -> dict[str, str]:
    base = f"https://raw.githubusercontent.com/{repository}/{commit}/{folder}/"
    return {name: base + name for name in names}


# ---- tumours ------------------------------------------------------------------------------------


def _tumours(folder: Path) -> Parsed:
    """Read an R list of a training and a test set; the latter has no proteins."""
    from viewfold.datasets import _rdata

    held = _rdata.read(folder / "breast.TCGA.rda", most=64 * 2**20)["breast.TCGA"]
    parts = [held["data.train"], held["data.test"]]
    views, names = [], {}
    for view in ("mrna", "mirna", "protein"):
        there = [part for part in parts if view in part.texts("names")]
        tables = [_rdata.matrix(part[view]) for part in there]
        X = np.vstack([table[0] for table in tables]).astype(np.float32)
        views.append(X)
        names[view] = tables[0][2]
    classes = np.concatenate([_rdata.factor(part["subtype"])[0] for part in parts])
    short = classes.size - views[2].shape[0]
    views[2] = np.vstack([views[2], np.full((short, views[2].shape[1]), np.nan, np.float32)])
    return views, classes, names


# ---- news ---------------------------------------------------------------------------------------

_PAPERS = {"bbc": 3560, "guardian": 3631, "reuters": 3068}


def _news(folder: Path) -> Parsed:
    """Read triples of term, story and count, and the topic of each story, all counted from 1."""
    topics = np.loadtxt(folder / "3sources_truth", np.int64, ndmin=1) - 1
    views = []
    for paper, terms in _PAPERS.items():
        term, story, count = np.loadtxt(folder / f"3sources_{paper}.out", ndmin=2).T
        where = story.astype(np.int64) - 1, term.astype(np.int64) - 1
        views.append(sparse.coo_array((count, where), shape=(topics.size, terms)).tocsr())
    return views, topics, {}


# ---- cells --------------------------------------------------------------------------------------

_TYPES = ("Astro", "CGE", "Clau", "Endo", "L2/3", "L4/5", "L6", "MGC", "Mis", "Npy")
_ALL_TYPES = (*_TYPES, "OPC", "Oligo", "Peri", "Pvalb", "Sst")
_BROADER = {  # the published clusters of nuclei, as the authors of the files put them together
    "L2/3": "E2Rasgrf2 E3Rmst E3Rorb",
    "L4/5": "E4Il1rapl2 E4Thsd7a E5Galnt14 E5Parm1 E5Sulf1 E5Tshz2",
    "L6": "E6Tle4",
    "Astro": "Ast",
    "Oligo": "OliM OliI",
    "CGE": "InV",
    "Sst": "InS",
    "Pvalb": "InP",
    "Npy": "InN",
    "MGC": "Mic",
}


def genes() -> list[str]:
    """Return the names of the features of ``rna``: genes.txt of the same repository (MIT)."""
    return resources.files(__package__).joinpath("mouse-cortex-genes.txt").read_text().split()


def _cells(folder: Path) -> Parsed:
    """Read sparse matrices of features × nuclei, and the type of each nucleus."""
    import pandas as pd

    from viewfold.data.files import read_set

    broader = {part: whole for whole, parts in _BROADER.items() for part in parts.split()}
    found = pd.read_csv(folder / "meta_c1.csv", index_col=0)["Ident"].replace(broader)
    views = [
        sparse.csr_array(next(iter(read_set(folder / f"{part}xC1.npz")[0].values())).T)
        for part in "GRB"
    ]
    return views, np.array([_ALL_TYPES.index(name) for name in found], np.int64), {"rna": genes()}


SOURCES = {
    source.name: source
    for source in (
        Source(
            "tcga-breast",
            220,
            {"mrna": 200, "mirna": 184, "protein": 142},
            ("Basal", "Her2", "LumA"),
            "https://rdrr.io/bioc/mixOmics/man/breast.TCGA.html",
            "Breast tumours of The Cancer Genome Atlas, as in mixOmics; 70 have no protein view.",
            "b4c8253d5ec25f9a18470467f42b0287c713d7c60dd7488f613a2b4fd2232135",
            _at(
                "mixOmicsTeam/mixOmics",
                "6e148b5912fe8f4da73e8cc0413c0c3e9638589f",
                "data",
                "breast.TCGA.rda",
            ),
            8 * 2**20,
            _tumours,
        ),
        Source(
            "3sources",
            169,
            _PAPERS,
            ("business", "entertainment", "health", "politics", "sport", "tech"),
            "http://mlg.ucd.ie/datasets/3sources.html",
            "Stories that were in three news sources at once: counts of words.",
            "546dd12c40568d20e925dc9ac91cf5dd6bf368ab11c2dab9a528d1f148d94195",
            _at(
                "mbrbic/Multi-view-LRSSC",
                "576a6100af7e82a7a563b014bf8bc7bd39c11e7a",
                "datasets/3-sources",
                *(f"3sources_{paper}.out" for paper in _PAPERS),
                "3sources_truth",
            ),
            4 * 2**20,
            _news,
        ),
        Source(
            "mouse-cortex",
            10_309,
            {"rna": 1_677, "atac": 25_734, "bins": 3_858},
            _ALL_TYPES,
            "https://github.com/PeterZZQ/scMoMaT",
            "Nuclei of the mouse cortex (SNARE-seq): counts of RNA, open regions and bins.",
            "144ad50b37775f9d70c17aeb63598f65c68d41e931a152c16eede35ddf952020",
            _at(
                "PeterZZQ/scMoMaT",
                "39fd0972d9e84e2cfbc9c1a8b3f67359b8b21ff3",
                "data/real/MOp_5batches",
                *(f"{part}xC1.npz" for part in "GRB"),
                "meta_c1.csv",
            ),
            64 * 2**20,
            _cells,
        ),
        Source(
            "bdgp",
            2_500,
            {"picture1": 1_000, "picture2": 500, "picture3": 250},
            ("1", "2", "3", "4", "5"),
            "https://github.com/wenyiwy99/SIMVC-SA",
            "Embryos of the fruit fly, up to three pictures of each; where there is none, the row "
            "is zero or NaN. Nine files with a different part left out of each: put together the "
            "rows that they have.",
            "8df256e1a10eae01d34d29ce6f8e731ca51637d0726b20ad4dd91aff075ccf44",
        ),
    )
}


# ---- the sets of the paper -----------------------------------------------------------------------


@dataclass(frozen=True)
class DataSet:
    """A data set of the paper.

    Attributes
    ----------
    name : str
        The paper's name for it.
    samples, views, classes : int
        Its size, by the paper's table.
    features : tuple of int or None
        Features of each view, in the order of the file that is commonly passed around; None if not
        known.
    order : tuple of int or None
        In which order the paper's numbers need these views, as positions in ``features``; None if
        not known.
    address : str
        Where a user gets it.
    note : str
        What else one has to know.
    """

    name: str
    samples: int
    views: int
    classes: int
    features: tuple[int, ...] | None
    order: tuple[int, ...] | None
    address: str
    note: str = ""


_MAT = "Published as a .mat file by several authors; viewfold.datasets.load reads it."
_IMAGES = f"Features were computed from the images; order of views not known. {_MAT}"

# Sizes are those of the paper's own table; the order of views, which decides the paper's numbers
# but is not in the paper, was found by trying.
_TABLE: list[Any] = [
    (
        ("ORL", 400, 3, 40, (4096, 3304, 6750), None),
        "https://cam-orl.co.uk/facedatabase.html",
        f"Faces: grey values, LBP, Gabor. Not the set of four views of the same name. {_MAT}",
    ),
    (
        ("proteinFold", 694, 12, 27, (27,) * 12, tuple(range(12))),
        "http://mkl.ucsd.edu/dataset/protein-fold-prediction",
        f"Twelve descriptions of protein folds. {_MAT}",
    ),
    (
        ("uci-digit", 2000, 3, 10, (216, 76, 64), (2, 1, 0)),
        "https://archive.ics.uci.edu/dataset/72/multiple+features",
        "Handwritten numerals; viewfold.datasets.fetch_uci_digits gets them from OpenML. "
        "Complete views fit the paper with 76, 64, 216 just as well; incomplete ones only in "
        "this order.",
    ),
    (
        ("Wiki", 2866, 2, 10, (128, 10), (0, 1)),
        "http://www.svcl.ucsd.edu/projects/crossmodal/",
        f"Images (SIFT histograms) and texts (topics) of Wikipedia articles. {_MAT}",
    ),
    (
        ("Reuters", 18758, 5, 5, None, None),
        "https://archive.ics.uci.edu/dataset/259",
        "News in five languages, sparse word weights. The paper's address is that of another "
        f"collection, and its table says 5 classes where this one has 6. {_MAT}",
    ),
    (
        ("Caltech256", 30607, 4, 257, None, None),
        "https://www.kaggle.com/datasets/jessicali9530/caltech256/",
        _IMAGES,
    ),
    (
        ("VGGFace2", 36287, 4, 100, None, None),
        "http://www.robots.ox.ac.uk/~vgg/data/vgg_face2/",
        f"A hundred people of the full set. {_IMAGES}",
    ),
    (
        ("YouTubeFace10", 38654, 4, 10, None, None),
        "https://www.cs.tau.ac.il/~wolf/ytfaces/",
        "Ten people of the full set. The paper's address is that of a collection of video "
        f"games. {_IMAGES}",
    ),
]
_SETS = [DataSet(*size, *where) for size, *where in _TABLE]


def catalogue() -> list[DataSet]:
    """List the data sets of the FCMVC-IV paper and what is known of each.

    None of them comes with this package.

    Returns
    -------
    list of DataSet
        One record for each set, in the paper's order.

    Examples
    --------
    >>> from viewfold.datasets import catalogue
    >>> [(entry.name, entry.samples, entry.views) for entry in catalogue()][:3]
    [('ORL', 400, 3), ('proteinFold', 694, 12), ('uci-digit', 2000, 3)]
    >>> digits = catalogue()[2]
    >>> [digits.features[i] for i in digits.order]  # as the paper must have folded them
    [64, 76, 216]
    """
    return list(_SETS)


def listed() -> list[dict[str, Any]]:
    """List all public sets that are known, those of the paper first.

    Returns
    -------
    list of dict
        What `DataSet` has, and ``fetch``: whether `fetch` downloads the set by that name.

    Examples
    --------
    >>> from viewfold.datasets import listed
    >>> [row["name"] for row in listed() if row["fetch"]]
    ['tcga-breast', '3sources', 'mouse-cortex']
    """
    paper = [{**asdict(entry), "fetch": False} for entry in _SETS]
    others = [
        {
            "name": source.name,
            "samples": source.samples,
            "views": len(source.views),
            "classes": len(source.classes),
            "features": tuple(source.views.values()),
            "order": None,
            "address": source.address,
            "note": source.note,
            "fetch": bool(source.files),
        }
        for source in SOURCES.values()
    ]
    return paper + others
