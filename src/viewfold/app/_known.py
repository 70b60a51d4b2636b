"""How the samples and features of a view compare with what a model knows."""

from __future__ import annotations

from typing import Any

import numpy as np

from viewfold._util.types import Ids
from viewfold.app._facts import SampleFacts
from viewfold.data import View
from viewfold.data.ids import alike
from viewfold.rows import Alignment, engine_of
from viewfold.rows.normal import normal_forms
from viewfold.state.admission import placed
from viewfold.state.state import State

EXAMPLES = 3


def compare(state: State, view: View) -> SampleFacts | None:
    """Return who is known of a view; None if nobody is, as there is no sample yet."""
    if not state.views or (view.length is not None and state.length is None):
        return None
    engine = engine_of(state.ids)
    view = placed(engine, view)
    alignment = engine.join(state.ids, view.ids)
    new = engine.keep(view.ids, engine.map(np.logical_not, alignment.known))
    pairs = _similar(state, engine.collect(new)) if alignment.n_new else []
    fits = [
        record.name
        for record in state.views
        if view.features is not None and set(record.features or ()) == set(view.features)
    ]
    return SampleFacts(
        n_known=alignment.n_shared,
        n_new=alignment.n_new,
        n_similar=len(pairs),
        examples=tuple(pairs[:EXAMPLES]),
        n_in_view=_n_in_view(state, view, alignment),
        fits=tuple(fits),
    )


def _similar(state: State, new: Ids) -> list[tuple[Any, Any]]:
    """Return the new ids that are almost known, each with the known one."""
    whole = new.dtype != object and state.ids.dtype != object
    if not new.size or whole:  # whole numbers are the same or not
        return []
    forms = normal_forms(new)
    almost = engine_of(state.ids).reduce(
        lambda block: alike(block, forms), state.ids, combine=np.append
    )
    partner = dict(zip(normal_forms(almost).tolist(), almost.tolist(), strict=True))
    found = zip(new.tolist(), forms.tolist(), strict=True)
    return [(name, partner[form]) for name, form in found if form in partner]


def _n_in_view(state: State, view: View, alignment: Alignment) -> int:
    """Return how many samples are in the view of this name already."""
    if view.name not in state.names:
        return 0
    engine, which = engine_of(state.ids), state.names.index(view.name)
    there = alignment.partners(state.seen, False)
    return int(engine.reduce(lambda seen: np.count_nonzero(seen[:, which]), there))
