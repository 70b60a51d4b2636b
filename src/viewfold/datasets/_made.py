"""Data sets that come with the package, are made (patients, clusters of any size) or are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from viewfold.data.files import read_set
from viewfold.datasets.missing import GeneratorSeed, by_paper_rule

if TYPE_CHECKING:
    from sklearn.utils import Bunch


Images = NDArray[np.float64]


def load_digits_views() -> Bunch:
    """Load 1797 handwritten digits, described in six ways.

    The images (8 × 8 grey values) come with scikit-learn; the views are computed from them, in the
    manner of the classical multiple-features set.

    Returns
    -------
    Bunch
        ``views``, a dict of arrays: pixels (64), fourier (magnitudes of the 2-D transform, 39),
        profiles (projections on rows, columns and diagonals, 46), zones (mean and direction of the
        stroke in 16 zones, 48), moments (mass, centre and central moments up to order four, 15) and
        edges (histograms of gradient directions in nine cells, 72); ``target``, the digits.

    Examples
    --------
    >>> from viewfold.datasets import load_digits_views
    >>> digits = load_digits_views()
    >>> {name: X.shape for name, X in digits.views.items()}  # doctest: +NORMALIZE_WHITESPACE
    {'pixels': (1797, 64), 'fourier': (1797, 39), 'profiles': (1797, 46), 'zones': (1797, 48),
     'moments': (1797, 15), 'edges': (1797, 72)}
    """
    from sklearn.datasets import load_digits
    from sklearn.utils import Bunch

    digits = load_digits()
    images: Images = digits.images / 16
    views = {
        "pixels": images.reshape(len(images), -1),
        "fourier": _fourier(images),
        "profiles": _profiles(images),
        "zones": _zones(images),
        "moments": _moments(images),
        "edges": _edges(images),
    }
    return Bunch(views=views, target=digits.target)


def _fourier(images: Images) -> Images:
    spectrum = np.abs(np.fft.rfft2(images))  # the constant term is the mass, which others have
    return spectrum.reshape(len(images), -1)[:, 1:]


def _profiles(images: Images) -> Images:
    def diagonals(stack: Images) -> list[Images]:
        return [np.trace(stack, k, axis1=1, axis2=2) for k in range(-7, 8)]

    sums = [*images.sum(axis=1).T, *images.sum(axis=2).T]
    return np.column_stack([*sums, *diagonals(images), *diagonals(images[:, :, ::-1])])


def _cells(images: Images, size: int, step: int) -> Images:
    """Cut images into square cells: images × cells × size × size."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (size, size), axis=(1, 2))
    return windows[:, ::step, ::step].reshape(len(images), -1, size, size)


def _zones(images: Images) -> Images:
    down, right = np.gradient(images, axis=(1, 2))
    parts: tuple[Images, ...] = (images, down * right, down**2 - right**2)  # type: ignore[assignment]
    return np.column_stack([_cells(part, 2, 2).mean(axis=(2, 3)) for part in parts])


def _moments(images: Images) -> Images:
    y, x = np.mgrid[:8, :8]
    mass = images.sum(axis=(1, 2))

    def mean(values: Images) -> Images:
        return np.asarray((images * values).sum(axis=(1, 2)) / mass)

    dx = x - mean(x)[:, None, None]
    dy = y - mean(y)[:, None, None]
    orders = [(p, q) for p in range(5) for q in range(5) if 2 <= p + q <= 4]
    moments = [mean(dx**p * dy**q) for p, q in orders]
    return np.column_stack([mass, mean(x), mean(y), *moments])


def _edges(images: Images) -> Images:
    down, right = np.gradient(images, axis=(1, 2))
    strength = np.hypot(down, right)
    direction = np.arctan2(down, right) / (2 * np.pi) * 8 % 8
    histogram = []
    for k in range(8):
        apart = np.abs(direction - k)
        # A direction counts for its two neighbours.
        share: Images = np.clip(1 - np.minimum(apart, 8 - apart), 0, 1)
        histogram.append(_cells(strength * share, 4, 2).sum(axis=(2, 3)))
    return np.column_stack(histogram)


GROUPS = ("well", "short of iron", "infection", "weak heart")
# A mean for each group, and the spread within it. Neither table tells all groups apart.
LABS = {
    "iron_umol_l": ((18, 6, 15, 17), 3),
    "ferritin_ug_l": ((110, 14, 220, 120), 25),
    "hemoglobin_g_l": ((142, 104, 135, 139), 8),
    "crp_mg_l": ((3, 4, 85, 5), 9),
    "leukocytes_g_l": ((7, 7, 14, 7), 1.5),
    "sodium_mmol_l": ((140, 140, 139, 139), 2),
}
VITALS = {
    "temperature_c": ((36.7, 36.6, 38.6, 36.6), 0.3),
    "pulse_per_min": ((70, 86, 98, 92), 7),
    "systolic_mmhg": ((126, 118, 115, 98), 8),
    "breaths_per_min": ((14, 16, 21, 23), 2),
    "weight_gain_kg": ((0.0, 0.0, -0.4, 3.5), 0.6),
}


