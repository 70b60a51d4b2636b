"""Registries of methods, encoders and parts of files, which packages can add to.

One decorated class or function adds an entry. Other packages announce theirs as entry points, which
are imported when they are asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from viewfold.estimators import FoldingEstimator

T = TypeVar("T")


def entry_points(**which: str) -> Any:
    """Return what packages announce; imported here, as it takes as long as all the rest."""
    from importlib.metadata import entry_points

    return entry_points(**which)


class Registry(Generic[T]):
    """A mapping from names to classes or functions, some of them imported when they are used.

    Parameters
    ----------
    group : str
        The entry point group of other packages.
    built_in : dict
        The entries of viewfold itself, as ``"module:name"``.

    Examples
    --------
    >>> from viewfold.state.registry import Registry
    >>> shapes = Registry("example.shapes", {"path": "pathlib:Path"})
    >>> @shapes.register("square")
    ... def square():
    ...     return "square"
    >>> shapes.names()
    ['path', 'square']
    >>> shapes["square"]()
    'square'
    """

    def __init__(self, group: str, built_in: Mapping[str, str] | None = None) -> None:
        self.group, self.built_in = group, dict(built_in or {})
        self._known: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that adds an entry, or renews it: a notebook's cell is run again."""

        def add(thing: Any) -> Any:
            # Where they were written: the same for each run of one cell.
            known: Any = self._known.get(name, thing)
            origins = {(one.__module__, one.__qualname__) for one in (known, thing)}
            if name in self.built_in or (known is not thing and len(origins) > 1):
                raise ValueError(f"There is a {name!r} in {self.group} already.")
            self._known[name] = thing
            return thing

        return add

    def names(self) -> list[str]:
        """Return all names, those of other packages included."""
        found = [point.name for point in entry_points(group=self.group)]
        return list(dict.fromkeys([*self.built_in, *self._known, *found]))

    def name_of(self, thing: T) -> str | None:
        """Return the name of an entry that was used or registered, None if there is none."""
        return next((name for name, known in self._known.items() if known is thing), None)

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self.built_in or name in self.names()

    def __getitem__(self, name: str) -> T:
        if name not in self._known:
            self._known[name] = self._load(name)
        return self._known[name]

    def _load(self, name: str) -> Any:
        if name in self.built_in:
            module, attribute = self.built_in[name].split(":")
            return getattr(importlib.import_module(module), attribute)
        for point in entry_points(group=self.group, name=name):
            return point.load()
        raise KeyError(name)


METHODS: Registry[type[FoldingEstimator]] = Registry(
    "viewfold.estimators",
    {"ViewFold": "viewfold.estimators:ViewFold", "FCMVC": "viewfold.estimators:FCMVC"},
)
"""Estimators by name: those that files, commands and benchmarks know."""

ENCODERS: Registry[Any] = Registry(
    "viewfold.encoders",
    {name: f"viewfold.method.encoders:learn_{name}" for name in ("mix", "linear", "landmarks")},
)
"""How `ViewFold` describes a view: each is a `viewfold.method.encoders.Learner`."""

PARTS: Registry[Any] = Registry(
    "viewfold.parts",
    {
        "affine/1": "viewfold.method.scaling:Affine",
        "batches/1": "viewfold.method.batches:Batches",
        "bends/1": "viewfold.method.variables:Bends",
        "columns/1": "viewfold.state.parts:StoredColumns",
        "committee/1": "viewfold.state.committee:Committee",
        "counts/1": "viewfold.method.scaling:Counts",
        "directions/1": "viewfold.state.evidence:Directions",
        "encoder/2": "viewfold.method.encoders:FeatureEncoder",
        "filled/1": "viewfold.method.filling:Filled",
        "filling/1": "viewfold.method.filling:Filling",
        "known/1": "viewfold.method.novelty:Known",
        "landmarks/1": "viewfold.method.landmarks:Landmarks",
        "moments/1": "viewfold.state.moments:Moments",
        "profile/1": "viewfold.data.expected:Profile",
        "projection/1": "viewfold.method.scaling:Projection",
        "source/1": "viewfold.state.parts:StoredSource",
        "text/1": "viewfold.method.scaling:Text",
    },
)
"""Classes and functions that rebuild a stored object from its parts, by ``"type/version"``. All of
viewfold's own are listed here, or a file could be read only after some other module was imported.
Entries are never removed, so that every file ever written can be read."""
