"""Make views incomplete: which samples are missing from which view.

A pattern is a boolean array, samples × views, True where a sample is missing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viewfold.data import View, as_views
from viewfold.rows import LocalEngine, using

GeneratorSeed = int | np.random.Generator | None


def by_paper_rule(
    n_samples: int, n_views: int, ratio: float, random_state: GeneratorSeed = None
) -> NDArray[np.bool_]:
    """Make the pattern of the FCMVC-IV paper: exact counts, nobody lost.

    Every view lacks ``round(ratio * n_samples)`` samples, drawn at random; those of the last view
    are drawn among the samples that an earlier view has. Of two views, half of an odd number of
    samples is rounded down.

    Parameters
    ----------
    n_samples, n_views : int
        Size of the data.
    ratio : float
        Share of samples that each view lacks, from 0 to below 1.
    random_state : int, Generator or None
        Seed.

    Examples
    --------
    >>> from viewfold.datasets.missing import by_paper_rule
    >>> missing = by_paper_rule(100, 3, 0.3, random_state=0)
    >>> missing.sum(axis=0), missing.all(axis=1).any()
    (array([30, 30, 30]), np.False_)
    """
    count, rng = _count(n_samples, n_views, ratio), np.random.default_rng(random_state)
    missing = np.zeros((n_samples, n_views), bool)
    for v in range(n_views - 1):
        missing[rng.choice(n_samples, count, replace=False), v] = True
    seen = np.flatnonzero(~missing[:, :-1].all(axis=1)) if n_views > 1 else np.arange(0)
    if seen.size < count:
        raise ValueError(
            f"ratio={ratio}: the last of {n_views} views cannot lack {count} samples, since only "
            f"{seen.size} of {n_samples} are in an earlier view. Use a lower ratio."
        )
    missing[rng.choice(seen, count, replace=False), -1] = True
    return missing


def at_random(
    n_samples: int, n_views: int, ratio: float, random_state: GeneratorSeed = None
) -> NDArray[np.bool_]:
    """Let samples be missing completely at random, each kept in at least one view.

    Every view lacks ``round(ratio * n_samples)`` samples. Where chance takes a sample out of all
    views, it changes places with one that can spare a view. Parameters and result are those of
    `by_paper_rule`; `ratio` may be up to ``1 - 1 / n_views``.

    Examples
    --------
    >>> from viewfold.datasets.missing import at_random
    >>> missing = at_random(100, 2, 0.5, random_state=0)
    >>> missing.sum(axis=0), missing.all(axis=1).any()
    (array([50, 50]), np.False_)
    """
    count, rng = _count(n_samples, n_views, ratio), np.random.default_rng(random_state)
    if count * n_views > n_samples * (n_views - 1):
        raise ValueError(
            f"ratio={ratio}: with {n_views} views, not more than {1 - 1 / n_views:.3g} of the "
            "samples can be missing from each if every sample is to be kept somewhere."
        )
    missing = np.zeros((n_samples, n_views), bool)
    for v in range(n_views):
        missing[rng.choice(n_samples, count, replace=False), v] = True
    for lost in np.flatnonzero(missing.all(axis=1)):
        for v in rng.permutation(n_views):
            spare = np.flatnonzero(~missing[:, v] & (missing.sum(axis=1) < n_views - 1))
            if spare.size:
                missing[lost, v], missing[rng.choice(spare), v] = False, True
                break
    return missing


def by_mask(views: Any, missing: ArrayLike, *, ids: Any = None) -> list[View]:
    """Take samples out of views; return what is left of each, ready to be folded.

    Parameters
    ----------
    views : list or dict of array-likes
        Complete views of the same samples, rows in the same order.
    missing : array-like of bool, shape (n_samples, n_views)
        True where a sample is missing.
    ids : array-like, optional
        The sample ids; row numbers if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold import FCMVC
    >>> from viewfold.datasets.missing import by_mask, by_paper_rule
    >>> rng = np.random.default_rng(0)
    >>> views = {"a": rng.normal(size=(20, 4)), "b": rng.normal(size=(20, 5))}
    >>> parts = by_mask(views, by_paper_rule(20, 2, 0.25, random_state=0))
    >>> parts
    [View('a', 15 samples × 4 features, float64), View('b', 15 samples × 5 features, float64)]
    >>> FCMVC(n_clusters=2).fit(parts).labels_.shape
    (20,)
    """
    missing = np.asarray(missing, dtype=bool)
    with using(LocalEngine()):
        whole = as_views(views, ids=None if ids is None else [ids] * len(views))
    parts = []
    for v, view in enumerate(whole):
        n = view.rows.X.shape[0]
        if missing.shape != (n, len(whole)):
            raise ValueError(
                f"missing has shape {missing.shape}, but view {view.name!r} is one of "
                f"{len(whole)} views and has {n} rows."
            )
        rows = np.arange(n) if view.rows.present is None else view.rows.present
        kept = ~missing[rows, v]
        if not kept.any():
            raise ValueError(f"missing leaves no sample in view {view.name!r}.")
        parts.append(replace(view, ids=view.ids[kept], rows=replace(view.rows, present=rows[kept])))
    return parts


def _count(n_samples: int, n_views: int, ratio: float) -> int:
    if n_samples < 1 or n_views < 1:
        raise ValueError(f"There must be samples and views, got {n_samples} and {n_views}.")
    if not 0 <= ratio < 1:
        raise ValueError(f"ratio must be at least 0 and below 1, got {ratio}.")
    count = round(ratio * n_samples)
    # Half of an odd number, rounded up, is more than the other of two views has.
    return count - 1 if n_views == 2 and ratio <= 0.5 and 2 * count > n_samples else count
