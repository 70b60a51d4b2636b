"""What the last report knew: the entry of the log that a page was written at, read out of it."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from viewfold._util.arguments import suggests_arguments

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator


MOST = 2**23
"""The summary stands in the first bytes of a page; a script comes before it ends, columns after."""

_SUMMARY = re.compile(r'<script type="application/json" id="summary">(.*?)</script>', re.DOTALL)


@suggests_arguments
def last_report(path: str | os.PathLike[str], model: FoldingEstimator) -> int | None:
    """Return the entry of the log that a report is about, for one that is about to replace it.

    A report that was written at the present entry tells the same as the new one: then it is the
    entry that it was compared with.

    Parameters
    ----------
    path : str or path-like
        The report. If it is not there, damaged, no report or one of another model, there is none.
    model : fitted estimator
        The model now.

    Returns
    -------
    int or None
        The entry; None if there is no last report.
    """
    told, log, first = _summary(path), model._fitted.log, min(model._fitted.steps)
    if told is None or not log:
        return None
    entry, when = told.get("entry"), told.get("when")
    # Labels from before the first step are not known any more.
    known = {event.entry: event for event in log if event.entry >= first}
    if not isinstance(entry, int) or entry not in known:
        return None
    if known[entry].time.isoformat() != when:
        return None  # the report of another model
    if entry != log[-1].entry:
        return entry
    since = told.get("since")
    before = since.get("entry") if isinstance(since, dict) else None
    return before if isinstance(before, int) and before in known else None


def _summary(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the summary of a report, None if there is none."""
    try:
        with open(path, "rb") as file:
            text = file.read(MOST).decode("utf-8", "replace")
        found = _SUMMARY.search(text)
        told = json.loads(found[1]) if found else None
    except (OSError, ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None
