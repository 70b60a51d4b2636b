"""What the documentation of all figures has in common, said once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from viewfold._util.arguments import suggests_arguments

P = ParamSpec("P")
R = TypeVar("R")

SHARED = {
    "model_and_ax": """\
Parameters
----------
model : fitted estimator
    `ViewFold` or `FCMVC`.
ax : matplotlib Axes, optional
    Where to draw; a new figure if not given.""",
    "axes": """\
Returns
-------
matplotlib Axes""",
    "model": """\
>>> from viewfold import ViewFold, datasets, plot
>>> data = datasets.make_multiview(60, (5, 4), 3, random_state=0)
>>> model = ViewFold(3, random_state=0).fit(data.views)""",
}


def figure(draw: Callable[P, R]) -> Callable[P, R]:
    """Fill in ``{model_and_ax}``, ``{axes}`` and ``{model}`` in the docstring of a figure.

    Examples
    --------
    >>> from viewfold import plot
    >>> "ax : matplotlib Axes" in plot.confidence.__doc__
    True
    """
    text = inspect.cleandoc(draw.__doc__ or "")
    for name, shared in SHARED.items():
        text = text.replace(f"{{{name}}}", shared)
    draw.__doc__ = text
    return suggests_arguments(draw)
