"""A method as transitions want it: how views are combined, and how clusters are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from viewfold._util.messages import short_repr
from viewfold._util.types import Array
from viewfold.data import View
from viewfold.method.clusters import ClusteringOptions, cluster, sample_size, settle
from viewfold.rows import Alignment, Engine, RowSet
from viewfold.state.clusters import Clusters, assign
from viewfold.state.hashes import draw
from viewfold.state.method import Combined
from viewfold.state.state import State


@dataclass(frozen=True, eq=False)
class Recipe:
    """A combination of views, and k-means on the consensus; see `viewfold.state.method.Method`.

    Attributes
    ----------
    combiner : callable
        ``combiner(engine, state, view, alignment, seed)`` returns a `Combined`.
    make_basis : callable
        ``make_basis(engine, embedding)`` returns what makes columns again what the method made
        them, after rows were removed.
    n_clusters : int
        How many clusters.
    reading : ClusteringOptions
        How clusters are read from the consensus.
    relearns : bool
        Whether more rows of a known view are combined with the consensus as a view is.
    """

    __repr__ = short_repr

    combiner: Callable[[Engine, State, View, Alignment, int], Combined]
    make_basis: Callable[[Engine, RowSet], Array]
    n_clusters: int
    options: ClusteringOptions
    relearns: bool = False

    def combine(
        self, engine: Engine, state: State, view: View, alignment: Alignment, seed: int
    ) -> Combined:
        """Combine a view with the consensus so far, if there are samples enough."""
        n = alignment.n_samples
        if n < self.n_clusters:
            raise ValueError(
                f"View {view.name!r} has {n:,} samples together "
                f"with those known before, fewer than n_clusters={self.n_clusters!r}. "
                "Give it more of them, or ask for fewer clusters."
            )
        return self.combiner(engine, state, view, alignment, seed)

    def basis(self, engine: Engine, embedding: RowSet) -> Array:
        """Return what makes columns again what the method made them."""
        return self.make_basis(engine, embedding)

    def cluster(
        self,
        engine: Engine,
        ids: RowSet,
        embedding: RowSet,
        *,
        groups: RowSet | None,
        previous: RowSet | None,
        seed: int,
    ) -> tuple[RowSet, Clusters]:
        """Find clusters, and number them as they were numbered before."""
        # The same from fold to fold: then so are the trees that k-means starts from.
        sample = draw(engine, ids, sample_size(self.n_clusters), seed=seed, purpose="k-means")
        return cluster(
            engine,
            embedding,
            self.n_clusters,
            sample=sample,
            previous=previous,
            groups=groups,
            options=self.options,
            seed=seed,
        )

    def assign(self, engine: Engine, clusters: Clusters, rows: RowSet) -> RowSet:
        """Return the nearest cluster of each row."""
        return assign(engine, clusters, rows)

    def settle(
        self,
        engine: Engine,
        embedding: RowSet,
        labels: RowSet,
        *,
        groups: RowSet | None,
        before: Clusters,
    ) -> Clusters:
        """Return where clusters are, made of their samples alone."""
        return settle(
            engine,
            embedding,
            labels,
            before.n_clusters,
            options=self.options,
            groups=groups if len(before.centers) > 1 else None,
            again=1.0 if before.scatter is None else float(before.scatter[0, 2]),
        )
