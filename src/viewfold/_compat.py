"""What scikit-learn does not promise to keep: everything private that viewfold uses of it."""

from __future__ import annotations

from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

__all__ = ["Interval", "StrOptions", "validate"]


def validate(estimator: Any) -> None:
    """Check the parameters of an estimator as scikit-learn's own are checked."""
    estimator._validate_params()
