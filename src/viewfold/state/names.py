"""Names of clusters: given by people, and kept as long as the cluster that was named goes on.

A number can be given to another cluster when clusters are found anew. A name goes with the samples,
not with the number: `Transfers` counts how many samples went from which cluster to which.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from viewfold._util import constants
from viewfold._util.arguments import is_whole_number
from viewfold._util.messages import frozen_record
from viewfold._util.types import Array
from viewfold.rows import Engine, RowSet
from viewfold.state.log import noted
from viewfold.state.state import State


@frozen_record
class Transfers:
    """How many samples of each cluster are in which cluster after a step; pairs that have some."""

    # (n_pairs,): before, after: the clusters; −1 before a sample was known
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    count: NDArray[np.int64]  # (n_pairs,): the samples

    @classmethod
    def of(cls, before: Array, after: Array) -> Transfers:
        """Count samples by their clusters; those that are not known afterwards are left out."""
        there = after >= 0
        old, new = (labels[there].astype(np.int64) for labels in (before, after))
        return cls._added(old, new, np.ones(old.size, np.int64))

    @classmethod
    def _added(cls, before: Array, after: Array, count: Array) -> Transfers:
        codes, which = np.unique((before + 1) << 32 | after, return_inverse=True)
        total = np.bincount(which, count, minlength=len(codes)).astype(np.int64)
        return cls((codes >> 32) - 1, codes & (2**32 - 1), total)

    def __add__(self, other: Transfers) -> Transfers:
        mine = self.before, self.after, self.count
        theirs = other.before, other.after, other.count
        return self._added(*map(np.concatenate, zip(mine, theirs, strict=True)))


LONGEST = 60  # Letters of a name at most: it has to fit next to an axis and into a table
MOST = 500  # Clusters that can have a name: all names have to fit the table ``meta`` of a file


def rename(state: State, cluster: int, name: str | None) -> State:
    """Return a state in which a cluster has a name, or none; with an entry in the log."""
    n = 0 if state.clusters is None else state.clusters.n_clusters
    if not is_whole_number(cluster):
        raise TypeError(f"A cluster is a whole number, not {cluster!r}.")
    if not 0 <= cluster < n:
        raise ValueError(f"There is no cluster {cluster}. Clusters are numbered 0 to {n - 1}.")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"A name is a text, not {name!r}.")
    names = {int(c): one for c, one in state.cluster_names.items() if c != cluster}
    names |= {int(cluster): name} if name else {}
    if names == state.cluster_names:
        return state
    for problem in problems(names, n):
        raise ValueError(f"{problem[0].upper()}{problem[1:]}. Choose another name.")
    said = f"cluster {cluster} is {name!r}" if name else f"cluster {cluster} has no name"
    log = noted(state.log, "rename", state.n_samples, note=said)
    return replace(state, cluster_names=dict(sorted(names.items())), log=log)


def problems(names: Mapping[int, str], n_clusters: int) -> list[str]:
    """Return what is wrong with names of clusters."""
    found, owner = [], {name.casefold(): c for c, name in sorted(names.items(), reverse=True)}
    for c, name in names.items():
        if not 0 <= c < n_clusters:
            found.append(f"{name!r} is the name of cluster {c}, which is not there")
        if not name.strip() or name != name.strip() or not name.isprintable():
            found.append(f"{name!r} is blank, has space around it or signs that cannot be seen")
        if len(name) > LONGEST:
            found.append(f"{name[:20]!r}… has more than {LONGEST} letters")
        if name.removeprefix("-").isdecimal():
            found.append(f"{name!r} looks like the number of a cluster")
        if owner[name.casefold()] != c:
            found.append(f"{name!r} is the name of cluster {owner[name.casefold()]}")
    return found if len(names) <= MOST else [*found, f"more than {MOST} clusters have names"]


def following(
    engine: Engine, names: Mapping[int, str], before: RowSet, now: RowSet
) -> dict[int, str]:
    """Return the names of clusters, given those before and the labels of samples before and now.

    A name goes on in the cluster with most samples of its own, if they are more than half of it.
    """
    if not names:
        return {}
    moved = engine.reduce(Transfers.of, before, now, combine=Transfers.__add__)
    known = moved.before >= 0
    total = np.bincount(moved.after[known], moved.count[known], minlength=moved.after.max() + 1)
    mostly = known & (moved.count > constants.GOES_ON * total[moved.after])
    kept: dict[int, str] = {}
    for cluster, name in names.items():
        own = mostly & (moved.before == cluster)
        if own.any():
            kept[int(moved.after[own][moved.count[own].argmax()])] = name
    return dict(sorted(kept.items()))


def with_names(engine: Engine, state: State, before: RowSet, now: RowSet) -> State:
    """Return a state whose names follow their clusters; its last entry tells which are lost."""
    if not state.cluster_names:
        return state
    after = replace(state, cluster_names=following(engine, state.cluster_names, before, now))
    gone = lost(state, after)
    if gone is None:
        return after
    warnings.warn(f"{gone[0].upper()}{gone[1:]}.", stacklevel=5)
    return replace(after, log=(*state.log[:-1], replace(state.log[-1], note=gone)))


def lost(before: State, after: State) -> str | None:
    """Say which clusters with a name are no more; None if none."""
    kept = after.cluster_names.values()
    gone = [f"{c} ({name!r})" for c, name in before.cluster_names.items() if name not in kept]
    return f"clusters that are no more lost their names: {', '.join(gone)}" if gone else None
