"""Parameters of the baselines, declared once: as annotated attributes of the class.

From them come `__init__`, the constraints and the docstring. What many methods share, such as
`max_iter`, is described here; a method describes what is its own, or what it means differently.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, TypeVar, dataclass_transform

from sklearn.utils._param_validation import Interval as Interval
from sklearn.utils._param_validation import StrOptions as StrOptions

Class = TypeVar("Class", bound=type)

COUNT = [Interval(Integral, 1, None, closed="left")]
POSITIVE = [Interval(Real, 0, None, closed="neither")]
NON_NEGATIVE = [Interval(Real, 0, None, closed="left")]
ABOVE_1 = [Interval(Real, 1, None, closed="neither")]

SHARED: dict[str, list[Any]] = {
    "n_clusters": COUNT,
    "max_iter": COUNT,
    "tol": NON_NEGATIVE,
    "scale": [StrOptions({"none", "zscore", "unit", "minmax"})],
    "random_state": ["random_state"],
}
PARAMETERS = {
    "n_clusters": "int, default={}\n    Number of clusters.",
    "max_iter": "int, default={}\n    Iterations at most.",
    "tol": "float, default={}\n    Stop when the objective changes by less, relative to its value.",
    "scale": "{{'none', 'zscore', 'unit', 'minmax'}}, default={}\n    How views are scaled first.",
    "random_state": "int, RandomState or None, default={}\n    Determines k-means.",
}
ATTRIBUTES = {
    "labels_": "ndarray of int, shape (n_samples,)\n    The clusters.",
    "ids_": "ndarray of shape (n_samples,)\n    The samples, in the order of the labels.",
    "objective_": "ndarray\n    The objective after each iteration.",
    "n_iter_": "int\n    Number of iterations.",
}

EXAMPLE = """

Examples
--------
>>> from viewfold import datasets
>>> from viewfold_research import baselines
>>> views = datasets.make_multiview(40, (5, 4), 2, random_state=0).views
>>> baselines.{}(2, {}random_state=0).fit(views).labels_.shape
(40,)
"""


@dataclass_transform(kw_only_default=True, eq_default=False)
def with_parameters(cls: Class) -> Class:
    """Make parameters of the annotated attributes of a class, keyword-only.

    Constraints and descriptions of shared parameters and attributes, and an example, are added
    where the class has none of its own.

    Examples
    --------
    >>> from viewfold_research.baselines._base import Baseline
    >>> from viewfold_research.baselines._parameters import with_parameters
    >>> @with_parameters
    ... class Mine(Baseline):
    ...     max_iter: int = 30
    >>> Mine(3, max_iter=5)
    Mine(max_iter=5, n_clusters=3)
    """
    made: Any = dataclass(kw_only=True, repr=False, eq=False, match_args=False)(cls)
    default = {field.name: field.default for field in fields(made)}
    constraints = {**SHARED, **made._parameter_constraints}
    made._parameter_constraints = {name: constraints[name] for name in default}
    shared = {n: text.format(repr(default[n])) for n, text in PARAMETERS.items() if n in default}
    text = described(inspect.cleandoc(made.__doc__), "Parameters", shared)
    text = described(text, "Attributes", ATTRIBUTES)
    if "\nExamples\n" not in text:
        text += EXAMPLE.format(made.__name__, 'scale="minmax", ' if made.nonnegative else "")
    made.__doc__ = text
    return cls


def described(text: str, section: str, shared: Mapping[str, str]) -> str:
    r"""Return a docstring with more entries in a section: the first before, the others behind.

    An entry that the section has already is left as it is.

    Examples
    --------
    >>> from viewfold_research.baselines._parameters import described
    >>> text = "Attributes\n----------\nb : int\n    Its own.\na : float"
    >>> described(text, "Attributes", {"x": "int", "b": "str", "c": "str"}).splitlines()[2:]
    ['x : int', 'a : float', 'b : int', '    Its own.', 'c : str']
    """
    head = f"{section}\n{'-' * len(section)}\n"
    before, found, after = text.partition(head)
    body, *rest = after.split("\n\n", 1)
    own = dict(entry.split(" : ", 1) for entry in re.split(r"\n(?=\S)", body) if found)
    first, *last = shared
    names = dict.fromkeys([first, *(name for name in own if name not in last), *last])
    entries = [f"{name} : {own.get(name, shared.get(name))}" for name in names]
    return "\n\n".join([before + head + "\n".join(entries), *rest]) if found else text
