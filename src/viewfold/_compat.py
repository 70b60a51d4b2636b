"""What other libraries do not promise to keep: everything private that viewfold uses of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.utils._param_validation import Interval, StrOptions

__all__ = ["Interval", "StrOptions", "set_threads", "validate"]


def __getattr__(name: str) -> Any:
    if name in ("Interval", "StrOptions"):  # scikit-learn's checks of parameters
        from sklearn.utils import _param_validation

        return getattr(_param_validation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def set_threads(library: Any) -> Callable[[int], None]:
    """Return what sets the number of threads of a library that threadpoolctl found.

    From 3.8 on, threadpoolctl obeys the thread only that was the first to set a limit.
    """
    setter: Callable[[int], None] = getattr(
        library, "_real_set_num_threads", library.set_num_threads
    )
    return setter


def validate(estimator: Any) -> None:
    """Check the parameters of an estimator as scikit-learn's own are checked."""
    estimator._validate_params()
