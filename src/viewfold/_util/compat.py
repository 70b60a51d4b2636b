"""Compatibility with scikit-learn: everything private that viewfold uses of it."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions

__all__ = ["Interval", "ShortHelp", "StrOptions", "validate", "without_requests"]


class ShortHelp(ABCMeta):
    """The class of estimators whose ``help`` leaves out what scikit-learn generates.

    For every argument of `fit` and the like, scikit-learn makes methods ``set_fit_request`` and so
    on, with a page about metadata routing each. They work, but nobody looks for them in the help.

    Examples
    --------
    >>> from viewfold import ViewFold
    >>> hasattr(ViewFold, "set_fit_request"), "set_fit_request" in dir(ViewFold)
    (True, False)
    """

    def __dir__(cls) -> list[str]:
        return without_requests(super().__dir__())


def without_requests(names: Iterable[str]) -> list[str]:
    """Return names without those of methods that scikit-learn makes for metadata routing."""
    return [n for n in names if not (n.startswith("set_") and n.endswith("_request"))]


def validate(estimator: Any) -> None:
    """Check the parameters of an estimator as scikit-learn's own are checked; True is no number."""
    for name, allowed in estimator._parameter_constraints.items():
        value = getattr(estimator, name)
        numbers = any(isinstance(one, Interval) or one == "random_state" for one in allowed)
        if numbers and isinstance(value, bool | np.bool_):
            raise InvalidParameterError(
                f"The {name!r} parameter of {type(estimator).__name__} must be a number. Got the "
                f"boolean {value} instead."
            )
    estimator._validate_params()
