"""Encoder files: what predictions need of a model, and no sample of it, for services.

The parts are those of a state file (docs/format.md), as arrays of NumPy (``.npz``) and one text of
JSON; nothing in it is run. `load_encoder` imports neither pandas nor DuckDB nor scikit-learn, so
that a process is ready in a moment and stays small. Arrays and records are encoded here; whatever
else holds rows is given to a model of the same parts, and gets its answers and its errors.
"""

from __future__ import annotations

import importlib
import json
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from viewfold._util.arguments import suggests_arguments
from viewfold._util.file import ReadOptions
from viewfold._util.types import Array, PathLike
from viewfold._util.version import __version__
from viewfold.data.codes import Cells, Codes, features_of_cells, tell_unknown
from viewfold.data.view import Column, tell_columns
from viewfold.errors import DamagedFileError, NewerFormatError, StateFileError, UnreadableError
from viewfold.rows import LocalEngine, Rows
from viewfold.state.clusters import Clusters, assign, confidence, scattered, sure_enough
from viewfold.state.committee import takes_gaps
from viewfold.state.novelty import belief, to_levels, to_share
from viewfold.state.parts import Tag
from viewfold.state.registry import METHODS
from viewfold.state.state import Encoder, State, ViewRecord
from viewfold.store.tables import clusters_of, state_parts, view_record

if TYPE_CHECKING:
    import pandas as pd

    from viewfold.estimators import FoldingEstimator

FORMAT = 1
_POSSIBLE = (LookupError, TypeError, ValueError, EOFError, RuntimeError)  # of what is damaged
# What the file says of a view beside its parts.
_FACTS = (
    *("name", "features", "n_features", "n_samples", "n_new", "n_shared", "n_iter"),
    *("objective", "n_empty"),
)
LARGEST = 1e15  # of larger numbers, the model decides how they are read


class _Placed(NamedTuple):
    """The embedding of rows, the views they are in, and their cells by encoder."""

    rows: Array
    seen: Array
    cells: list[tuple[Encoder, Array]]


class ExportedEncoder:
    """Encoders and clusters of a model, without its samples: it predicts, and does nothing else.

    `load_encoder` makes one. Answers are those of the model, to the last bit. Rows may be an array,
    a list of rows, or a list of dicts, each with the cells of a row by column (what JSON gives); a
    dict has rows for several views of the same samples. Everything else that the model takes is
    understood as well, with its imports.

    Attributes
    ----------
    views : tuple of str
        Names of the views.
    n_clusters : int
        How many clusters there are.
    cluster_names : dict of int to str
        The names of clusters that have one.
    """

    def __init__(self, state: State, clusters: Clusters, method: str) -> None:
        self._state, self._clusters, self._method = state, clusters, method
        self.views, self.n_clusters = tuple(state.names), clusters.n_clusters
        self.cluster_names = dict(state.cluster_names)

    def transform(self, X: Any, *, ids: Any = None, view: str | int | None = None) -> Array:
        """Embed rows; see `viewfold.ViewFold.transform`."""
        placed = self._place(X, ids, view)
        return self._model.transform(X, ids=ids, view=view) if placed is None else placed.rows

    def predict(
        self,
        X: Any,
        *,
        ids: Any = None,
        view: str | int | None = None,
        min_confidence: float | None = None,
        max_novelty: float | None = None,
    ) -> NDArray[np.intp]:
        """Return the cluster of each row; see `viewfold.ViewFold.predict`."""
        placed = self._place(X, ids, view)
        if placed is None:
            asked: dict[str, Any] = {"min_confidence": min_confidence, "max_novelty": max_novelty}
            return np.asarray(self._model.predict(X, ids=ids, view=view, **asked))
        engine = LocalEngine()
        labels = np.asarray(assign(engine, self._clusters, placed.rows))
        if min_confidence is None and max_novelty is None:
            return labels
        each = [engine.map(_surprise_of(encode), Rows(cells)) for encode, cells in placed.cells]
        surprise = np.fmax.reduce(each)
        sure = confidence(engine, self._clusters, placed.rows, placed.seen)
        sure = sure * belief(to_levels(surprise))
        return sure_enough(labels, sure, min_confidence, to_share(surprise), max_novelty)

    def predict_proba(self, X: Any, *, ids: Any = None, view: str | int | None = None) -> Array:
        """Return the probability of every cluster; see `viewfold.ViewFold.predict_proba`."""
        placed = self._place(X, ids, view)
        if placed is None:
            return np.asarray(self._model.predict_proba(X, ids=ids, view=view))
        engine, rows, seen = LocalEngine(), placed.rows, placed.seen
        return np.asarray(confidence(engine, self._clusters, rows, seen, each=True))

    def predict_frame(
        self,
        X: Any,
        *,
        ids: Any = None,
        view: str | int | None = None,
        min_confidence: float | None = None,
        max_novelty: float | None = None,
    ) -> pd.DataFrame:
        """Return clusters and confidence by id (pandas); see `viewfold.ViewFold.predict_frame`."""
        X = {one: _as_frame(X[one]) for one in X} if isinstance(X, Mapping) else _as_frame(X)
        asked: dict[str, Any] = {"min_confidence": min_confidence, "max_novelty": max_novelty}
        return self._model.predict_frame(X, ids=ids, view=view, **asked)

    def __repr__(self) -> str:
        return f"ExportedEncoder(n_clusters={self.n_clusters}, views={list(self.views)})"

    def _place(self, X: Any, ids: Any, view: str | int | None) -> _Placed | None:
        """Return the embedding of rows and the views they are in; None if the model has to do it.

        Whatever is unusual, or wrong, is left to the model.
        """
        if ids is not None:
            return None
        several = isinstance(X, Mapping) and view is None
        parts = X if several else {view: X}
        embedded, which, held = [], [], []
        for name, rows in parts.items():
            at = self._number(name)
            cells = None if at is None else _cells(rows, self._state.views[at])
            encode: Any = None if at is None else self._state.views[at].encoder
            if at is None or encode is None or cells is None:
                return None
            embedded.append(LocalEngine().map(encode, Rows(cells)))
            which.append(np.eye(len(self.views))[at])
            held.append((encode, cells))
        n = len(embedded[0]) if embedded else 0
        if not n or any(len(rows) != n for rows in embedded):
            return None
        seen = np.tile(np.sum(which, axis=0), (n, 1))
        if not several:
            return _Placed(embedded[0], seen, held)
        total = np.zeros_like(embedded[0], np.float64)
        for rows in embedded:
            total = total + rows
        return _Placed(total / len(embedded), seen, held)

    def _number(self, view: str | int | None) -> int | None:
        if view is None:
            return 0 if len(self.views) == 1 else None
        return self.views.index(view) if isinstance(view, str) and view in self.views else None

    @cached_property
    def _model(self) -> FoldingEstimator:
        """A model with these encoders and clusters, and no sample."""
        model = METHODS[self._method](n_clusters=self.n_clusters)
        model._state, model._held = self._state, {"judged": (self._state, self._state)}
        return model


