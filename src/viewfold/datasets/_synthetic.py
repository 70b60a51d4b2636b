"""Views that are made to measure, so that the right clusters are known at any size.

Every view sees the same clusters as clouds around centres of its own; what differs between views
is how many features they have, how noisy they are and which samples they lack.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from viewfold.datasets.missing import GeneratorSeed, by_paper_rule

if TYPE_CHECKING:
    from sklearn.utils import Bunch

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
    n_samples : int
        How many samples there are in total.
    n_features : sequence of int
        How many features each view has; as many views are made.
    n_clusters : int
        How many clusters there are.
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
    spread = _checked(n_samples, n_features, n_clusters, noise, kind)
    rng = np.random.default_rng(random_state)
    target = rng.permutation(np.arange(n_samples) % n_clusters)
    gone = _pattern(n_samples, len(n_features), missing, rng)
    made = _views(target, [(n_clusters, d) for d in n_features], spread, gone, kind, rng)
    return Bunch(views=made, target=target, missing=gone)


def _views(
    target: NDArray[np.int_],
    shapes: list[tuple[int, int]],
    spread: list[float],
    gone: NDArray[np.bool_],
    dtype: np.dtype[Any],
    rng: np.random.Generator,
) -> dict[str, NDArray[np.floating]]:
    return {
        f"view{v}": _view(target, shape, spread[v], gone[:, v], dtype, rng)
        for v, shape in enumerate(shapes)
    }


def _pattern(
    n_samples: int, n_views: int, ratio: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    if not ratio:
        return np.zeros((n_samples, n_views), bool)
    return by_paper_rule(n_samples, n_views, ratio, rng)


def _view(
    target: NDArray[np.int_],
    shape: tuple[int, int],
    noise: float,
    gone: NDArray[np.bool_],
    dtype: np.dtype[Any],
    rng: np.random.Generator,
) -> NDArray[np.floating]:
    """Return samples around centres, an array of `shape`, and NaN for those that are gone."""
    centers = rng.standard_normal(shape).astype(dtype)
    X = np.empty((target.size, shape[1]), dtype)
    for start in range(0, target.size, _ROWS):
        block = X[start : start + _ROWS]
        rng.standard_normal(block.shape, dtype, block)
        block *= noise
        block += centers[target[start : start + _ROWS]]
    X[gone] = np.nan
    return X


def _checked(
    n_samples: int,
    n_features: Sequence[int],
    n_clusters: int,
    noise: float | Sequence[float],
    dtype: np.dtype[Any],
) -> list[float]:
    """Refuse what views cannot be made of; return the noise of each view."""
    n_views = len(n_features)
    spread = [float(noise)] * n_views if isinstance(noise, int | float) else [*map(float, noise)]
    if len(spread) != n_views:
        raise ValueError(f"noise has {len(spread)} values, but n_features names {n_views} views.")
    if not len(n_features) or min(n_features) < 1:
        raise ValueError(
            f"n_features must name one view or more, each with a feature, got {[*n_features]}."
        )
    if not 1 <= n_clusters <= n_samples:
        raise ValueError(
            f"n_clusters must be from 1 to the {n_samples} samples asked for, got {n_clusters}."
        )
    if not (np.isfinite(spread).all() and min(spread) >= 0):
        raise ValueError(f"noise must be finite and not negative, got {spread}.")
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}.")
    return spread
