"""One model in several threads: changes wait for each other, questions wait for nobody.

A state is replaced and never changed. So a question is put to a copy of the model, which keeps the
state of that moment (no array is copied), and a change holds the model's lock until it is done.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import wraps
from threading import RLock
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from viewfold._util.arguments import arguments_of, check_arguments

P = ParamSpec("P")
R = TypeVar("R")
Model = TypeVar("Model", bound="Shared")


class Shared:
    """A model that several threads may use."""

    def _snapshot(self) -> Self:
        """Return a model with the state and the parameters of now."""
        return copy(self)

    @property
    def _lock(self) -> Any:
        # Estimators of other packages have constructors of their own: it is made when it is needed,
        # and once, as dict.setdefault is atomic.
        return self.__dict__.setdefault("_lock_of_changes", RLock())

    def __getstate__(self) -> dict[str, Any]:
        # A lock cannot be copied, and a copy needs one of its own. dict() copies in one step, also
        # if another thread adds an attribute meanwhile.
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        state.pop("_lock_of_changes", None)
        return state


def asks(method: Callable[Concatenate[Model, P], R]) -> Callable[Concatenate[Model, P], R]:
    """Let a method that changes nothing see one state, whatever other threads do meanwhile."""
    takes = arguments_of(method)

    @wraps(method)
    def call(self: Model, /, *args: P.args, **kwargs: P.kwargs) -> R:
        check_arguments(f"{type(self).__name__}.{method.__name__}", takes, kwargs)
        return method(self._snapshot(), *args, **kwargs)

    return call


def changes(method: Callable[Concatenate[Model, P], R]) -> Callable[Concatenate[Model, P], R]:
    """Let a method that changes the model wait until no other thread changes it."""
    takes = arguments_of(method)

    @wraps(method)
    def call(self: Model, /, *args: P.args, **kwargs: P.kwargs) -> R:
        check_arguments(f"{type(self).__name__}.{method.__name__}", takes, kwargs)
        with self._lock:
            return method(self, *args, **kwargs)

    return call