# -- rows


def _surprise_of(encoder: Encoder) -> Callable[[Array], Array]:
    none: Callable[[Array], Array] = lambda block: np.full(block.shape[0], np.nan)  # noqa: E731
    return getattr(encoder, "surprise", none)


def _are_records(rows: Any) -> bool:
    return isinstance(rows, list) and bool(rows) and all(isinstance(row, dict) for row in rows)


def _as_frame(rows: Any) -> Any:
    return importlib.import_module("pandas").DataFrame(rows) if _are_records(rows) else rows


def _cells(rows: Any, view: ViewRecord) -> Array | None:
    """Return rows as an array of the features of a view, if that is plain and usual."""
    if _are_records(rows):
        if view.features is None or view.encoder is None:
            return None
        rows = _of_records(rows, view)
    elif isinstance(rows, list) and rows and isinstance(rows[0], list | tuple):
        try:
            rows = np.asarray(rows)
        except ValueError:  # of different lengths
            return None
    if type(rows) is not np.ndarray or rows.ndim != 2 or rows.dtype.kind not in "fiub":
        return None
    if rows.shape[1] != view.n_features or rows.dtype.itemsize > 8:
        return None
    if view.n_empty and not rows.any(axis=1).all():
        return None
    if rows.dtype.kind == "f":
        gone = np.isnan(rows)
        if gone.any() and (not takes_gaps(view.encoder) or gone.all(axis=1).any()):
            return None
        if not np.abs(rows[~gone]).max(initial=0) <= LARGEST:
            return None
    return rows


def _of_records(records: list[dict[str, Any]], view: ViewRecord) -> Array:
    """Return the features of records, as a table with the same cells would have them."""
    columns = view.columns or tuple(Column(name, "number") for name in view.features or ())
    label, options = f"View {view.name!r}", view.source or ReadOptions()
    keys = list(dict.fromkeys(key for record in records for key in record))
    names = options.known_names(keys, label)
    tell_columns({column.name: column.kind for column in columns}, names, label)
    key_of, unknown, made = dict(zip(names, keys, strict=True)), dict[str, int](), []
    for column in columns:
        if column.kind == "out":
            continue
        values = [record.get(key_of.get(column.name, "")) for record in records]
        codes = Codes(column.name, label, options.markers, column.kind)
        if column.kind == "number" and all(v is None or isinstance(v, int | float) for v in values):
            cells = np.array([np.nan if v is None else v for v in values], np.float64)
        elif column.kind == "date" and any(hasattr(v, "isoformat") for v in values):
            cells = codes(Cells.of_dates(values))
        else:
            cells = codes(Cells.of(values))
        made.append(features_of_cells(cells, column, codes, unknown))
    tell_unknown(unknown, label, options.batch)
    return np.column_stack(made)


