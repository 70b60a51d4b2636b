"""Data sets that the user has as a file.

The readers are those of `viewfold.data`; what this adds is the shape that all data sets here have,
and classes that count from 0, whatever they are called in the file.
"""

from __future__ import annotations

import re
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sklearn.utils import Bunch


def load(path: str | PathLike[str]) -> Bunch:
    """Read a multi-view data set from its file.

    Parameters
    ----------
    path : str or path
        A ``.npz`` file with ``view_0``, ``view_1``, … (samples × features; for a sparse view the
        parts of a CSR matrix, ``view_0_data``, ``_indices``, ``_indptr`` and ``_shape``) and ``y``,
        or a ``.mat`` file in one of the layouts in which the field publishes its sets. Where views
        have such names, other matrices of the file (masks, graphs) are no views.

    Returns
    -------
    Bunch
        ``views``, a dict of arrays or sparse matrices; ``target``, the classes as whole numbers
        from 0 without gaps, in the order of the file's own classes, or None if it has none.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib
    >>> from viewfold.datasets import load
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pets.npz"
    >>> np.savez(path, view_0=np.eye(3), view_1=np.ones((3, 2)), y=[1, 3, 1])
    >>> pets = load(path)
    >>> [X.shape for X in pets.views.values()], pets.target
    ([(3, 3), (3, 2)], array([0, 1, 0]))
    """
    from sklearn.utils import Bunch

    from viewfold.data.files import read_set

    views, classes = read_set(path)
    named = {name: X for name, X in views.items() if re.fullmatch(r"view_\d+", name)}
    views = named or views
    if classes is None:
        return Bunch(views=views, target=None)
    target = np.unique(np.asarray(classes).ravel(), return_inverse=True)[1]
    for name, X in views.items():
        if X.shape[0] != target.size:
            raise ValueError(
                f"{path}: view {name!r} has {X.shape[0]} samples, but there are classes for "
                f"{target.size}."
            )
    return Bunch(views=views, target=target)
