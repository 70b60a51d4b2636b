"""What is known of the eight data sets of the FCMVC-IV paper.

Sizes are those of the paper's own table; the order of views, which decides the paper's numbers but
is not in the paper, was found by trying.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from viewfold.datasets._sources import SOURCES


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

_SETS = (
    DataSet(
        "ORL",
        400,
        3,
        40,
        (4096, 3304, 6750),
        None,
        "https://cam-orl.co.uk/facedatabase.html",
        f"Faces: grey values, LBP, Gabor. Not the set of four views of the same name. {_MAT}",
    ),
    DataSet(
        "proteinFold",
        694,
        12,
        27,
        (27,) * 12,
        tuple(range(12)),
        "http://mkl.ucsd.edu/dataset/protein-fold-prediction",
        f"Twelve descriptions of protein folds. {_MAT}",
    ),
    DataSet(
        "uci-digit",
        2000,
        3,
        10,
        (216, 76, 64),
        (2, 1, 0),
        "https://archive.ics.uci.edu/dataset/72/multiple+features",
        "Handwritten numerals; viewfold.datasets.fetch_uci_digits gets them from OpenML. Complete "
        "views fit the paper with 76, 64, 216 just as well; incomplete ones only in this order.",
    ),
    DataSet(
        "Wiki",
        2866,
        2,
        10,
        (128, 10),
        (0, 1),
        "http://www.svcl.ucsd.edu/projects/crossmodal/",
        f"Images (SIFT histograms) and texts (topics) of Wikipedia articles. {_MAT}",
    ),
    DataSet(
        "Reuters",
        18758,
        5,
        5,
        None,
        None,
        "https://archive.ics.uci.edu/dataset/259",
        "News in five languages, sparse word weights. The paper's address is that of another "
        "collection, and its table says 5 classes where this one has 6. " + _MAT,
    ),
    DataSet(
        "Caltech256",
        30607,
        4,
        257,
        None,
        None,
        "https://www.kaggle.com/datasets/jessicali9530/caltech256/",
        _IMAGES,
    ),
    DataSet(
        "VGGFace2",
        36287,
        4,
        100,
        None,
        None,
        "http://www.robots.ox.ac.uk/~vgg/data/vgg_face2/",
        f"A hundred people of the full set. {_IMAGES}",
    ),
    DataSet(
        "YouTubeFace10",
        38654,
        4,
        10,
        None,
        None,
        "https://www.cs.tau.ac.il/~wolf/ytfaces/",
        "Ten people of the full set. The paper's address is that of a collection of video games. "
        + _IMAGES,
    ),
)


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
