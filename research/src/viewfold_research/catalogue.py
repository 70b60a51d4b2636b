"""The data sets of the FCMVC-IV paper, of which `datasets.listed` knows the sizes."""

from __future__ import annotations

from dataclasses import dataclass

from viewfold_research.datasets import listed, sources


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
    note: str


def catalogue() -> list[DataSet]:
    """List the data sets of the FCMVC-IV paper and what is known of each, in the paper's order.

    Examples
    --------
    >>> from viewfold_research.catalogue import catalogue
    >>> [(entry.name, entry.samples, entry.views) for entry in catalogue()][:3]
    [('ORL', 400, 3), ('proteinFold', 694, 12), ('uci-digit', 2000, 3)]
    >>> digits = catalogue()[2]
    >>> [digits.features[i] for i in digits.order]  # as the paper must have folded them
    [64, 76, 216]
    """
    others = {source.name for source in sources()}
    rows = [row for row in listed() if row["name"] not in others]
    return [DataSet(**{k: v for k, v in row.items() if k != "fetch"}) for row in rows]
