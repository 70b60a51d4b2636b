"""What makes one method differ from another: how views are combined, and how clusters are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from viewfold._types import Array
from viewfold.core.state import Clusters, Encoder, State
from viewfold.engine import Alignment, Engine, RowSet
from viewfold.view._view import View


@dataclass(frozen=True)
class Combined:
    """What a method makes of a view: the new embedding, and what became of earlier rows.

    Attributes
    ----------
    embedding : RowSet
        A row for each sample of the union.
    encoder : Encoder
        Embeds samples that are in this view and in no other.
    linear_map : ndarray or None
        What the fold does to samples that the view lacks: ``row @ linear_map``. Applied to the
        encoders of earlier views, so that they keep embedding into the present consensus. (If
        fewer than ten samples are shared, without what these explain.)
    n_iter : int
        Iterations taken.
    objective : tuple of float
        The objective after each of them.
    agreement : float or None
        See `ViewRecord`.
    """

    embedding: RowSet
    encoder: Encoder
    linear_map: Array | None
    n_iter: int = 1
    objective: tuple[float, ...] = ()
    agreement: float | None = None


class Method(Protocol):
    """What makes one method differ from another; see docs/extending.md."""

    def combine(
        self, engine: Engine, state: State, view: View, alignment: Alignment, seed: int
    ) -> Combined:
        """Combine a view with the consensus so far, which has no view at first."""

    def basis(self, engine: Engine, embedding: RowSet) -> Array:
        """Return what makes the columns of a consensus again what they were, without some rows.

        Otherwise the products of the columns that are left tell which rows are gone.
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
        """Return the cluster of each sample, and where clusters are.

        `groups` are those that no view connects, None if there is one only; `previous` holds the
        labels of before, −1 for new samples, None at first.
        """

    def settle(
        self,
        engine: Engine,
        embedding: RowSet,
        labels: RowSet,
        *,
        groups: RowSet | None,
        before: Clusters,
    ) -> Clusters:
        """Return where clusters are, if they are made of their samples alone.

        `before` are the clusters that were found with more samples.
        """