# -- the file


def write(model: FoldingEstimator, path: PathLike) -> None:
    """Write the encoders and clusters of a model."""
    from viewfold._util.replace import replacing

    state = model._judged
    assert state.clusters is not None
    if not any(record.encoder for record in state.views):
        raise ValueError(
            "No view has an encoder (keep_encoders=False, or fewer than ten samples): there is "
            "nothing to export."
        )
    bare = replace(
        State.empty(),
        views=tuple(_bare(record, state.encoder(record.name)) for record in state.views),
        clusters=scattered(model._engine, state.clusters, state.embedding),
    )
    parts = state_parts(bare)
    facts = {
        "format": FORMAT,
        "method": type(model).__name__,
        "viewfold": __version__,
        "views": [{name: getattr(view, name) for name in _FACTS} for view in bare.views],
        "tags": {name: part for name, part in parts.items() if isinstance(part, Tag)},
        "cluster_names": {str(number): name for number, name in state.cluster_names.items()},
    }
    arrays: dict[str, Any] = {n: part for n, part in parts.items() if not isinstance(part, Tag)}
    arrays["facts"] = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    with replacing(path) as draft, draft.open("wb") as file:
        np.savez(file, **arrays)


def _bare(record: ViewRecord, encoder: Encoder | None) -> ViewRecord:
    """Return what predictions need to know of a view: no number of its samples."""
    counts: Any = dict.fromkeys(("n_samples", "n_new", "n_shared", "n_iter"), 0)
    columns = record.columns and tuple(replace(one, counts=()) for one in record.columns)
    return ViewRecord(
        name=record.name,
        n_features=record.n_features,
        features=record.features,
        n_empty=int(record.n_empty > 0),
        columns=columns,
        source=record.source,
        encoder=encoder,
        **counts,
    )


@suggests_arguments
def load_encoder(path: PathLike) -> ExportedEncoder:
    """Read what `viewfold.ViewFold.export_encoder` or ``viewfold export --encoder`` wrote.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    ExportedEncoder
        It has the methods `predict`, `predict_proba`, `predict_frame` and `transform` of the model.

    See Also
    --------
    viewfold.load : Read a whole model.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import viewfold
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) + 5 * np.eye(3)[np.arange(60) % 3]
    >>> model = viewfold.ViewFold(3, random_state=0).fit({"labs": X})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.export_encoder(pathlib.Path(folder, "labs.vfe"))
    ...     encoder = viewfold.load_encoder(pathlib.Path(folder, "labs.vfe"))
    >>> bool((encoder.predict(X[:5]) == model.predict(X[:5])).all())
    True
    """
    name = os.fspath(path)
    with open(name, "rb") as file:
        if file.read(4) != b"PK\3\4":
            raise StateFileError(
                f"{name} is no encoder file of viewfold. model.export_encoder(…) writes one."
            )
        file.seek(0)
        try:
            with np.load(file, allow_pickle=False) as held:
                parts: dict[str, Any] = dict(held)  # the checksum of each is compared
            facts = json.loads(parts.pop("facts").tobytes())
            if facts["format"] > FORMAT:
                raise NewerFormatError(
                    f"{name} was written by a newer viewfold (format {facts['format']}; this one "
                    f"reads {FORMAT}). Install a newer viewfold."
                )
            return _put_together(parts, facts)
        except StateFileError:
            raise
        except UnreadableError as error:
            raise StateFileError(f"{name}: {error}.") from error
        except (*_POSSIBLE, BadZipFile, zlib.error) as error:
            raise DamagedFileError(
                f"{name} is damaged ({error}). Export the encoder again."
            ) from error


def _put_together(parts: dict[str, Any], facts: Mapping[str, Any]) -> ExportedEncoder:
    parts |= {name: Tag(*tag) for name, tag in facts["tags"].items()}
    views = tuple(view_record({**row, "fold": i}, parts) for i, row in enumerate(facts["views"], 1))
    names = {int(number): name for number, name in facts["cluster_names"].items()}
    clusters, maps = clusters_of(parts), (None,) * len(views)
    state = replace(State.empty(), views=views, maps=maps, clusters=clusters, cluster_names=names)
    return ExportedEncoder(state, clusters, facts["method"])
