"""Views that are made to measure, so that the right clusters are known at any size.

Every view sees the same clusters as clouds around centres of its own; what differs between views
is how many features they have, how noisy they are and which samples they lack.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from viewfold.missing import GeneratorSeed, by_paper_rule

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
    standard deviation of ``noise`` per feature. All clusters have the same size, give or take one,
    and samples come in random order.

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
        ``views``, a dict of arrays (``view0``, ``view1``, …) in which the row of a sample that a
        view lacks is NaN throughout; ``target``, the clusters, from 0; ``missing``, a boolean array
        of samples × views, True where a sample is missing.

    Examples
    --------
    >>> from viewfold import ViewFold
    >>> from viewfold.datasets import make_multiview
    >>> from viewfold.metrics import accuracy
    >>> data = make_multiview(300, [8, 12], 3, noise=[0.5, 2.0], missing=0.2, random_state=0)
    >>> {name: X.shape for name, X in data.views.items()}
    {'view0': (300, 8), 'view1': (300, 12)}
    >>> data.missing.sum(axis=0)
    array([60, 60])
    >>> labels = ViewFold(n_clusters=3, random_state=0).fit_predict(data.views)
    >>> accuracy(data.target, labels) > 0.9
    True
    """
    from sklearn.utils import Bunch

    spread = _per_view(noise, len(n_features))
    kind: np.dtype[Any] = np.dtype(dtype)
    _check(n_samples, n_features, n_clusters, spread, kind)
    rng = np.random.default_rng(random_state)
    target = rng.permutation(np.arange(n_samples) % n_clusters)
    gone = np.zeros((n_samples, len(n_features)), bool)
    if missing:
        gone = by_paper_rule(n_samples, len(n_features), missing, rng)
    views = {
        f"view{v}": _view(target, n_clusters, d, spread[v], gone[:, v], kind, rng)
        for v, d in enumerate(n_features)
    }
    return Bunch(views=views, target=target, missing=gone)


def _view(
    target: NDArray[np.int_],
    k: int,
    d: int,
    noise: float,
    gone: NDArray[np.bool_],
    dtype: np.dtype[Any],
    rng: np.random.Generator,
) -> NDArray[np.floating]:
    centers = rng.standard_normal((k, d)).astype(dtype)
    X = np.empty((target.size, d), dtype)
    for start in range(0, target.size, _ROWS):
        block = X[start : start + _ROWS]
        rng.standard_normal(block.shape, dtype, block)
        block *= noise
        block += centers[target[start : start + _ROWS]]
    X[gone] = np.nan
    return X


def _per_view(noise: float | Sequence[float], n_views: int) -> list[float]:
    spread = [float(noise)] * n_views if isinstance(noise, int | float) else [*map(float, noise)]
    if len(spread) != n_views:
        raise ValueError(f"noise has {len(spread)} values, but n_features names {n_views} views.")
    return spread


def _check(
    n_samples: int,
    n_features: Sequence[int],
    n_clusters: int,
    spread: list[float],
    dtype: np.dtype[Any],
) -> None:
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
