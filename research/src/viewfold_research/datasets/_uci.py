"""The handwritten numerals of the UCI repository, from OpenML.

Three of its six views are the paper's set uci-digit. What was downloaded is checked before it is
handed out: rows in another order would still look like data, and cluster like noise.
"""

from __future__ import annotations

import hashlib
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.utils import Bunch

# name of the view: number of the set on OpenML, features
_VIEWS = {
    "factors": (12, 216),
    "fourier": (14, 76),
    "karhunen": (16, 64),
    "pixel": (20, 240),
    "zernike": (22, 47),
    "morphological": (18, 6),
}
_FACTORS = "66a9d6493b41f2711d2abea3dea2f5b4b4294cc355c094c317fc3bb0e05b6091"  # sha256, int16
_SUMS = {
    "fourier": (-22.16037, -43.69225, 18.97013, -0.90437, 19.08473, 10.38742),
    "karhunen": (-382.59394, -1123.12876, 250.06687, -180.52908, 360.50083, -857.57847),
}
_TOLERANCE = 5e-4  # rounding to six decimals does a quarter of it, swapping two rows four times it


def fetch_uci_digits(*, data_home: str | PathLike[str] | None = None, verify: bool = True) -> Bunch:
    """Fetch 2000 handwritten numerals, described in six ways, from OpenML.

    The data are downloaded once (about 3 MB) and then come from scikit-learn's cache.
    The paper's set uci-digit is the views fourier, karhunen and factors, in this order.

    Parameters
    ----------
    data_home : str or path, optional
        Where scikit-learn keeps what it downloads.
    verify : bool
        Whether to compare the values with the digests that this package knows.

    Returns
    -------
    Bunch
        ``views``, a dict of arrays: factors (216 profile correlations), fourier (76 coefficients),
        karhunen (64 Karhunen-Loève coefficients), pixel (240 averages), zernike (47 moments) and
        morphological (6 features); ``target``, the digits, 200 of each.

    Raises
    ------
    ValueError
        If what came is not what was asked for.

    Notes
    -----
    scikit-learn checks every download against the MD5 sum that OpenML states. On top of that,
    factors is compared with a SHA-256 digest of its whole numbers, and fourier and karhunen with
    weighted sums over all values: these see one value that is off by 0.05 or two rows that changed
    places, but not whether six or eight decimals were stored. Of pixel, zernike and morphological
    this package has no digest: only their shapes are checked, and that their classes agree with
    those of the others row by row. The order of rows *within* a class is taken on trust there.

    Examples
    --------
    >>> from viewfold_research.datasets import fetch_uci_digits
    >>> digits = fetch_uci_digits()  # doctest: +SKIP
    >>> paper = {name: digits.views[name] for name in ("fourier", "karhunen", "factors")}
    ... # doctest: +SKIP
    """
    from sklearn.utils import Bunch

    views: dict[str, NDArray[np.float64]] = {}
    target: NDArray[np.int_] | None = None
    for name, (number, features) in _VIEWS.items():
        X, classes = _fetch(number, data_home)
        if X.shape != (2000, features):
            raise _wrong(name, f"has shape {X.shape}, not {(2000, features)}")
        if not np.isfinite(X).all():
            raise _wrong(name, "has values that are not numbers")
        target = classes if target is None else target
        if not np.array_equal(classes, target):
            raise _wrong(name, "has other classes than factors, row by row")
        if verify:
            _verify(name, X)
        views[name] = X
    return Bunch(views=views, target=target)


def _fetch(number: int, data_home: Any) -> tuple[NDArray[np.float64], NDArray[np.int_]]:
    """Get one set of OpenML as numbers; its classes are called 1 to 10 for the digits 0 to 9."""
    from sklearn.datasets import fetch_openml

    got = fetch_openml(data_id=number, as_frame=True, data_home=data_home, parser="auto")
    classes = _numbers(got.target).to_numpy()
    X = got.data.apply(_numbers).to_numpy(np.float64)
    return X, np.unique(classes, return_inverse=True)[1]


def _numbers(column: pd.Series) -> pd.Series:
    """Make a column numeric: pixel averages and classes are categories whose names are numbers."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column
    return pd.to_numeric(column.astype(str).str.strip("'\" "), errors="coerce")


def _verify(name: str, X: NDArray[np.float64]) -> None:
    if name == "factors":
        digest = hashlib.sha256(np.ascontiguousarray(X.round(), "<i2").tobytes()).hexdigest()
        if digest != _FACTORS:
            raise _wrong(name, f"has the digest {digest}, not {_FACTORS}")
    if name in _SUMS and not np.allclose(_sums(X), _SUMS[name], rtol=0, atol=_TOLERANCE):
        raise _wrong(name, f"has the weighted sums {_sums(X).round(4)}, not {_SUMS[name]}")


def _sums(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum all values with weights that depend on row and column, in six ways."""
    frequency = np.array([1, 2, 3, 5, 7, 11])
    row, column = (np.arange(1, size + 1) ** 2 for size in X.shape)  # squares: no near-periods
    rows = np.cos(np.outer(frequency, row)) @ X
    return np.asarray((rows * np.cos(np.outer(frequency[::-1], column))).sum(axis=1))


def _wrong(name: str, what: str) -> ValueError:
    return ValueError(
        f"The view {name!r} that OpenML sent {what}. Its copy may have changed or the cache may be "
        "damaged: empty scikit-learn's cache (sklearn.datasets.clear_data_home) and try again, or "
        "use the files of https://archive.ics.uci.edu/dataset/72 instead."
    )
