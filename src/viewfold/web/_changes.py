"""What is another since an entry of the log: who moved where, and what happened to clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator
    from viewfold.web import PageData


def changes(model: FoldingEstimator, since: int) -> dict[str, Any] | None:
    """Return what changed since an entry of the log; None if nothing was known then.

    Parameters
    ----------
    model : fitted estimator
        What there is now.
    since : int
        An entry of its log.

    Returns
    -------
    dict or None
        What ``since`` of a page's summary has, and ``events`` of clusters.
    """
    from viewfold.web._found import events
    from viewfold.web._since import changed

    state = model._fitted
    if not state.steps or since < state.steps[0]:
        return None
    found = changed(model._engine, state, since, None)
    assert found is not None
    told = [one for one in events(model) if one["entry"] is not None and one["entry"] > since]
    return {**found, "events": told}


def renamed(data: PageData, model: FoldingEstimator) -> PageData | None:
    """Return a page with other names of clusters; None if more than these changed since.

    A map and the stability of clusters take a while for many samples, and a name changes neither.
    """
    log, known = model._fitted.log, data.summary["entry"]
    later = [event for event in log if event.entry > known]
    before = [event for event in log if event.entry == known]
    same = [event.time.isoformat() for event in before] == [data.summary["when"]]
    if not same or not later or any(event.what != "rename" for event in later):
        return None
    from viewfold.web.words import printable

    names = {number: printable(name) for number, name in model.cluster_names_.items()}
    clusters = [{**one, "name": names.get(one["number"])} for one in data.summary["clusters"]]
    last = {"entry": later[-1].entry, "when": later[-1].time.isoformat()}
    return replace(data, summary={**data.summary, **last, "clusters": clusters})
