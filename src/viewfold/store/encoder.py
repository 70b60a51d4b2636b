"""Encoder files: what predictions need of a model, and no sample of it, for services.

The layout is that of safetensors: the size of a header, the header (JSON), arrays; nothing in it is
run. `load_encoder` imports neither pandas nor DuckDB nor scikit-learn, so that a process is ready
in a moment and stays small. Arrays and records are encoded here; whatever else holds rows is given
to a model that is made of the same parts, and gets its answers and its errors.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

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
from viewfold.state.novelty import belief, to_levels, to_share
from viewfold.state.parts import Tag, put_together, take_apart
from viewfold.state.registry import METHODS
from viewfold.state.state import State, ViewRecord

if TYPE_CHECKING:
    import pandas as pd

    from viewfold.estimators import FoldingEstimator

FORMAT = 1
LARGEST = 1e15  # of larger numbers, the model decides how they are read
_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}
_NAMES = {np.dtype(kind): name for name, kind in _DTYPES.items()}


@dataclass(frozen=True)
class _Mean:
    """The mean of encoders, weighted as `viewfold.state.updates.Committee` weighs them."""

    members: tuple[tuple[Any, float], ...]

    def __call__(self, block: Any) -> Array:
        if len(self.members) == 1:
            return np.asarray(self.members[0][0](block))
        total = sum(weight for _, weight in self.members)
        embedded = (encode(block) * (weight / total) for encode, weight in self.members)
        return np.asarray(sum(embedded), block.dtype)

    def surprise(self, block: Any) -> Array:
        told = (getattr(encode, "surprise", None) for encode, _ in self.members)
        each = [surprise(block) for surprise in told if surprise is not None]
        return np.asarray(np.fmin.reduce([np.full(block.shape[0], np.nan), *each]))

    @property
    def fill(self) -> bool:
        """Says that rows may have missing cells; see `viewfold.state.updates.takes_gaps`."""
        if all(hasattr(encode, "fill") for encode, _ in self.members):
            return True
        raise AttributeError("fill")


class _Placed(NamedTuple):
    """The embedding of rows, the views they are in, and their cells by encoder."""

    rows: Array
    seen: Array
    cells: list[tuple[_Mean, Array]]


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
        each = [engine.map(encode.surprise, Rows(cells)) for encode, cells in placed.cells]
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
        if gone.any() and (not hasattr(view.encoder, "fill") or gone.all(axis=1).any()):
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
    from viewfold.state.updates import Committee

    state, engine = model._judged, model._engine
    assert state.clusters is not None
    if not any(record.encoder for record in state.views):
        raise ValueError(
            "No view has an encoder (keep_encoders=False, or fewer than ten samples): there is "
            "nothing to export."
        )
    clusters = scattered(engine, state.clusters, state.embedding)
    arrays: dict[str, Array] = {}
    tags: dict[str, list[Any]] = {}
    views = []
    for i, record in enumerate(state.views):
        encoder = state.encoder(record.name)
        members: list[tuple[Any, float]] = [(encoder, 1.0)]
        if isinstance(encoder, Committee):
            members = [(one.encoder, one.n_rows) for one in encoder.members()]
        for j, (member, _) in enumerate(members):
            for name, part in take_apart(member, f"{i}/{j}"):
                if isinstance(part, Tag):
                    tags[name] = [part.type, part.version]
                else:
                    arrays[name] = part
        views.append(
            {
                "name": record.name,
                "n_features": record.n_features,
                "features": record.features,
                "columns": record.columns
                and [[one.name, one.kind, one.levels, one.first] for one in record.columns],
                "source": record.source and record.source.given(),
                "zeros": record.n_empty > 0,
                "weights": [] if encoder is None else [float(weight) for _, weight in members],
            }
        )
    for one in fields(clusters):
        if getattr(clusters, one.name) is not None:
            arrays[f"clusters/{one.name}"] = np.asarray(getattr(clusters, one.name))
    facts = {
        "method": type(model).__name__,
        "viewfold": __version__,
        "views": views,
        "tags": tags,
        "cluster_names": {str(number): name for number, name in state.cluster_names.items()},
        # An array whose columns lie one after the other is written as its transpose: products with
        # it have other last bits otherwise.
        "transposed": [n for n, a in arrays.items() if a.ndim == 2 and not a.flags.c_contiguous],
    }
    with replacing(path) as draft:
        draft.write_bytes(_packed(arrays, facts))


def _packed(arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> bytes:
    header: dict[str, Any] = {}
    data = []
    start = 0
    for name, array in arrays.items():
        array = array.T if name in facts["transposed"] else array
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        data.append(np.ascontiguousarray(array).tobytes())
        place = [start, start + len(data[-1])]
        kind = _NAMES[array.dtype.newbyteorder("=")]
        header[name] = {"dtype": kind, "shape": list(np.shape(array)), "data_offsets": place}
        start = place[1]
    body, said = b"".join(data), json.dumps(facts)
    digest = _digest(header, said, body)
    metadata = {"viewfold-encoder": str(FORMAT), "facts": said, "sha256": digest}
    top = json.dumps({"__metadata__": metadata, **header}).encode()
    return len(top).to_bytes(8, "little") + top + body


def _digest(header: Mapping[str, Any], facts: str, body: bytes) -> str:
    held = hashlib.sha256(json.dumps([header, facts]).encode())
    held.update(body)
    return held.hexdigest()


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
        data = file.read()
    arrays, facts = _unpacked(data, name)
    try:
        return _put_together(arrays, facts)
    except UnreadableError as error:
        raise StateFileError(f"{name}: {error}.") from error
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DamagedFileError(f"{name} is damaged: its parts do not fit ({error}).") from error


def _unpacked(data: bytes, name: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return arrays and facts of a file that is whole."""
    try:
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        metadata = header.pop("__metadata__")
        version = int(metadata["viewfold-encoder"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StateFileError(
            f"{name} is no encoder file of viewfold. model.export_encoder(…) writes one."
        ) from None
    if version > FORMAT:
        raise NewerFormatError(
            f"{name} was written by a newer viewfold (format {version}; this one reads {FORMAT}). "
            "Install a newer viewfold."
        )
    body = data[8 + size :]
    try:
        if metadata["sha256"] != _digest(header, metadata["facts"], body):
            raise ValueError("its digest is not that of its content")
        facts = json.loads(metadata["facts"])
        arrays = {}
        for key, one in header.items():
            part = body[slice(*one["data_offsets"])]
            array = np.frombuffer(part, _DTYPES[one["dtype"]]).reshape(one["shape"]).copy()
            arrays[key] = array.T if key in facts["transposed"] else array
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFileError(f"{name} is damaged ({error}). Export the encoder again.") from None
    return arrays, facts


def _put_together(arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> ExportedEncoder:
    parts: dict[str, Any] = {**arrays}
    parts |= {name: Tag(*tag) for name, tag in facts["tags"].items()}
    views = []
    for i, one in enumerate(facts["views"]):
        members = [(put_together(parts, f"{i}/{j}"), w) for j, w in enumerate(one["weights"])]
        columns, source = one["columns"], one["source"]
        columns = columns and tuple(Column(n, k, tuple(ls), first) for n, k, ls, first in columns)
        if source and source.get("empty_markers") is not None:
            source["empty_markers"] = tuple(source["empty_markers"])
        counts: Any = dict.fromkeys(("n_samples", "n_new", "n_shared", "n_iter"), 0)
        views.append(
            ViewRecord(
                name=one["name"],
                n_features=one["n_features"],
                features=one["features"] and tuple(one["features"]),
                n_empty=int(one["zeros"]),
                columns=columns,
                source=source and ReadOptions(**source),
                encoder=_Mean(tuple(members)) if members else None,  # type: ignore[arg-type]
                **counts,
            )
        )
    held: Any = {one.name: arrays.get(f"clusters/{one.name}") for one in fields(Clusters)}
    clusters, maps = Clusters(**held), (None,) * len(views)
    names = {int(number): name for number, name in facts["cluster_names"].items()}
    state = replace(State.empty(), views=tuple(views), maps=maps, clusters=clusters)
    return ExportedEncoder(replace(state, cluster_names=names), clusters, facts["method"])
