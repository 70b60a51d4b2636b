"""How much of each view the consensus and the clusters explain, and by which components.

MOFA's table of explained variance and its weights, for views that are gone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from viewfold._util.types import Array
from viewfold.explain.effects import Told
from viewfold.rows import Engine
from viewfold.state.moments import described, regression
from viewfold.state.state import State


def products(engine: Engine, state: State, name: str) -> tuple[Array, int]:
    """Return PᵀP over the samples of a view, with P centred, and how many they are."""
    assert state.clusters is not None
    k, which = state.clusters.n_clusters, state.names.index(name)

    def sums(B: Array, cluster: Array, seen: Array) -> tuple[Array, Array, Array]:
        here = seen[:, which]
        P = described(B[here], cluster[here], k)
        return P.T @ P, P.sum(axis=0), np.array(float(len(P)))

    PP, total, n = engine.reduce(sums, state.embedding, state.labels(engine), state.seen)
    return PP - np.outer(total, total) / max(float(n), 1), int(n)


def weights(engine: Engine, state: State, one: Told) -> tuple[Array, Array]:
    """Return what a column of the consensus adds to each feature, and the spread of the columns."""
    G, n = products(engine, state, one.view.name)
    r = one.middle.shape[1]
    along = regression(G[:r, :r], G[:r]) @ one.moments.coefficients @ one.moments.directions
    return np.asarray(along), np.sqrt(np.maximum(np.diagonal(G)[:r], 0) / max(n, 1))


def loadings(engine: Engine, state: State, one: Told) -> pd.DataFrame:
    """Return the weights of the components of the consensus for the features of a view."""
    along, spread = weights(engine, state, one)
    names = [f"component{i}" for i in range(len(along))]
    table = (along * spread[:, None]).T
    table[one.moments.spread == 0] = np.nan
    return pd.DataFrame(table, pd.Index(one.names, name="feature"), names)


def variance_table(engine: Engine, state: State, tellers: Sequence[Told]) -> pd.DataFrame:
    """Return the share of each view's variance that is explained, features weighing the same."""
    rows = {}
    for one in tellers:
        G, n = products(engine, state, one.view.name)
        A, d = one.moments.coefficients, max(int((one.moments.spread > 0).sum()), 1)
        whole = float(np.einsum("ij,ij->", A, G @ A)) / (max(n, 1) * d)
        squares = np.nansum(one.effects**2, axis=1) / d
        each = np.where(np.isnan(one.effects).all(axis=1), np.nan, squares * one.count / max(n, 1))
        rows[one.view.name] = [min(whole, 1.0), float(np.nansum(each)), *each]
    k = len(tellers[0].count)
    table = pd.DataFrame.from_dict(rows, "index", columns=["consensus", "clusters", *range(k)])
    return table.rename_axis("view")