def make_patients(n_patients: int = 400, *, random_state: int = 0) -> Bunch:
    """Make blood tests and vital signs of patients of four hidden groups.

    Each table lacks some patients, and neither tells all groups apart: the blood of those with a
    weak heart looks well.

    Returns
    -------
    Bunch
        ``views``: the DataFrames ``labs`` and ``vitals``, with the ids of patients as their index;
        ``target``: the hidden group of every patient, a Series by id.

    Examples
    --------
    >>> from viewfold.datasets import make_patients
    >>> patients = make_patients()
    >>> {name: view.shape for name, view in patients.views.items()}
    {'labs': (340, 6), 'vitals': (300, 5)}
    >>> patients.target.value_counts().sort_index().to_dict()
    {'infection': 105, 'short of iron': 89, 'weak heart': 116, 'well': 90}
    """
    import pandas as pd
    from sklearn.utils import Bunch

    rng = np.random.default_rng(random_state)
    group = rng.integers(len(GROUPS), size=n_patients)
    ids = pd.Index([f"p{i}" for i in range(n_patients)], name="patient")
    views = {}
    for name, table, share in (("labs", LABS, 0.85), ("vitals", VITALS, 0.75)):
        values = {
            feature: rng.normal(np.array(means)[group], spread).round(1)
            for feature, (means, spread) in table.items()
        }
        there = np.sort(rng.permutation(n_patients)[: round(share * n_patients)])
        views[name] = pd.DataFrame(values, index=ids).iloc[there]
    target = pd.Series(np.array(GROUPS)[group], index=ids, name="group")
    return Bunch(views=views, target=target)


_ROWS = 1 << 16  # rows made at a time: the centres of all samples at once would double the memory


def make_multiview(
    n_samples: int = 1000,
    n_features: Sequence[int] = (20, 30, 10),
    n_clusters: int = 5,
    *,
    noise: float | Sequence[float] = 1.0,
    missing: float = 0.0,
    dtype: DTypeLike = np.float64,
    random_state: GeneratorSeed = None,
) -> Bunch:
    """Make views of samples whose clusters are known.

    In each view, the cluster centres are standard normal and the samples lie around them with a
    standard deviation of ``noise``. All clusters have the same size, give or take one.

    Parameters
    ----------
    n_samples, n_clusters : int
        How many samples and clusters there are.
    n_features : sequence of int
        How many features each view has; as many views are made.
    noise : float or sequence of float
        Standard deviation about the cluster centres, for all views or for each. At 1, clusters are
        easy to find in 20 features; at 100, a view tells next to nothing.
    missing : float
        Share of samples that each view lacks, by the rule of the FCMVC-IV paper: exact counts, and
        nobody is missing everywhere.
    dtype : float64 or float32
        Type of the features. float32 takes half the memory.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    Bunch
        ``views``, a dict of arrays (``view0``, ``view1``, …), samples in random order, with rows of
        NaN where a view lacks the sample; ``target``, the clusters, from 0; ``missing``, a boolean
        array of samples × views.

    Examples
    --------
    >>> from viewfold import ViewFold, datasets, metrics
    >>> data = datasets.make_multiview(300, [8, 12], 3, noise=[0.5, 2], missing=0.2, random_state=0)
    >>> data.views["view1"].shape, data.missing.sum(axis=0)
    ((300, 12), array([60, 60]))
    >>> labels = ViewFold(n_clusters=3, random_state=0).fit_predict(data.views)
    >>> metrics.accuracy(data.target, labels) > 0.9
    True
    """
    from sklearn.utils import Bunch

    kind: np.dtype[Any] = np.dtype(dtype)
    n_views = len(n_features)
    spread = [float(noise)] * n_views if isinstance(noise, int | float) else [*map(float, noise)]
    if len(spread) != n_views:
        raise ValueError(f"noise has {len(spread)} values, but n_features names {n_views} views.")
    if not n_views or min(n_features) < 1:
        raise ValueError(
            f"n_features must name one view or more, each with a feature, got {[*n_features]}."
        )
    if not 1 <= n_clusters <= n_samples:
        raise ValueError(
            f"n_clusters must be from 1 to the {n_samples} samples asked for, got {n_clusters}."
        )
    if not (np.isfinite(spread).all() and min(spread) >= 0):
        raise ValueError(f"noise must be finite and not negative, got {spread}.")
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {kind}.")
    rng = np.random.default_rng(random_state)
    target = rng.permutation(np.arange(n_samples) % n_clusters)
    gone = np.zeros((n_samples, n_views), bool)
    if missing:
        gone = by_paper_rule(n_samples, n_views, missing, rng)
    views = {}
    for v, d in enumerate(n_features):
        centers = rng.standard_normal((n_clusters, d)).astype(kind)
        views[f"view{v}"] = X = np.empty((n_samples, d), kind)
        for start in range(0, n_samples, _ROWS):
            block = X[start : start + _ROWS]
            rng.standard_normal(block.shape, kind, block)
            block *= spread[v]
            block += centers[target[start : start + _ROWS]]
        X[gone[:, v]] = np.nan
    return Bunch(views=views, target=target, missing=gone)


def load(path: str | PathLike[str]) -> Bunch:
    """Read a multi-view data set from its file.

    Parameters
    ----------
    path : str or path
        A ``.npz`` file with ``view_0``, ``view_1``, … (samples × features, or the parts of a CSR
        matrix: ``view_0_data``, ``_indices``, ``_indptr`` and ``_shape``) and ``y``, or a ``.mat``
        file in one of the layouts in which the field publishes its sets.

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
