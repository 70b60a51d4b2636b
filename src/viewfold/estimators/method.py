"""A method as transitions want it: how views are combined, and how clusters are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from viewfold._types import Array
from viewfold.clustering import Reading, cluster, sample_size, settle
from viewfold.core.method import Combined
from viewfold.core.sampling import draw
from viewfold.core.state import Clusters, State
from viewfold.engine import Alignment, Engine, RowSet
from viewfold.view import View


@dataclass(frozen=True)
class Recipe:
    """A combination of views, and k-means on the consensus; see `viewfold.core.method.Method`.

    Attributes
    ----------
    combiner : callable
        ``combiner(engine, state, view, alignment, seed)`` returns a `Combined`.
    make_basis : callable
        ``make_basis(engine, embedding)`` returns what makes columns again what the method made
        them, after rows were removed.
    n_clusters : int
        How many clusters.
    reading : Reading
        How clusters are read from the consensus.
    pair_groups : bool
        Whether groups of samples that no view connects are clustered by themselves.
    """

    combiner: Callable[[Engine, State, View, Alignment, int], Combined]
    make_basis: Callable[[Engine, RowSet], Array]
    n_clusters: int
    reading: Reading
    pair_groups: bool = False

    def combine(
        self, engine: Engine, state: State, view: View, alignment: Alignment, seed: int
    ) -> Combined:
        """Combine a view with the consensus so far."""
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
        check_enough(embedding.shape[0], self.n_clusters)
        # The same from fold to fold: then so are the trees that k-means starts from.
        sample = draw(engine, ids, sample_size(self.n_clusters), seed=seed, purpose="k-means")
        return cluster(
            engine,
            embedding,
            self.n_clusters,
            sample=sample,
            previous=previous,
            groups=groups if self.pair_groups else None,
            reading=self.reading,
            seed=seed,
        )

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
        apart = self.pair_groups and len(before.centers) > 1
        return settle(
            engine,
            embedding,
            labels,
            before.n_clusters,
            discriminants=self.reading.discriminants,
            groups=groups if apart else None,
        )


def check_enough(n: int, n_clusters: int) -> None:
    """Refuse more clusters than there are samples."""
    if n < n_clusters:
        raise ValueError(
            f"There are n_samples={n} samples, those known before included, fewer than "
            f"n_clusters={n_clusters}. Give the view more of them, or ask for fewer clusters."
        )
