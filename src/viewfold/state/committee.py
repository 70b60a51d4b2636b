"""Several encoders of one view, each learned from other rows of it, that answer together.

In a module of its own, as `viewfold.load_encoder` needs nothing else of updates.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from viewfold._util.messages import frozen_record
from viewfold._util.types import Array, Matrix
from viewfold.state.parts import part
from viewfold.state.state import Encoder

MOST_ENCODERS = 8  # of a view are kept; of more, the one learned from the fewest rows goes


@part("committee")
@frozen_record
class Committee:
    """The mean of encoders, each weighted by the number of rows that it was learned from."""

    encoder: Encoder  # one of them
    n_rows: float  # how many rows it was learned from
    others: Committee | None  # the others

    def __call__(self, block: Matrix) -> Array:
        members = self.members()
        total = sum(one.n_rows for one in members)
        embedded = (one.encoder(block) * (one.n_rows / total) for one in members)
        return np.asarray(sum(embedded), block.dtype)

    def surprise(self, block: Matrix) -> Array:
        """Return how unlike known rows each row is: of those that are least unlike it."""
        told = (getattr(one.encoder, "surprise", None) for one in self.members())
        each = [surprise(block) for surprise in told if surprise is not None]
        return np.asarray(np.fmin.reduce([np.full(block.shape[0], np.nan), *each]))

    @property
    def batches(self) -> Any:
        """What removes the differences of batches, the same for all; None if nothing does."""
        return getattr(self.encoder, "batches", None)

    def then(self, linear_map: Array) -> Committee:
        others = None if self.others is None else self.others.then(linear_map)
        return replace(self, encoder=self.encoder.then(linear_map), others=others)

    def members(self) -> list[Committee]:
        return [self, *([] if self.others is None else self.others.members())]


def takes_gaps(encoder: Encoder | None) -> bool:
    """Tell whether rows with missing cells can be embedded: not by encoders of older files."""
    if isinstance(encoder, Committee):
        return all(takes_gaps(one.encoder) for one in encoder.members())
    return encoder is None or hasattr(encoder, "fill")


def joined(encoder: Encoder, n_rows: int, another: Encoder, n_more: int) -> Committee:
    """Return an encoder of a view with one more that was learned from other rows of it."""
    before = encoder if isinstance(encoder, Committee) else Committee(encoder, float(n_rows), None)
    members = [Committee(another, float(n_more), None), *before.members()]
    while len(members) > MOST_ENCODERS:
        del members[int(np.argmin([one.n_rows for one in members]))]
    made = replace(members.pop(), others=None)
    for one in reversed(members):
        made = replace(one, others=made)
    return made
