"""Encoders of one view that were learned from several of its deliveries, as one encoder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from viewfold._util.records import short_repr
from viewfold._util.types import Array, Matrix
from viewfold.state.parts import part
from viewfold.state.state import Encoder

MOST = 8  # So many encoders of a view are kept; of more, the one learned from the fewest rows goes


@part("committee")
@dataclass(frozen=True, eq=False)
class Committee:
    """The mean of encoders, each weighted by the number of rows that it was learned from."""

    __repr__ = short_repr

    encoder: Encoder  # one of them
    n_rows: float  # how many rows it was learned from
    others: Committee | None  # the others

    def __call__(self, block: Matrix) -> Array:
        """Embed a block of rows."""
        members = self.members()
        total = sum(one.n_rows for one in members)
        embedded = (one.encoder(block) * (one.n_rows / total) for one in members)
        return np.asarray(sum(embedded), block.dtype)

    def then(self, linear_map: Array) -> Committee:
        """Return this encoder followed by a linear map of the embedding."""
        others = None if self.others is None else self.others.then(linear_map)
        return replace(self, encoder=self.encoder.then(linear_map), others=others)

    def members(self) -> list[Committee]:
        """Return the encoders, each as a committee of its own or with others behind it."""
        return [self, *([] if self.others is None else self.others.members())]


def takes_gaps(encoder: Encoder | None) -> bool:
    """Tell whether rows with missing cells can be embedded.

    Encoders of older files, and of other packages, may not know what stands for a missing cell.
    """
    if isinstance(encoder, Committee):
        return all(takes_gaps(one.encoder) for one in encoder.members())
    return encoder is None or hasattr(encoder, "fill")


def joined(encoder: Encoder, n_rows: int, another: Encoder, n_more: int) -> Committee:
    """Return an encoder of a view with one more that was learned from other rows of it."""
    before = encoder if isinstance(encoder, Committee) else Committee(encoder, float(n_rows), None)
    members = [Committee(another, float(n_more), None), *before.members()]
    while len(members) > MOST:
        del members[int(np.argmin([one.n_rows for one in members]))]
    made: Committee | None = None
    for one in reversed(members):
        made = replace(one, others=made)
    return cast(Committee, made)
