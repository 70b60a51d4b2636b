"""Compatibility with scikit-learn: everything private that viewfold uses of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.utils._param_validation import Interval, StrOptions

__all__ = ["Interval", "StrOptions", "validate"]


def __getattr__(name: str) -> Any:
    if name in ("Interval", "StrOptions"):  # scikit-learn's checks of parameters
        from sklearn.utils import _param_validation

        return getattr(_param_validation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def validate(estimator: Any) -> None:
    """Check the parameters of an estimator as scikit-learn's own are checked."""
    estimator._validate_params()
