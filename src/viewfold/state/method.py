"""What makes one method differ from another: how views are combined, and how clusters are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from viewfold._util.messages import short_repr
from viewfold._util.types import Array
from viewfold.data.view import View
from viewfold.rows import Alignment, Engine, RowSet
from viewfold.state.clusters import Clusters
from viewfold.state.state import Encoder, State


@dataclass(frozen=True, eq=False)
class Combined:
    """The result of combining a view with the consensus.

    Attributes
    ----------
    embedding : RowSet
        A row for each sample of the union.
    encoder : Encoder
        Embeds samples that are in this view and in no other.
    linear_map : ndarray or None
        What the fold does to samples that the view lacks: ``row @ linear_map``. Applied to the
        encoders of earlier views, so that they keep embedding into the present consensus. If fewer
        than ten samples are shared, the map leaves out what was learned from these (privacy).
    n_iter : int
        Iterations taken.
    objective : tuple of float
        The objective after each of them.
    agreement : float or None
        See `ViewRecord`.
    """

    __repr__ = short_repr

    embedding: RowSet
    encoder: Encoder
    linear_map: Array | None
    n_iter: int = 1
    objective: tuple[float, ...] = ()
    agreement: float | None = None


class NothingVariesError(ValueError):
    """A view whose samples are all alike says nothing about them."""


class Method(Protocol):
    """What makes one method differ from another; see docs/extending.md.

    Attributes
    ----------
    relearns : bool
        Whether more rows of a known view are combined with the consensus as a view is, after they
        were placed by its encoder. If not, that is all that happens to them.
    """

    @property
    def relearns(self) -> bool: ...

    def combine(
        self, engine: Engine, state: State, view: View, alignment: Alignment, seed: int
    ) -> Combined:
        """Combine a view with the consensus so far; for the first view, `state.views` is empty."""

    def basis(self, engine: Engine, embedding: RowSet) -> Array:
        """Return T such that ``embedding @ T`` has the form that the method gives a consensus.

        Used after samples were removed. Columns that were orthogonal with all rows are not so
        without some, and their products would tell the rows that are gone.
        """

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
        """Return the cluster of each sample, and the centres of the clusters.

        `groups` has a number for each group of samples that no view connects with the others, None
        if there is one group; `previous` holds the labels before this fold, −1 for new samples,
        None for the first view.
        """

    def assign(self, engine: Engine, clusters: Clusters, rows: RowSet) -> RowSet:
        """Return the cluster of rows of the embedding: the nearest of those that were found."""

    def settle(
        self,
        engine: Engine,
        embedding: RowSet,
        labels: RowSet,
        *,
        groups: RowSet | None,
        before: Clusters,
    ) -> Clusters:
        """Return the centres of the clusters, computed from their present samples alone.

        Used after samples were removed; `before` are the clusters that were found with them.
        """
