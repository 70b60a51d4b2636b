"""Public sets: where their files are, and how these become views; what is known of the paper's.

Addresses name a commit, so that what they lead to cannot change. The digests are of what was read
from the files, not of the files: see `viewfold_research.datasets.fetch` for what that checks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
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
    """A public set that `viewfold_research.datasets.fetch` knows.

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


# ---- tumours ------------------------------------------------------------------------------------


def _tumours(folder: Path) -> Parsed:
    """Read an R list of a training and a test set; the latter has no proteins."""
    from viewfold_research.datasets import _rdata

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


def _news(folder: Path) -> Parsed:
    """Read triples of term, story and count, and the topic of each story, all counted from 1."""
    topics = np.loadtxt(folder / "3sources_truth", np.int64, ndmin=1) - 1
    views = []
    for paper, terms in SOURCES["3sources"].views.items():
        term, story, count = np.loadtxt(folder / f"3sources_{paper}.out", ndmin=2).T
        where = story.astype(np.int64) - 1, term.astype(np.int64) - 1
        views.append(sparse.coo_array((count, where), shape=(topics.size, terms)).tocsr())
    return views, topics, {}


# ---- cells --------------------------------------------------------------------------------------

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

    from viewfold.datasets import load

    broader = {part: whole for whole, parts in _BROADER.items() for part in parts.split()}
    found = pd.read_csv(folder / "meta_c1.csv", index_col=0)["Ident"].replace(broader)
    views = [
        sparse.csr_array(next(iter(load(folder / f"{part}xC1.npz").views.values())).T)
        for part in "GRB"
    ]
    types = SOURCES["mouse-cortex"].classes
    return views, np.array([types.index(name) for name in found], np.int64), {"rna": genes()}


# What is known of the sets: sizes of the paper's are those of its own table; the order of views,
# which decides the paper's numbers but is not in the paper, was found by trying.
_KNOWN = json.loads(resources.files(__package__).joinpath("sets.json").read_text("utf-8"))
_PARSE = {"tcga-breast": _tumours, "3sources": _news, "mouse-cortex": _cells}
SOURCES = {
    one["name"]: Source(**one | {"classes": tuple(one["classes"])}, parse=_PARSE.get(one["name"]))
    for one in _KNOWN["sources"]
}


def listed() -> list[dict[str, Any]]:
    """List all public sets that are known, those of the FCMVC-IV paper first.

    Returns
    -------
    list of dict
        ``name``; ``samples``, ``views``, ``classes``: its size; ``features`` of each view, in the
        order of the file that is commonly passed around; ``order``, in which the paper's numbers
        need these views; ``address``, where a user gets it; ``note``; and ``fetch``: whether
        `fetch` downloads the set by that name. What is not known is None.

    Examples
    --------
    >>> from viewfold_research.datasets import listed
    >>> [row["name"] for row in listed() if row["fetch"]]
    ['tcga-breast', '3sources', 'mouse-cortex']
    """
    lists = "features", "order"
    paper = [
        {**one, **{name: one[name] and tuple(one[name]) for name in lists}, "fetch": False}
        for one in _KNOWN["paper"]
    ]
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
